"""The command line: `confide calibrate`, `predict`, `evaluate`, `plan`, `show`, `report`, `demo` and more.

This module runs without the optional packages of the command line. It imports little, so that Ctrl-C works from the
start.
"""

import os
import sys
from collections.abc import Sequence

from confide.cli.exit_codes import USAGE, interruptible, received, say_interrupted


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments
        The arguments without the program's name; by default those of the process.
    """
    with interruptible():
        try:
            return _run(arguments)
        except BaseException:  # an interrupted import may raise anything
            if received():
                return say_interrupted()
            raise


def _run(arguments: Sequence[str] | None) -> int:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's threads would wait in a loop for work that never comes
    try:
        from confide.cli.app import main as run
    except ModuleNotFoundError as missing:
        if received():
            raise
        sys.stderr.write(f"error: {_explained(missing)}\n")
        return USAGE
    return run(arguments)


def _explained(missing: ModuleNotFoundError) -> Exception:
    from confide.errors import MissingExtraError
    from confide.support import needs_extra

    try:
        with needs_extra("the command line", "standard"):
            raise missing
    except MissingExtraError as error:
        return error
