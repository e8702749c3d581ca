"""Run the command line with `python -m confide`."""

import sys

from confide.cli import main

if __name__ == "__main__":
    sys.exit(main())
