"""Installed packages: optional ones, and the versions in statements about how a file was made."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

from confide.errors import FormatError, MissingExtraError


@contextmanager
def needs_extra(what: str, extra: str | None) -> Iterator[None]:
    """Import optional packages in the block; `what` needs them, and `extra` contains them.

    Without an extra, the error names a missing package of the basic installation.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise _missing(what, extra, (error.name or "").partition(".")[0]) from None


def require_extra(what: str, extra: str | None, *packages: str) -> None:
    """Check that these packages of an extra are installed, without importing them."""
    for package in packages:
        if find_spec(package) is None:
            raise _missing(what, extra, package)


def _missing(what: str, extra: str | None, package: str) -> MissingExtraError:
    install = f"it: pip install {package}" if extra is None else f"the extra: pip install 'confide[{extra}]'"
    return MissingExtraError(what, f"needs the package {package!r}", remedy=f"Install {install}")


# Versions of the software that made a file: they are stated in the file, so that users can find files with a defect

LIBRARIES = ("confide", "numpy", "opendp", "scipy")

# Most versions in a file, and most characters of each
_MOST = 20
_LONGEST = 100


@lru_cache(maxsize=1)
def library_versions() -> Mapping[str, str]:
    """Versions of the installed libraries that take part in a release, as a read-only mapping.

    Examples
    --------
    >>> list(library_versions())
    ['confide', 'numpy', 'opendp', 'scipy']
    """
    from importlib.metadata import version

    return MappingProxyType({name: version(name) for name in LIBRARIES})


def check_version_texts(name: str, versions: Mapping[str, Any]) -> None:
    """Reject versions in a file that are not a few short strings without control characters; `name` is their place."""
    texts = [*versions.keys(), *versions.values()]
    are_short = all(isinstance(text, str) and 0 < len(text) <= _LONGEST and text.isprintable() for text in texts)
    if len(versions) > _MOST or not are_short:
        raise FormatError(name, f"must be at most {_MOST} texts of 1 to {_LONGEST} printable characters each")


def versions_text(versions: Mapping[str, str]) -> str:
    """Versions in one line, or a statement that there are none.

    Examples
    --------
    >>> versions_text({"confide": "0.2.0", "opendp": "0.16.0"}), versions_text({})
    ('confide 0.2.0, opendp 0.16.0', 'not stated')
    """
    return ", ".join(f"{name} {version}" for name, version in versions.items()) or "not stated"
