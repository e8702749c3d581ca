"""`python -m confide` is the command line."""

import sys

from confide.cli import main

if __name__ == "__main__":
    sys.exit(main())
