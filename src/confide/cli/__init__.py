"""The command line: `confide calibrate`, `predict`, `evaluate`, `plan`, `show`, `report`, `demo` and more.

Here stands no more than what runs without the packages of the command line, which are optional.
"""

import sys
from collections.abc import Sequence

from confide.cli.exit_codes import USAGE
from confide.errors import MissingExtraError
from confide.support import needs_extra

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments
        Without the program's name; by default those of the process.
    """
    try:
        with needs_extra("the command line", "standard"):
            from confide.cli.run import main as run
    except MissingExtraError as error:
        sys.stderr.write(f"error: {error}\n")
        return USAGE
    return run(arguments)
