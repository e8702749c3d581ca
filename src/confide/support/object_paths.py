"""An object of a store, asked as a file is asked: whether it is there, what it holds, and written whole."""

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from confide.errors import InputError
from confide.support.object_stores import Address, account_of, filesystem_of, names_object, of_store, parse_address


@dataclass(frozen=True)
class ObjectPath:
    """An object, or a prefix, of an object store; asked by the names of `pathlib.Path`.

    Parameters
    ----------
    address
        Where it is.
    scheme
        What its address begins with.
    """

    address: Address
    scheme: str

    @classmethod
    def of(cls, text: str) -> "ObjectPath":
        """The object of an address."""
        return cls(parse_address(text), text.partition("://")[0].lower())

    def __str__(self) -> str:
        """The address, which holds no secret."""
        where = self.address
        if where.account is not None:
            return f"{self.scheme}://{where.bucket}@{where.account}.dfs.core.windows.net/{where.key}"
        return f"{self.scheme}://{where.path}"

    @cached_property
    def filesystem(self) -> Any:
        """The `pyarrow.fs.FileSystem`."""
        return filesystem_of(self.address)

    @property
    def where(self) -> Address:
        """What all addresses of this object have in common; of Azure with the account that is used."""
        return replace(self.address, account=account_of(self.address))

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of its name, the bucket first."""
        return tuple(self.address.path.split("/"))

    @property
    def name(self) -> str:
        """The last part of its name."""
        return self.parts[-1]

    @property
    def suffix(self) -> str:
        """What its name ends in."""
        return PurePosixPath(self.address.path).suffix

    def at(self, path: str) -> "ObjectPath":
        """Another object of the same store; `path` begins with the bucket."""
        bucket, _, key = path.partition("/")
        other = replace(self, address=replace(self.address, bucket=bucket, key=key))
        other.__dict__["filesystem"] = self.filesystem
        return other

    @cached_property
    def _kinds(self) -> Any:
        from pyarrow.fs import FileType

        return FileType

    def info(self) -> Any:
        """The `pyarrow.fs.FileInfo`, as the store has it now."""
        filesystem = self.filesystem
        with of_store(self.address, "looked at"):
            return filesystem.get_file_info(self.address.path)

    def exists(self) -> bool:
        """Whether there is such an object, or one below this prefix."""
        return bool(self.info().type != self._kinds.NotFound)

    def is_file(self) -> bool:
        """Whether there is such an object."""
        return bool(self.info().type == self._kinds.File)

    def is_dir(self) -> bool:
        """Whether there are objects below this prefix."""
        return bool(self.info().type == self._kinds.Directory)

    def check_bucket(self) -> None:
        """Refuse a bucket that does not exist."""
        if not self.at(self.address.bucket).exists():
            raise InputError(f"{str(self)!r} cannot be used: there is no such bucket")

    def below(self, *, recursive: bool = True) -> Iterator["ObjectPath"]:
        """The objects below this prefix that hold something, in the order of their names."""
        from pyarrow.fs import FileSelector

        filesystem = self.filesystem
        with of_store(self.address, "listed"):
            found = filesystem.get_file_info(FileSelector(self.address.path, recursive=recursive))
        for one in sorted(found, key=lambda info: str(info.path)):
            if one.type == self._kinds.File:
                yield self.at(one.path)

    def open(self, mode: str = "rb") -> Any:
        """The bytes of the object, as a stream that can be sought."""
        filesystem = self.filesystem
        with of_store(self.address, "read"):
            try:
                return filesystem.open_input_file(self.address.path)
            except FileNotFoundError:
                raise InputError(f"file {str(self)!r} does not exist") from None

    def read_text(self) -> str:
        """The object as a text of UTF-8."""
        with self.open() as stream, of_store(self.address, "read"):
            held = stream.read()
        return io.TextIOWrapper(io.BytesIO(held), encoding="utf-8").read()

    def write(self, file: Path) -> None:
        """Make the object of a finished file: a store shows it when it is whole, and what was there until then."""
        from pyarrow.fs import LocalFileSystem, copy_files

        filesystem, size = self.filesystem, file.stat().st_size
        with of_store(self.address, "written"):
            # In one call, which no interruption cuts: a stream that is closed early would leave a part for the whole.
            copy_files(str(file), self.address.path, LocalFileSystem(), filesystem, use_threads=False)
        if self.info().size != size:
            self.delete()
            raise InputError(f"{str(self)!r} cannot be written: the store holds another number of bytes than were sent")

    def delete(self) -> None:
        """Delete the object."""
        filesystem = self.filesystem
        with of_store(self.address, "deleted"):
            filesystem.delete_file(self.address.path)

    def delete_below(self) -> None:
        """Delete every object below this prefix, if there are any."""
        filesystem = self.filesystem
        with of_store(self.address, "deleted"):
            if self.exists():
                filesystem.delete_dir(self.address.path)


Place: TypeAlias = Path | ObjectPath
"""A file of this machine, or an object of a store."""


def as_place(place: str | Place) -> Place:
    """The object that an address names, else the file of that name.

    Examples
    --------
    >>> str(as_place("s3://bucket/released.json")), str(as_place("released.json"))
    ('s3://bucket/released.json', 'released.json')
    """
    if isinstance(place, ObjectPath):
        return place
    if isinstance(place, str) and names_object(place) and not Path(place).exists():
        return ObjectPath.of(place)
    return Path(place)
