"""One merge of corpora by libFuzzer: `python -m fuzz.merge TARGET INTO FROM`. `python -m fuzz keep` calls it.

In: a target, a folder that gets the inputs that run what its own do not, a folder of inputs. Out: files. A
process of its own, because libFuzzer ends the process that it runs in.
"""

from __future__ import annotations

import os
import sys

if os.environ.get("STRUCTGEN_CORE"):
    import tests.sanitized_core  # noqa: F401


def main() -> None:
    import atheris

    from .targets import TARGETS

    name, into, source = sys.argv[1:]
    atheris.Setup([sys.argv[0], "-merge=1", "-timeout=60", into, source], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
