"""`python -m structgen`: the command line where the script `structgen` is not on the PATH."""

import sys

from .cli import main

sys.exit(main())
