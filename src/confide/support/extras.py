"""Optional packages: one line that says how to install what is missing, instead of an import error."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from confide.errors import MissingExtraError


@contextmanager
def needs_extra(what: str, extra: str | None, *packages: str) -> Iterator[None]:
    """Import optional packages in the block; `what` needs them, and `extra` brings them.

    `packages` are only looked for. Without an extra what is missing belongs to every whole installation, and is named.

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
        for package in packages:
            if find_spec(package) is None:
                raise ModuleNotFoundError(name=package)
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        install = f"it: pip install {missing}" if extra is None else f"the extra: pip install 'confide[{extra}]'"
        raise MissingExtraError(f"{what} needs the package {missing!r}; install {install}") from None
