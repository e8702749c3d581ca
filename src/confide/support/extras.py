"""Optional packages: one line that says how to install what is missing, instead of an import error."""

from collections.abc import Iterator
from contextlib import contextmanager

from confide.errors import MissingExtraError


@contextmanager
def needs_extra(what: str, extra: str) -> Iterator[None]:
    """Import optional packages in the block; `what` needs them, and `extra` brings them.

    Raises
    ------
    MissingExtraError
        If one of them is not installed.

    Examples
    --------
    >>> with needs_extra("this example", "plots"):
    ...     import a_package_that_nobody_has
    Traceback (most recent call last):
        ...
    confide.errors.MissingExtraError: this example needs the package 'a_package_that_nobody_has'; install ...
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        raise MissingExtraError(
            f"{what} needs the package {missing!r}; install the extra: pip install 'confide[{extra}]'"
        ) from None
