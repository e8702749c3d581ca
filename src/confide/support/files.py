"""Files written whole or not at all, and read with one clear line when that fails."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from confide.errors import ConfideError, FormatError, InputError
from confide.support.file_kinds import HEAD, Kind, kind_of, kind_of_content, refuse_replacing
from confide.support.object_stores import ObjectPath, Place, as_place

MOST_BYTES = 10_000_000

Document = TypeVar("Document")


class OutputExistsError(InputError):
    """An output file exists already and may not be overwritten."""


@contextmanager
def new_file(
    path: str | Place, *, overwrite: bool, kind: Kind = Kind.OTHER, what_is: Callable[[Place], Kind] = kind_of
) -> Iterator[Path]:
    """A temporary path beside `path`, moved into place when the block succeeds and removed when it does not.

    For an object of a store it lies in the folder for temporary files, and is sent when the block succeeds.

    Raises
    ------
    OutputExistsError
        If `path` exists and `overwrite` is false, checked before the work and again at the end.
    InputError
        If the folder does not exist or cannot be written; or if `path` exists and is no file of this `kind`, which
        `what_is` tells: nothing is replaced but an earlier output of the same kind.
    """
    path = as_place(path)
    refuse_existing(path, overwrite=overwrite, kind=kind, what_is=what_is)
    if isinstance(path, ObjectPath):
        with tempfile.TemporaryDirectory(prefix="confide-") as folder:  # ours alone
            part = Path(folder) / "part"
            part.touch(0o600)
            yield part
            refuse_existing(path, overwrite=overwrite, kind=kind, what_is=what_is)  # perhaps since then
            path.write(part)
        return
    part = path.parent / f".confide-{os.urandom(8).hex()}.part"  # known before it exists: an interruption removes it
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield part
        part.chmod(0o666 & ~_umask())
        if overwrite:
            if path.exists():  # perhaps since then
                refuse_replacing(path, kind, what_is)
            part.replace(path)
        else:
            try:
                os.link(part, path)
            except FileExistsError:
                raise _exists(path) from None
    except OSError as error:
        raise InputError(f"output {str(path)!r} cannot be written: {error.strerror}") from None
    finally:
        with suppress(FileNotFoundError, NotADirectoryError):
            part.unlink()


def refuse_existing(
    path: Place, *, overwrite: bool, kind: Kind = Kind.OTHER, what_is: Callable[[Place], Kind] = kind_of
) -> None:
    """Refuse an output that exists, unless it may be overwritten and is of this kind; a folder is always refused."""
    try:
        folder, exists = path.is_dir(), path.exists()
    except OSError as error:
        raise InputError(f"output {str(path)!r} cannot be written: {error.strerror}") from None
    if folder:
        raise InputError(f"output {str(path)!r} is a folder; name a file")
    if exists and not overwrite:
        raise _exists(path)
    if exists:
        refuse_replacing(path, kind, what_is)


def write_text(path: str | Place, text: str, *, overwrite: bool, durable: bool = False) -> None:
    """Write a text file, or an object of a store, atomically; what it says decides what it may replace.

    Of a `durable` file either the old text or the new one is on disk whatever happens, and when this returns the new.
    """
    with new_file(path, overwrite=overwrite, kind=kind_of_content(text.encode()[:HEAD])) as part:
        part.write_text(text, encoding="utf-8")
        if durable:
            to_disk(part)
    if durable:
        to_disk(Path(str(path)).parent)


def read_text(path: str | Place) -> str:
    """Read a small text file, or such an object of a store."""
    path = as_place(path)
    try:
        if isinstance(path, ObjectPath):
            if path.info().size and path.info().size > MOST_BYTES:
                raise FormatError(f"file {str(path)!r} has more than {MOST_BYTES} bytes and is not a calibration")
            return path.read_text()
        if path.stat().st_size > MOST_BYTES:
            raise FormatError(f"file {str(path)!r} has more than {MOST_BYTES} bytes and is not a calibration")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise FormatError(f"file {str(path)!r} is not a text file") from None
    except OSError as error:
        raise InputError(f"file {str(path)!r} cannot be read: {error.strerror}") from None
    except ConfideError:
        raise
    except ValueError:
        raise InputError(f"file {str(path)!r} cannot be read: no file has such a name") from None


def read_as(path: str | Place, reader: Callable[[str], Document]) -> Document:
    """What a reader of texts makes of a small text file; what is wrong with the text is said of the file."""
    text = read_text(path)
    try:
        return reader(text)
    except FormatError as error:
        raise FormatError(f"file {str(path)!r} cannot be used: {error}") from None


def to_disk(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _exists(path: Place) -> OutputExistsError:
    return OutputExistsError(f"output {str(path)!r} exists already; choose another name or give overwrite=True")


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
