"""The command `structgen`. Each file has one sub-command.

Enters: arguments, files, standard input. Leaves: results on standard output, progress and errors on standard
error, and an exit status: 0 done or accepted, 1 rejected, 2 wrong usage or an unsupported schema.
Cost: argparse and this package; a sub-command imports what it needs when it runs.
"""

from .main import main

__all__ = ["main"]
