"""One merge of corpora by libFuzzer: `python -m fuzz.merge TARGET SCRIPT ...`, for `python -m fuzz keep`.

In: a target, a script that is this call with further arguments, and libFuzzer's arguments: a folder that gets
the inputs that run what its own do not, a folder of inputs. Out: files. A process of its own, because
libFuzzer ends the process that it runs in, and begins others by the script.
"""

from __future__ import annotations

import os
import sys

if os.environ.get("STRUCTGEN_CORE"):
    import oracles.sanitized_core  # noqa: F401


def main() -> None:
    import atheris

    from .targets import TARGETS

    name, *arguments = sys.argv[1:]
    atheris.Setup(arguments, TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
