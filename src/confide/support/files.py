"""Files: permission to overwrite them, atomic writing, reading, and locks between processes.

An output may overwrite only an earlier output of its kind.
"""

import io
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import TypeVar

from confide.errors import ConfideError, FormatError, InputError
from confide.support.file_kinds import HEAD, FileKind, kind_of, kind_of_content
from confide.support.object_stores import FileLocation, ObjectPath, as_place

# Outputs


def _output_error(path: str | FileLocation, requirement: str, remedy: str = "") -> InputError:
    return InputError("output", f"{str(path)!r} {requirement}", remedy=remedy)


def refuse_other_than_html(path: str | FileLocation) -> None:
    """Raise an error if the name of an HTML page has the ending of another kind of file."""
    if PurePath(str(path)).suffix.lower() not in ("", ".html", ".htm"):
        raise _output_error(path, "must end in .html or .htm: a page is written in HTML")


def card_or_page(path: str | FileLocation) -> FileKind:
    """The kind of a model card's output with this name: Markdown, or a page for HTML.

    Examples
    --------
    >>> print(card_or_page("README.md"), card_or_page("card.html"), sep=", ")
    a model card, a page
    """
    kinds = {".md": FileKind.CARD, ".html": FileKind.PAGE, ".htm": FileKind.PAGE}
    if (kind := kinds.get(PurePath(str(path)).suffix.lower())) is None:
        raise _output_error(path, "must end in .md for Markdown, or in .html")
    return kind


def check_not_input(path: FileLocation, inputs: Iterable[str | FileLocation | None]) -> None:
    """Raise an error before overwriting an input, also if its path differs or is a link."""
    for source in inputs:
        if source is not None and same_place(path, as_place(source)):
            raise _output_error(path, f"would replace the input {str(source)!r}", "Choose another name")


def same_place(path: FileLocation, other: FileLocation) -> bool:
    """Whether two names refer to one file, also by different paths or a link, or to one object, by different addresses.

    Examples
    --------
    >>> same_place(as_place("s3://bucket/x.csv"), as_place("s3a://bucket/x.csv"))
    True
    """
    if isinstance(path, ObjectPath) or isinstance(other, ObjectPath):
        return isinstance(path, ObjectPath) and path.can_be(other)
    try:
        return path.samefile(other)
    except OSError:  # one of them does not exist, perhaps not yet
        return os.path.realpath(path) == os.path.realpath(other)


# Reading and writing

# Largest number of bytes of a text file that is read
MOST_BYTES = 10_000_000

# What a reader of a text returns
Document = TypeVar("Document")


class OutputExistsError(InputError):
    """An output file exists already and may not be overwritten."""


def _exists(path: FileLocation) -> OutputExistsError:
    remedy = "Choose another name or give overwrite=True"
    return OutputExistsError("output", f"{str(path)!r} exists already", remedy=remedy)


@contextmanager
def new_file(
    path: str | FileLocation,
    *,
    overwrite: bool,
    kind: FileKind = FileKind.OTHER,
    what_is: Callable[[FileLocation], FileKind] = kind_of,
    private: bool = False,
) -> Iterator[Path]:
    """Context manager: a temporary path next to `path`, moved to `path` if the block succeeds and removed if not.

    `path` may exist only if `overwrite` is true and it is a file of this `kind` according to `what_is`. This is checked
    before the work and again at the end.

    For an object of a store the temporary file is in the system's folder for such files, and is uploaded if the block
    succeeds. Only the owner can read a `private` file.
    """
    path = as_place(path)
    check = partial(check_new, path, overwrite=overwrite, kind=kind, what_is=what_is)
    check()
    mode = 0o600 if private else 0o666  # from which the system removes the rights of the umask
    with _part_for_upload() if isinstance(path, ObjectPath) else _part_next_to(path, mode) as temporary:
        yield temporary
        check()  # it may exist by now
        try:
            if isinstance(path, ObjectPath):
                path.write(temporary, overwrite=overwrite)
                return
            if overwrite:
                temporary.replace(path)
            else:
                os.link(temporary, path)  # which, unlike a rename, never replaces another file
        except FileExistsError:
            raise _exists(path) from None


@contextmanager
def _part_for_upload() -> Iterator[Path]:
    """A file in the folder for temporary files, which only this user can read."""
    with tempfile.TemporaryDirectory(prefix="confide-") as folder:
        temporary = Path(folder) / "part"
        temporary.touch(0o600)
        yield temporary


@contextmanager
def _part_next_to(path: Path, mode: int) -> Iterator[Path]:
    """A file next to a path, under a name that is known before the file exists, so that interruptions clean up."""
    temporary = path.parent / f".confide-{os.urandom(8).hex()}.part"
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        yield temporary
    except OSError as error:
        raise _output_error(path, f"cannot be written: {error.strerror}") from None
    finally:
        with suppress(FileNotFoundError, NotADirectoryError):
            for left in temporary.parent.glob(f"{temporary.name}*"):  # SQLite adds files next to it
                left.unlink()


def check_new(
    path: FileLocation,
    *,
    overwrite: bool,
    kind: FileKind = FileKind.OTHER,
    what_is: Callable[[FileLocation], FileKind] = kind_of,
) -> None:
    """Raise an error for an existing output, unless it may be overwritten and is of this kind; always for a folder.

    Empty files may be overwritten.
    """
    try:
        folder = path.is_dir()
        exists = path.exists()
    except OSError as error:
        raise _output_error(path, f"cannot be written: {error.strerror}") from None
    if folder:
        raise _output_error(path, "is a folder", "Name a file")
    if not exists:
        return
    if not overwrite:
        raise _exists(path)
    existing = what_is(path)
    if existing not in (kind, FileKind.EMPTY) or kind is FileKind.OTHER:
        raise _output_error(path, f"is {existing}, and {kind} may replace nothing but {kind}", "Choose another name")


def write_text(
    path: str | FileLocation, text: str, *, overwrite: bool, durable: bool = False, private: bool = False
) -> None:
    """Write a text file, or an object in a store, atomically; the text determines which kind it may replace.

    A `durable` file always has either the old text or the new one on disk, and the new one when this returns. Only the
    owner can read a `private` file.
    """
    with new_file(path, overwrite=overwrite, kind=kind_of_content(text.encode()[:HEAD]), private=private) as temporary:
        temporary.write_text(text, encoding="utf-8")
        if durable:
            to_disk(temporary)
    if durable:
        to_disk(Path(str(path)).parent)


def read_text(path: str | FileLocation) -> str:
    """Read a small text file, or a small object in a store."""
    path = as_place(path)
    try:
        with path.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputError("path", f"{str(path)!r} cannot be read: {error.strerror}") from None
    except ConfideError:  # which a ValueError may be
        raise
    except ValueError:
        raise InputError("path", f"{str(path)!r} cannot be read: it is not a possible file name") from None

    # As text files are read: line ends become \n
    if len(content) > MOST_BYTES:
        raise FormatError("path", f"{str(path)!r} has more than {MOST_BYTES} bytes and is no file of confide")
    try:
        return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8").read()
    except UnicodeDecodeError:
        raise FormatError("path", f"{str(path)!r} is not a text file") from None


def read_as(path: str | FileLocation, reader: Callable[[str], Document]) -> Document:
    """Read a small text file with a reader of texts; errors of the reader then mention the file."""
    text = read_text(path)
    try:
        return reader(text)
    except FormatError as error:
        requirement = f"{error.requirement} (file {str(path)!r})"
        raise FormatError(error.argument, requirement, error.got, error.remedy) from None


def to_disk(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# Locks

# Seconds to wait for a lock, and before it is tried again
WAIT = 60.0
_PAUSE = 0.05


def has_locks() -> bool:
    """Whether the system has locks that end with their process; Windows does not."""
    return find_spec("fcntl") is not None


@contextmanager
def locked(path: Path, what: str, wait: float = WAIT) -> Iterator[None]:
    """Hold the lock of a file by an empty file NAME.lock, which remains; the lock ends at the latest with the process.

    If another process or thread holds the lock for longer than `wait` seconds, an error is raised.

    `what` is the name of the file in messages.
    """
    import fcntl

    try:
        handle = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise InputError(what, f"{str(path)!r} cannot be locked: {error.strerror}") from None
    try:
        # Ask again until the holder has ended, or the time is over
        until = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > until:
                    in_use = f"is in use by another process, which has not ended in {wait:g} seconds"
                    raise InputError(what, f"{str(path)!r} {in_use}", remedy="Try again later") from None
                time.sleep(_PAUSE)
        yield
    finally:
        os.close(handle)  # which releases the lock
