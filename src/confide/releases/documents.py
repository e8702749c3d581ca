"""Documents: what leaves as a file, how each kind of them is written, and one reader for all kinds.

A file is one JSON object: its kind, its schema, the fields of the kind, and a SHA-256 of all that, which finds damage
and is no signature. The meaning of an existing field never changes; a new meaning is a new schema. A kind whose files
have another form brings a reader of whole texts.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from confide.errors import ConfideError, FormatError, InputTypeError, MissingExtraError
from confide.mechanisms import PrivacyStatement
from confide.support import Fields, Shown, mistaken, needs_extra, parse_object, read_as, write_text
from confide.support import Kind as FileKind

MOST_CHARACTERS = 50_000_000
_NAME_BITS = 2**14  # groups may be named by any integer that Python reads

_ABOVE = dict.fromkeys(
    (
        "confide.federated.calibration",
        "confide.federated.several",
        "confide.federated.own-share",
        "confide.federated.signed-release",
    ),
    "confide.federated",
) | {
    "confide.watch": "confide.watching",
    "confide.private-evaluation": "confide.evaluation",
}
"""Kinds that another room registers when it is imported."""

_WRITERS: dict[type, "Kind"] = {}
_READERS: dict[str, Callable[[str], Any]] = {}


@dataclass(frozen=True)
class Kind:
    """A kind of release with files of the common form: its `name` in them, and what messages call it.

    `fields` makes JSON values of a release, and `read` makes a release of these, or refuses what cannot be used and
    claims that do not follow. Longer texts, and integers of more bits, are refused. A file with one of the fields that
    are there since schema 2 (`a.b` is field b of field a, or of an item of it) has schema 2, every other file schema 1.
    """

    name: str
    document: str
    fields: Callable[[Any], dict[str, Any]]
    read: Callable[[Fields], Any]
    most_characters: int = MOST_CHARACTERS
    integer_bits: int = _NAME_BITS
    since_2: frozenset[str] = frozenset()

    def write(self, release: Any) -> str:
        """One JSON object, two spaces of indentation, closed by its checksum."""
        fields = self.fields(release)
        content = {"kind": self.name, "schema": self._schema(fields), **fields}
        return json.dumps({**content, "sha256": _checksum(content)}, indent=2, allow_nan=False) + "\n"

    def read_text(self, text: str) -> Any:
        """Read what `write` wrote, and refuse everything else."""
        content = _parse(text, self.most_characters, self.integer_bits)
        schema = content.get("schema")
        if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
            raise FormatError(f"the {self.document} has no valid schema number")
        newest = 2 if self.since_2 else 1
        if schema > newest:
            raise FormatError(
                f"the {self.document} has schema {schema}; this version reads up to {newest}; upgrade confide"
            )
        check_checksum(content, self.document)
        if schema != self._schema(content):
            raise FormatError(f"the {self.document} has schema {schema}, but the fields of another; do not use it")
        fields = Fields(self.document, {key: content[key] for key in content if key not in ("kind", "schema")})
        try:
            release = self.read(fields)
        except (FormatError, MissingExtraError):
            raise
        except ConfideError as error:
            raise FormatError(f"the {self.document} has a field that cannot be used: {error}") from None
        fields.finish()
        return release

    def _schema(self, fields: Mapping[str, Any]) -> int:
        return 2 if any(_has(fields, path.split(".")) for path in self.since_2) else 1


def _has(fields: Any, path: list[str]) -> bool:
    """Whether an object has a field, or a field of a field; of a list, whether one of its items has."""
    if isinstance(fields, list):
        return any(_has(item, path) for item in fields)
    if not isinstance(fields, Mapping) or path[0] not in fields:
        return False
    return len(path) == 1 or _has(fields[path[0]], path[1:])


def register(made: type, kind: Kind) -> None:
    """Let a class of releases be written and read as a kind of the common form."""
    _WRITERS[made] = kind
    register_kind(kind.name, kind.read_text)


def register_kind(name: str, read: Callable[[str], Any]) -> None:
    """Let whole texts of a kind be read by a function, which checks everything itself."""
    _READERS[name] = read


def write(release: Any) -> str:
    """A release as JSON."""
    return next(_WRITERS[made] for made in type(release).__mro__ if made in _WRITERS).write(release)


def read(text: str) -> Any:
    """The release that a text holds, read by the reader of its kind.

    Raises
    ------
    MissingExtraError
        If what the release claims cannot be computed again without SciPy, and it is not installed.
    """
    kind = _parse(text, MOST_CHARACTERS, _NAME_BITS).get("kind")
    if isinstance(kind, str) and kind in _ABOVE:
        import_module(_ABOVE[kind])
    if not isinstance(kind, str) or kind not in _READERS:
        if other := mistaken(text, FileKind.RELEASE):
            raise FormatError(other)
        raise FormatError("the file is not a confide calibration; its field 'kind' names none that this version knows")
    with needs_extra("computing again what this release claims", None):
        return _READERS[kind](text)


def _parse(text: Any, most: int, integer_bits: int) -> dict[str, Any]:
    if not isinstance(text, str):
        raise InputTypeError(f"text must be a JSON document; found {type(text).__name__}")
    if len(text) > most:
        raise FormatError(f"the file is not a confide calibration: it has more than {most} characters")
    try:
        return parse_object(text, integer_bits)
    except ValueError:
        raise FormatError("the file is not a confide calibration: it is not valid JSON, or not one object") from None


def check_checksum(content: dict[str, Any], document: str = "file") -> None:
    """Take the checksum out of `content`, and refuse what it does not fit.

    Raises
    ------
    FormatError
        If it does not, or there is none.
    """
    try:
        intact = content.pop("sha256", None) == _checksum(content)
    except RecursionError:
        intact = False
    if not intact:
        raise FormatError(f"the {document} was altered or damaged: its checksum does not match; get the original")


def _checksum(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


class Document(Shown):
    """A value that leaves as a file: it becomes JSON or a pickle, and is read again with all its claims checked."""

    if TYPE_CHECKING:  # a field of some, which a dataclass would take for a default if it were here

        @property
        def privacy(self) -> PrivacyStatement:
            """The privacy loss of the whole."""

    @property
    def checksum(self) -> str:
        """SHA-256 of the JSON document, hexadecimal, by which an evaluation names the release it is of."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def to_json(self) -> str:
        """The release as a JSON document with a schema version and a checksum."""
        return write(self)

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
        >>> type(Document.from_json(released.to_json())).__name__
        'LevelCalibration'
        """
        document = read(text)
        if not isinstance(document, cls):
            raise FormatError(
                f"the file is not a {cls.__name__}; it holds a {type(document).__name__}, and confide.load reads both"
            )
        return document

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write `to_json()` to a file, atomically."""
        write_text(path, self.to_json(), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file written by `save`."""
        return read_as(path, cls.from_json)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_json, (self.to_json(),)


def load(path: str | Path) -> Document:
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
    return Document.load(path)
