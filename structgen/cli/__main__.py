"""`python -m structgen.cli` runs the command if `structgen` is not on the path."""

import sys

from .main import main

sys.exit(main())
