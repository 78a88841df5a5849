"""`python -m structgen.cli`, where the command is not on the path."""

import sys

from .main import main

sys.exit(main())
