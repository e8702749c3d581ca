"""Where tables lie: from a name to files of this machine or objects of a store, and DuckDB's way to these objects."""

import fnmatch
import glob
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from confide.errors import InputError
from confide.support import ObjectPath, Place, as_integer, as_place, needs_extra
from confide.tables.file_formats import ENDINGS, ending_of, format_of

_MAGIC = re.compile(r"[*?\[]")
_PIECE = re.compile(r"\[!?[^/][^\]/]*\]|.", re.DOTALL)


def places_named(source: str) -> list[Place]:
    """What a name stands for: the file or object of that name, else those below it, else those of the pattern.

    A file of this machine is what its name says, whatever characters the name has.

    Raises
    ------
    InputError
        If there is none, they are of several formats, or a store cannot be asked.
    """
    place = as_place(source)
    if isinstance(place, Path):
        if place.is_dir():
            return _of_one_format(source, "folder", _below(place, sorted(filter(Path.is_file, place.rglob("*")))))
        if place.exists() or not glob.has_magic(source):
            return [place]
        # `Path.glob` takes no absolute pattern.
        return _of_one_format(source, "pattern", sorted(map(Path, glob.glob(source, recursive=True))))  # noqa: PTH207
    base, pattern = _base_and_pattern(source)
    if pattern is None and place.is_file():
        return [place]
    folder = ObjectPath.of(base)
    folder.check_bucket()
    if pattern is None:
        if not folder.is_dir():
            raise InputError(f"file {source!r} does not exist")
        return _of_one_format(source, "folder", _below(folder, folder.below()))
    match, start = _as_regex(pattern), len(folder.address.path) + 1
    inside = folder.below(recursive="**" in pattern or "/" in pattern) if folder.is_dir() else iter(())
    return _of_one_format(source, "pattern", (one for one in inside if match.fullmatch(one.address.path[start:])))


def _below(folder: Place, found: Iterable[Place]) -> Iterator[Place]:
    """Without names, and names of folders on the way, that mark what other programs have left there."""
    start = len(folder.parts)
    return (one for one in found if not any(part.startswith((".", "_")) for part in one.parts[start:]))


def _of_one_format(source: str, what: str, found: Iterable[Place]) -> list[Place]:
    """The places whose endings are known, in order; refused if there are none, or of several formats."""
    places = [one for one in found if format_of(str(one))]
    if not places:
        raise InputError(
            f"{what} {source!r} must name files that end in one of {', '.join(ENDINGS)}; it names none of them"
        )
    if len({format_of(str(one)) for one in places}) > 1:
        endings = sorted({str(ending_of(str(one))) for one in places})
        raise InputError(f"files of {source!r} must be of one format; found {', '.join(endings)}")
    return places


def folders_by_value(places: Sequence[Place]) -> dict[str, str]:
    """The columns that folders such as `ward=north` stand for, each with the DuckDB type of its values."""
    values: dict[str, list[str]] = {}
    for place in places if len(places) > 1 else ():
        for part in place.parts[:-1]:
            name, equals, value = part.partition("=")
            if equals:
                values.setdefault(name, []).append(value)
    full = {name: held for name, held in values.items() if len(held) == len(places)}
    return {
        name: "BIGINT" if all(as_integer(value) is not None for value in held) else "VARCHAR"
        for name, held in full.items()
    }


_COLUMNAR = tuple(ending for ending, form in ENDINGS.items() if form.kind == "parquet")
_OBJECTS = "confide"
"""The scheme of what DuckDB reads by `duckdb_filesystem`."""


def path_in_duckdb(place: Place) -> str:
    """What a file, or an object of a store, is called in DuckDB's messages."""
    return f"{_OBJECTS}://{place.address.path}" if isinstance(place, ObjectPath) else str(place)


def pattern_in_duckdb(place: Place) -> str:
    """What DuckDB is asked for: to it every name of a file is a pattern; of objects none is, as our `glob` says."""
    return path_in_duckdb(place) if isinstance(place, ObjectPath) else glob.escape(str(place))


class _SharedFile:
    """A file that several threads of DuckDB read at once, each in two calls: it seeks, and then it reads.

    What a thread has sought is its own; pyarrow's `read_at` looks at no position that threads share. DuckDB does not
    ask how many bytes it got, so there must be as many as it wants.
    """

    def __init__(self, held: Any) -> None:
        self._held, self._sought = held, threading.local()
        self.close, self.size = held.close, held.size

    def seek(self, place: int) -> None:
        self._sought.place = place

    def tell(self) -> int:
        return int(getattr(self._sought, "place", 0))

    def read(self, length: int) -> bytes:
        found: bytes = self._held.read_at(length, self.tell())
        if len(found) < length:
            raise OSError("the object ends before it should")
        self._sought.place = self.tell() + len(found)
        return found


def duckdb_filesystem(place: ObjectPath) -> Any:
    """The store of an object, to be registered with a DuckDB connection, which fetches no more than it needs."""
    with needs_extra(f"{place.scheme}://", "standard", "fsspec"):
        from fsspec import AbstractFileSystem

    class Objects(AbstractFileSystem):  # type: ignore[misc]
        protocol, cachable = _OBJECTS, False

        def _open(self, path: str, *_: Any, **__: Any) -> Any:
            held = place.filesystem.open_input_file(self._strip_protocol(path))
            return _SharedFile(held) if path.lower().endswith(_COLUMNAR) else held

        def info(self, path: str, **_: Any) -> dict[str, Any]:
            found = place.filesystem.get_file_info(self._strip_protocol(path))
            return {"name": path, "size": found.size, "type": "file", "mtime": found.mtime}

        def modified(self, path: str) -> Any:
            return self.info(path)["mtime"]

        def glob(self, path: str, **_: Any) -> list[str]:
            return [path]

    return Objects()


def _base_and_pattern(source: str) -> tuple[str, str | None]:
    """The address before the first part with a special character, and the pattern from there on.

    Examples
    --------
    >>> _base_and_pattern("s3://b/year=*/x.parquet"), _base_and_pattern("s3://b/x.parquet")
    (('s3://b', 'year=*/x.parquet'), ('s3://b/x.parquet', None))
    """
    scheme, _, rest = source.partition("://")
    parts = rest.split("/")
    special = next((i for i, part in enumerate(parts) if i and _MAGIC.search(part)), None)
    if special is None:
        return source, None
    return f"{scheme}://{'/'.join(parts[:special])}", "/".join(parts[special:])


def _as_regex(pattern: str) -> re.Pattern[str]:
    """A pattern as `glob` reads it: `*` stays within a folder, `**` goes through them, none sees what is hidden.

    Examples
    --------
    >>> [bool(_as_regex("**/[ab]*.csv").fullmatch(name)) for name in ("a1.csv", "x/y/b.csv", "x/c.csv")]
    [True, True, False]
    >>> [bool(_as_regex("a*b**[cd]*/*").fullmatch(name)) for name in ("a-b-d/x", "ab-cc.b/x", "a.c.b/x", "abd/.x")]
    [True, True, False, False]
    """
    return re.compile("".join(map(_part_as_regex, _once("**", pattern.split("/")))).removesuffix("/"), re.DOTALL)


def _part_as_regex(part: str) -> str:
    """What stands between two stars is looked for once, where it first occurs: a name is matched in linear time."""
    if part == "**":
        return r"(?:(?!\.)[^/]+/)*"
    pieces = _once("*", _PIECE.findall(part))
    stars = [k for k, piece in enumerate(pieces) if piece == "*"] or [len(pieces)]
    found = list(map(_translated, pieces))
    begin, end = "".join(found[: stars[0]]), "".join(found[stars[-1] :])
    between = ("".join(found[k + 1 : after]) for k, after in pairwise(stars))
    return r"(?!\.)" * (part[:1] != ".") + begin + "".join(f"(?>[^/]*?{fixed})" for fixed in between) + end + "/"


def _once(sign: str, pieces: list[str]) -> list[str]:
    """One sign for several in a row, which say the same."""
    return [piece for k, piece in enumerate(pieces) if piece != sign or pieces[k - 1 : k] != [sign]]


def _translated(piece: str) -> str:
    if len(piece) > 1:  # a range of characters, whose rules fnmatch knows
        anchored = re.fullmatch(r"\(\?s:(.*)\)\\[Zz]", fnmatch.translate(piece), re.DOTALL)
        assert anchored is not None
        return f"(?!/){anchored[1]}"
    return {"*": "[^/]*", "?": "[^/]"}.get(piece, re.escape(piece))
