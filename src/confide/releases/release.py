"""What every release can do: become JSON, a file or a pickle, and be read again with all its claims checked."""

import hashlib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from confide.errors import FormatError
from confide.mechanisms import PrivacyStatement
from confide.releases import kinds
from confide.support import Shown, deprecated, read_as, write_text


class Release(Shown):
    """Something that leaves: one threshold, or several under one budget, with its promise and its privacy loss."""

    if TYPE_CHECKING:  # a field of some releases, computed from their parts by others

        @property
        def privacy(self) -> PrivacyStatement:
            """The privacy loss of the whole release."""

    @property
    def checksum(self) -> str:
        """SHA-256 of the release's JSON document, hexadecimal, by which an evaluation names the release it is of."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def to_json(self) -> str:
        """The release as a JSON document with a schema version and a checksum."""
        return kinds.write(self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a release of this class, checking every field and computing its claims again.

        Raises
        ------
        FormatError
            If the text is no such release, is damaged, altered or of a newer schema, or claims what does not follow.

        Examples
        --------
        >>> import confide, numpy as np
        >>> released = confide.calibrate_levels(np.random.default_rng(0).random(4000), [0.2, 0.1], epsilon=1.0)
        >>> type(Release.from_json(released.to_json())).__name__
        'LevelCalibration'
        """
        release = kinds.read(text)
        if not isinstance(release, cls):
            raise FormatError(
                f"the file is not a {cls.__name__}; it holds a {type(release).__name__}, and confide.load reads both"
            )
        return release

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write `to_json()` to a file, atomically."""
        write_text(path, self.to_json(), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file written by `save`."""
        return read_as(path, cls.from_json)

    @deprecated("report() of a release", "confide.report(release)", since="0.2", removed_in="0.4")
    def report(self, path: str | Path | None = None, *, overwrite: bool = False, **options: Any) -> str:
        """The text of the page that `confide.report` makes, written to a file if one is named; deprecated since 0.2."""
        page = import_module("confide.reports").report(self, **options)  # a room above this one
        if path is not None:
            page.save(path, overwrite=overwrite)
        return str(page.html)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_json, (self.to_json(),)


def load(path: str | Path) -> Release:
    """Read a release of any kind from a file: one threshold or several, a private evaluation, or a watch.

    Parameters
    ----------
    path
        What `save` or `confide calibrate --out` wrote, or an address of an object store.

    Raises
    ------
    FormatError
        If it is no release, is damaged, altered or of a newer schema, or claims what does not follow.
    InputError
        If it cannot be read.

    Examples
    --------
    >>> import confide, numpy as np, tempfile
    >>> released = confide.calibrate_levels(np.random.default_rng(0).random(4000), [0.2, 0.1], epsilon=1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     released.save(f"{folder}/released.json")
    ...     confide.load(f"{folder}/released.json") == released
    True
    """
    return Release.load(path)


def load_release(path: str | Path) -> Release:
    """As `confide.load`."""
    return load(path)
