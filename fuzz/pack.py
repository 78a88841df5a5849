"""A target's seeds and kept inputs as the zip file that ClusterFuzzLite begins with.

python -m fuzz.pack TARGET ZIP
"""

from __future__ import annotations

import hashlib
import sys
import zipfile

from .seeds import corpus


def main() -> None:
    target, path = sys.argv[1:]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for text in dict.fromkeys(corpus(target)):
            archive.writestr(hashlib.sha1(text).hexdigest()[:16], text)


if __name__ == "__main__":
    main()
