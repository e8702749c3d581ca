"""What is installed: optional packages, and the versions that something was made with."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

from confide.errors import MissingExtraError
from confide.support.shapes import Field, Fields


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
    confide.errors.MissingExtraError: this example: needs the package 'a_package_that_nobody_has'. Install ...
    """
    try:
        for package in packages:
            if find_spec(package) is None:
                raise ModuleNotFoundError(name=package)
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        install = f"it: pip install {missing}" if extra is None else f"the extra: pip install 'confide[{extra}]'"
        raise MissingExtraError(what, f"needs the package {missing!r}", remedy=f"Install {install}") from None


# The versions that something was made with: stated in its file, so that who learns of a defect later finds it.


LIBRARIES = ("confide", "numpy", "opendp", "scipy")
_MOST, _LONGEST = 20, 100


@lru_cache(maxsize=1)
def library_versions() -> Mapping[str, str]:
    """Versions of the libraries that take part in a release, as they are installed; read only.

    Examples
    --------
    >>> list(library_versions())
    ['confide', 'numpy', 'opendp', 'scipy']
    """
    from importlib.metadata import version

    return MappingProxyType({name: version(name) for name in LIBRARIES})


def _texts(versions: dict[str, Any]) -> dict[str, str]:
    texts = [*versions.keys(), *versions.values()]
    if len(versions) > _MOST or not all(
        isinstance(text, str) and 0 < len(text) <= _LONGEST and text.isprintable() for text in texts
    ):
        raise ValueError
    return dict(versions)


VERSIONS = Field(f"at most {_MOST} texts of 1 to {_LONGEST} printable characters each", (dict,), _texts, dict)
"""What a file says of the versions behind it: a few short texts without anything that steers a screen."""


def check_versions(document: str, versions: Any) -> dict[str, str]:
    r"""The versions that a document, or a part of it at a path, states.

    Raises
    ------
    FormatError
        If they are something else than `VERSIONS`.

    Examples
    --------
    >>> check_versions("watch", {"opendp": "0.16.0"})
    {'opendp': '0.16.0'}
    >>> check_versions("watch", {"opendp": "\x1b[2J"})
    Traceback (most recent call last):
        ...
    confide.errors.FormatError: watch.versions: must be at most 20 texts of 1 to 100 printable characters each
    """
    found: dict[str, str] = VERSIONS.of(versions, f"{document}.versions")
    return found


def optional_versions(fields: Fields) -> dict[str, str]:
    """Take the versions that a document states; none of a document of schema 1, which had no such field."""
    return check_versions(fields.path, fields.pop("versions")) if "versions" in fields else {}


def versions_text(versions: Mapping[str, str]) -> str:
    """Versions in one line; what was made before they were stated says that.

    Examples
    --------
    >>> versions_text({"confide": "0.2.0", "opendp": "0.16.0"}), versions_text({})
    ('confide 0.2.0, opendp 0.16.0', 'not stated')
    """
    return ", ".join(f"{name} {version}" for name, version in versions.items()) or "not stated"
