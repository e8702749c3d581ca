"""From a name to files or objects: one file, a folder or a pattern; and the values that names of folders state."""

import glob
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from urllib.parse import unquote

from confide.errors import InputError
from confide.support import FileLocation, ObjectPath, as_integer, as_place, require
from confide.tables.file_formats import ENDINGS, ending_of, format_of


def places_named(source: str) -> list[FileLocation]:
    """The files that a name stands for: that file or object, else the files in that folder, else those of a pattern.

    The path of an existing file on this machine is taken literally, even with special characters.
    """
    place = as_place(source)
    if isinstance(place, ObjectPath) and glob.has_magic(source):
        return _of_one_format(source, "pattern", _objects_of(place))
    if place.is_file():
        return [place]
    if place.is_dir():
        files = place.below() if isinstance(place, ObjectPath) else filter(Path.is_file, place.rglob("*"))
        return _of_one_format(source, "folder", (file for file in files if not _is_temporary(file, place)))
    if not glob.has_magic(source):
        return [place]
    # `Path.glob` takes no absolute pattern.
    return _of_one_format(source, "pattern", map(Path, glob.glob(source, recursive=True)))  # noqa: PTH207


def _is_temporary(file: FileLocation, folder: FileLocation) -> bool:
    return any(name.startswith((".", "_")) for name in file.parts[len(folder.parts) :])


def _objects_of(pattern: ObjectPath) -> Iterator[ObjectPath]:
    # Only the folder before the first special character is listed
    fixed = list(takewhile(lambda name: not glob.has_magic(name), pattern.parts))
    rest = pattern.parts[len(fixed) :]
    for file in pattern.at("/".join(fixed[1:])).below(recursive="**" in rest or len(rest) > 1):
        if matches(file.parts[len(fixed) :], rest):
            yield file


@lru_cache(2**12)  # several `**` ask for the same rests again
def matches(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Whether the parts of a path match those of a pattern by the rules of `glob`.

    `*` stays within a folder, `**` crosses folders, and neither matches hidden names.

    Examples
    --------
    >>> [matches(parts, ("**", "[ab]*.csv")) for parts in (("a1.csv",), ("x", "y", "b.csv"), ("x", "c.csv"))]
    [True, True, False]
    """
    if not pattern or not parts:
        return not parts and set(pattern) <= {"**"}
    name = parts[0]
    mark = pattern[0]
    if name.startswith(".") and not mark.startswith("."):
        return mark == "**" and matches(parts, pattern[1:])
    if mark == "**":
        return matches(parts[1:], pattern) or matches(parts, pattern[1:])
    return fnmatchcase(name, mark) and matches(parts[1:], pattern[1:])


def _of_one_format(source: str, what: str, files: Iterable[FileLocation]) -> list[FileLocation]:
    """The files with known extensions, in order; raises `InputError` for none, or for several formats."""
    places = sorted((file for file in files if format_of(file)), key=lambda file: file.parts)
    must = f"{what} {source!r} must name files that end in one of {', '.join(ENDINGS)}"
    require("path", places, must, remedy="It names none of them")
    if len({format_of(file) for file in places}) > 1:
        endings = sorted({str(ending_of(file)) for file in places})
        raise InputError("files", f"files of {source!r} must be of one format", got=", ".join(endings))
    return places


_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def folder_values(place: FileLocation) -> dict[str, str | None]:
    """The values of folders such as `ward=north`, as DuckDB reads them: some characters are written as %20."""
    pairs = (folder.split("=", 1) for folder in place.parts[:-1] if folder.count("=") == 1)
    return {name: None if value == _NO_VALUE else unquote(value) for name, value in pairs}


def folder_types(places: Sequence[FileLocation], names: Collection[str]) -> dict[str, str]:
    """The columns of folders of all files, other than those of these names, with the DuckDB type of all values."""
    values: dict[str, list[str | None]] = {}
    for place in places:
        for name, value in folder_values(place).items():
            values.setdefault(name, []).append(value)
    return {
        name: "BIGINT" if all(value is None or as_integer(value) is not None for value in column) else "VARCHAR"
        for name, column in values.items()
        if name not in names and len(column) == len(places)
    }
