"""Documents: values that are written to files, the form of each kind, and one reader for all kinds."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from confide.errors import FormatError
from confide.mechanisms import PrivacyStatement
from confide.support import (
    UNUSABLE,
    Described,
    FileKind,
    Form,
    checksum,
    foreign_file,
    kind_stated,
    needs_extra,
    parse_document,
    read_as,
    refused_content,
    write_text,
)

# The modules that register a kind of file when they are imported.
_HOMES = {
    "confide.core.files": ("release", "published-counts"),
    "confide.evaluation": ("evaluation",),
    "confide.federated": ("federated.release", "federated.own-share", "federated.signed-release"),
    "confide.watching": ("watch", "corrected"),
}
_HOME_OF_KIND = {f"confide/{kind}": home for home, kinds in _HOMES.items() for kind in kinds}

# The longest file, and the longest integer in one: groups may be named by any integer that Python reads.
MOST_CHARACTERS = 50_000_000
_NAME_BITS = 2**14


def common_form(kind: str, name: str, *, integer_bits: int = _NAME_BITS) -> Form:
    """The form of a kind of release: strings as long as releases may be, and integers of any size as names."""
    return Form(kind, name, most_characters=MOST_CHARACTERS, integer_bits=integer_bits)


@dataclass(frozen=True)
class Kind:
    """A kind of release. A file is accepted only if it is equal to what `write` makes of its content.

    The value is written again after reading, and the two texts are compared, which finds all that `read` does not
    check. `content` converts a value to JSON values, and `read` these to a value. `what` is the name of the kind in
    errors; by default the name of the form.
    """

    form: Form
    content: Callable[[Any], dict[str, Any]]
    read: Callable[[dict[str, Any]], Any]
    what: str = ""

    def write(self, release: Any) -> str:
        """One JSON object, two spaces of indentation, with its checksum at the end."""
        return self.form.write(self.content(release))

    def read_text(self, text: str) -> Any:
        """Read the output of `write`; raises `FormatError` for everything else."""
        stated = self.form.read(text)
        with refused_content(self.form.name, self.what or self.form.name):
            value = self.read(stated.copy())
        if checksum(stated) != checksum(self.content(value)):
            raise FormatError(
                self.form.name, "must be the text that confide writes for its content: it was altered", remedy=UNUSABLE
            )
        return value


# The registered kinds: how a class is written, and how a kind is read.
_WRITERS: dict[type, Kind] = {}
_READERS: dict[str, Callable[[str], Any]] = {}


def register(released: type, kind: Kind) -> None:
    """Register a class of releases for writing and reading as a kind of the common form."""
    _WRITERS[released] = kind
    register_kind(kind.form.kind, kind.read_text)


def register_kind(name: str, read: Callable[[str], Any]) -> None:
    """Register a function that reads and checks whole texts of a kind."""
    _READERS[name] = read


def write(release: Any) -> str:
    """A release as JSON."""
    bases = type(release).__mro__
    if not any(base in _WRITERS for base in bases):
        import_module("confide.core.files")
    return next(_WRITERS[base] for base in bases if base in _WRITERS).write(release)


def read(text: str) -> Any:
    """Read a release from a text, with the reader of its kind.

    Raises `MissingExtraError` if its claims cannot be verified without SciPy, and SciPy is not installed.
    """
    kind = kind_stated(parse_document(text, "file", MOST_CHARACTERS, _NAME_BITS))
    if kind in _HOME_OF_KIND:
        import_module(_HOME_OF_KIND[kind])
    if kind is None or kind not in _READERS:
        raise foreign_file(text, FileKind.RELEASE)
    with needs_extra("computing again what this release claims", None):
        return _READERS[kind](text)


class Document(Described):
    """A value that can be written to a file, as JSON or a pickle; all claims are verified when it is read."""

    if TYPE_CHECKING:  # a field of some subclasses, which a dataclass would take for a default if it were here

        @property
        def privacy(self) -> PrivacyStatement:
            """The privacy loss of the whole."""

    @property
    def checksum(self) -> str:
        """SHA-256 of the JSON document, hexadecimal; an evaluation refers to its release by it."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def to_json(self) -> str:
        """The release as a JSON document with a schema version and a checksum."""
        return write(self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a release of this class, validate every field and verify its claims.

        Raises
        ------
        FormatError
            If the text is not such a release, is damaged, altered or of another schema, or if a claim does not follow.

        Examples
        --------
        >>> import confide, numpy as np
        >>> released = confide.calibrate(np.random.default_rng(0).random(4000), [0.2, 0.1], epsilon=1.0)
        >>> type(Document.from_json(released.to_json())).__name__
        'Release'
        """
        document = read(text)
        if not isinstance(document, cls):
            type_name = type(document).__name__
            raise FormatError("file", f"must hold a {cls.__name__}", got=f"a {type_name}", remedy="Use confide.load")
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
    """Read a release of any kind from a file: one threshold or several, a private evaluation, or a monitor.

    Parameters
    ----------
    path
        A file written by `save` or `confide calibrate --out`, or an address in an object store.

    Raises
    ------
    FormatError
        If the file is not a release, is damaged, altered or of another schema, or if a claim does not follow.
    InputError
        If it cannot be read.

    Examples
    --------
    >>> import confide, numpy as np, tempfile
    >>> released = confide.calibrate(np.random.default_rng(0).random(4000), [0.2, 0.1], epsilon=1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     released.save(f"{folder}/released.json")
    ...     confide.load(f"{folder}/released.json") == released
    True
    """
    return Document.load(path)
