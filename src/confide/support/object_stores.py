"""Locations other than local files: addresses of PostgreSQL servers, and object stores."""

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from confide.errors import InputError
from confide.support.installed import needs_extra

_SCHEMES = ("postgresql://", "postgres://")
_NAMED = r"[^?@/:=& ]*"  # a password whose `?` is missing contains `=`
_HOST = r"(?:\[[\w.:%]*\]|[\w.%~-]*)(?::\d*)?"
_ADDRESS = re.compile(
    rf"(?P<scheme>postgres(?:ql)?://)(?:(?P<user>{_NAMED})(?::[^/]*)?@)?"
    rf"(?P<place>{_HOST}(?:,{_HOST})*(?:/{_NAMED})?)(?:\?(?P<options>.*))?",
    re.IGNORECASE | re.DOTALL,
)


def names_server(place: object) -> bool:
    """Whether a text is the address of a PostgreSQL server.

    Examples
    --------
    >>> names_server("postgresql://me@host/db"), names_server("budget.db")
    (True, False)
    """
    return isinstance(place, str) and place.lower().startswith(_SCHEMES)


def shown_address(address: str) -> str:
    """The printable part of a server's address: user, hosts and database; neither password nor options.

    Nothing is printed of a text that does not look like an address: any part of it could be a password.

    Examples
    --------
    >>> shown_address("postgresql://me:a?b@host:5432/db?sslpassword=x")
    'postgresql://me@host:5432/db'
    >>> shown_address("postgresql://me:a/b@host/db")
    'postgresql://...'
    >>> shown_address("postgresql://me@host/dbsslpassword=x")
    'postgresql://...'
    >>> shown_address("budget.db")
    '...'
    """
    match = _ADDRESS.fullmatch(address)
    if match is None or (match["user"] is None and "@" in (match["options"] or "")):
        scheme, found_scheme, _ = address.partition("://")
        return f"{scheme}://..." if found_scheme else "..."
    user = "" if match["user"] is None else f"{match['user']}@"
    shown = f"{match['scheme']}{user}{match['place']}"
    return shown if shown.isprintable() else f"{match['scheme']}..."


_SECRET = re.compile(r"[^/?@]*:[^;]*@|.*[?&;](ssl)?(password|token)=", re.IGNORECASE | re.DOTALL)


def has_password(address: str) -> bool:
    """Whether an address contains a password or a token, before its host or among its options.

    Examples
    --------
    >>> [has_password(f"postgresql://{rest}") for rest in ("me:secret@host", "host/db?password=x", "me@host:5432/db")]
    [True, True, False]
    >>> has_password("duckdb:///folder/a:b@c.duckdb")
    False
    """
    _, scheme, rest = address.partition("://")
    return bool(scheme) and _SECRET.match(rest) is not None


# Object stores by pyarrow's file systems: Amazon S3 and compatible stores, Google Cloud Storage, Azure Blob Storage.
#
# Credentials come from the usual place of each provider, never from an address. Errors of a store may contain names,
# and are replaced by fixed texts. An object has the interface of a file: existence, kind and content. It is written as
# a whole.


_FAMILIES = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "az", "abfss": "az"}
_OF_STORE = re.compile(
    r"(?P<scheme>[a-z0-9]+)://(?P<bucket>[^/?#@:*\[\]]+)(?P<at>@[^/?#]*)?(?:/(?P<key>.*))?", re.IGNORECASE | re.DOTALL
)
_ACCOUNT = re.compile(r"@([a-z0-9]{3,24})\.(dfs|blob)\.core\.windows\.net")
_SECONDS = timedelta(seconds=60)

_BEGINS = {
    "s3": "AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a role of the machine",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, or `gcloud auth application-default login`, or a role of the machine",
    "az": "AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or AZURE_STORAGE_CONNECTION_STRING, or `az login`, or a role of "
    "the machine",
}
_WORDS: tuple[tuple[str, str], ...] = (
    (r"NO_SUCH_BUCKET|ContainerNotFound|bucket does not exist|Bucket '[^']*' not found", "there is no such bucket"),
    (
        r"INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|INVALID_CLIENT_TOKEN_ID|EXPIRED_TOKEN|InvalidToken|ExpiredToken"
        r"|AuthenticationFailed|kUnauthenticated|UNAUTHENTICATED|Permanent error.*401|HTTP Status Code: 401",
        "the credentials are rejected; they are taken from {credentials}",
    ),
    (
        r"PERMANENT_REDIRECT|Moved Permanently|AuthorizationHeaderMalformed|HTTP Status Code: 301|configured region",
        "the bucket is in another region; set AWS_REGION",
    ),
    (
        r"ACCESS_DENIED|AccessDenied|Forbidden|kPermissionDenied|PERMISSION_DENIED|AuthorizationFailure"
        r"|AuthorizationPermissionMismatch|HTTP Status Code: 403|DefaultAzureCredential"
        r"|Could not (create|find).*credential",
        "there is no permission to do that, or there are no credentials; they are taken from {credentials}",
    ),
    (
        r"NETWORK_CONNECTION|curlCode|Could not resolve|Couldn't resolve|Connection refused|Could not connect"
        r"|kUnavailable|UNAVAILABLE|Retry policy exhausted|Fail to get a new connection|REQUEST_TIMEOUT",
        "it cannot be reached; check the network, and {endpoint} if it is a server of your own",
    ),
    (r"AWS Error|google::cloud::Status|Azure Error|HTTP Status Code", "the store rejects the request"),
)
_ENDPOINTS = {"s3": "AWS_ENDPOINT_URL", "gs": "STORAGE_EMULATOR_HOST", "az": "AZURE_STORAGE_CONNECTION_STRING"}


def names_object(place: object) -> bool:
    """Whether a text is an address of an object store.

    Examples
    --------
    >>> names_object("s3://bucket/x.parquet"), names_object("bucket/x.parquet"), names_object("hdfs://host/x")
    (True, False, False)
    """
    return isinstance(place, str) and "://" in place and place.partition("://")[0].lower() in _FAMILIES


@dataclass(frozen=True)
class Address:
    """The location of an object, or of the objects below a prefix.

    Parameters
    ----------
    family
        `s3`, `gs` or `az`.
    bucket
        The bucket; Azure calls it a container.
    key
        The name in the bucket, without a slash at its ends.
    account
        For Azure: the storage account in the address.
    """

    family: str
    bucket: str
    key: str
    account: str | None = None

    @property
    def path(self) -> str:
        """The path for pyarrow's file systems."""
        return f"{self.bucket}/{self.key}" if self.key else self.bucket


def parse_address(text: str) -> Address:
    """Parse an address.

    Raises
    ------
    InputError
        If it contains a user, a key or options, which no message repeats.

    Examples
    --------
    >>> parse_address("s3://bucket/a/x.parquet").path
    'bucket/a/x.parquet'
    >>> parse_address("abfss://container@account.dfs.core.windows.net/x.csv").account
    'account'
    """
    match = _OF_STORE.fullmatch(text)
    scheme = text.partition("://")[0].lower()
    family = _FAMILIES[scheme]
    account = _ACCOUNT.fullmatch((match["at"] or "").lower()) if match and family == "az" else None
    key = "" if match is None else (match["key"] or "")
    if match is None or (match["at"] and account is None) or re.search(r"\?[^/]*=", key):
        wanted = (
            "CONTAINER/NAME, or abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/NAME"
            if family == "az"
            else "BUCKET/NAME"
        )
        raise InputError(
            "address",
            (
                f"{scheme}://... must be {scheme}://{wanted}, without keys or options: credentials are taken "
                f"from {_BEGINS[family]}"
            ),
        )
    if "//" in key:
        raise InputError("address", f"{text!r} must not have an empty part between two slashes")
    if not {".", ".."}.isdisjoint(key.split("/")):  # stores and their clients interpret these differently
        raise InputError("address", f"{text!r} must not have a part that is . or ..", remedy="Write it without")
    return Address(family, match["bucket"], key.strip("/"), None if account is None else account[1])


def filesystem_of(address: Address) -> Any:
    """The `pyarrow.fs.FileSystem` of an address."""
    with needs_extra(f"{address.family}://", "standard"):
        import pyarrow.fs  # noqa: F401
    with of_store(address):
        if address.family == "s3":
            return _s3(address.bucket)
        return _google() if address.family == "gs" else _azure(address)


def _s3(bucket: str) -> Any:
    """Keys, profiles and roles come from the library of AWS; the region is the bucket's."""
    from pyarrow.fs import S3FileSystem, resolve_s3_region

    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if endpoint:
        return S3FileSystem(endpoint_override=endpoint, region=region or "us-east-1")
    try:
        return S3FileSystem(region=resolve_s3_region(bucket))
    except OSError:
        if region is None:
            raise
        return S3FileSystem(region=region)


def _google() -> Any:
    """Application default credentials; none for an emulator at STORAGE_EMULATOR_HOST."""
    from pyarrow.fs import GcsFileSystem

    scheme, _, host = os.environ.get("STORAGE_EMULATOR_HOST", "").rstrip("/").rpartition("://")
    if not host:
        return GcsFileSystem(retry_time_limit=_SECONDS)
    return GcsFileSystem(anonymous=True, endpoint_override=host, scheme=scheme or "http", retry_time_limit=_SECONDS)


def account_of(address: Address) -> str | None:
    """Azure's storage account: from the address, else from the environment; None for other stores."""
    if address.family != "az":
        return None
    return address.account or os.environ.get("AZURE_STORAGE_ACCOUNT") or _connection().get("AccountName")


def _connection() -> dict[str, str]:
    """The parts of Azure's connection string."""
    held = os.environ.get("AZURE_STORAGE_CONNECTION_STRING", "")
    return {name: value for name, _, value in (part.partition("=") for part in held.split(";"))}


def _azure(address: Address) -> Any:
    """A connection string, a key or a SAS token from the environment, else Azure's default credentials."""
    from pyarrow.fs import AzureFileSystem

    account, connection = account_of(address), _connection()
    if account is None:
        raise InputError(
            "address",
            (
                "az:// needs the storage account: set AZURE_STORAGE_ACCOUNT or "
                "AZURE_STORAGE_CONNECTION_STRING, or name it as in "
                "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/NAME"
            ),
        )
    given: dict[str, Any] = {}
    key = os.environ.get("AZURE_STORAGE_KEY") or connection.get("AccountKey")
    token = os.environ.get("AZURE_STORAGE_SAS_TOKEN") or connection.get("SharedAccessSignature")
    if key:
        given["account_key"] = key
    elif token:
        given["sas_token"] = token
    scheme, _, authority = connection.get("BlobEndpoint", "").rpartition("://")
    if authority:  # an emulator has the account in its path, which pyarrow adds
        place = authority.partition("/")[0]
        given |= {"blob_storage_authority": place, "blob_storage_scheme": scheme}
        given |= {"dfs_storage_authority": place, "dfs_storage_scheme": scheme}
    return AzureFileSystem(account, **given)


@contextmanager
def of_store(address: Address, doing: str = "used") -> Iterator[None]:
    """Replace every error of a store by one with a remedy and without further details."""
    try:
        yield
    except OSError as error:
        reason = store_words(address, error) or "the store rejects the request"
        shown = f"{address.family}://{address.path}"
        raise InputError("address", f"{shown!r} cannot be {doing}: {reason}") from None


def store_words(address: Address, error: Exception) -> str | None:
    """The meaning of a store's error in words; None for an error of another kind.

    Examples
    --------
    >>> store_words(Address("s3", "b", "k"), OSError("AWS Error NO_SUCH_BUCKET during ..."))
    'there is no such bucket'
    """
    text = str(error)
    for marks, words in _WORDS:
        if re.search(marks, text, re.DOTALL):
            return words.format(credentials=_BEGINS[address.family], endpoint=_ENDPOINTS[address.family])
    return None


@dataclass(frozen=True)
class ObjectPath:
    """An object, or a prefix, in an object store, with methods named as those of `pathlib.Path`.

    Parameters
    ----------
    address
        Its location.
    scheme
        The scheme of its address.
    """

    address: Address
    scheme: str

    @classmethod
    def of(cls, text: str) -> "ObjectPath":
        """The object with this address."""
        return cls(parse_address(text), text.partition("://")[0].lower())

    def __str__(self) -> str:
        """The address, which contains no secret."""
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
        """The canonical address of this object; for Azure with the account."""
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
        """The suffix of its name."""
        return PurePosixPath(self.address.path).suffix

    def at(self, path: str) -> "ObjectPath":
        """Another object in the same store; `path` begins with the bucket."""
        bucket, _, key = path.partition("/")
        other = replace(self, address=replace(self.address, bucket=bucket, key=key))
        other.__dict__["filesystem"] = self.filesystem
        return other

    @cached_property
    def _kinds(self) -> Any:
        from pyarrow.fs import FileType

        return FileType

    def info(self) -> Any:
        """The current `pyarrow.fs.FileInfo` of the object."""
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
        """Raise an error for a bucket that does not exist."""
        if not self.at(self.address.bucket).exists():
            raise InputError("address", f"{str(self)!r} cannot be used: there is no such bucket")

    def below(self, *, recursive: bool = True) -> Iterator["ObjectPath"]:
        """The objects below this prefix that are not empty, in the order of their names."""
        from pyarrow.fs import FileSelector

        filesystem = self.filesystem
        with of_store(self.address, "listed"):
            entries = filesystem.get_file_info(FileSelector(self.address.path, recursive=recursive))
        for entry in sorted(entries, key=lambda info: str(info.path)):
            if entry.type == self._kinds.File:
                yield self.at(entry.path)

    def open(self, mode: str = "rb") -> Any:
        """The bytes of the object, as a seekable stream."""
        filesystem = self.filesystem
        with of_store(self.address, "read"):
            try:
                return filesystem.open_input_file(self.address.path)
            except FileNotFoundError:
                raise InputError("path", f"{str(self)!r} does not exist") from None

    def read_text(self) -> str:
        """The object as text in UTF-8."""
        with self.open() as stream, of_store(self.address, "read"):
            held = stream.read()
        return io.TextIOWrapper(io.BytesIO(held), encoding="utf-8").read()

    def write(self, file: Path) -> None:
        """Upload a finished file: the store shows the old content until the new one is complete."""
        from pyarrow.fs import LocalFileSystem, copy_files

        filesystem, size = self.filesystem, file.stat().st_size
        with of_store(self.address, "written"):
            # In one call, which no interruption splits: a stream that is closed early would leave a partial object.
            copy_files(str(file), self.address.path, LocalFileSystem(), filesystem, use_threads=False)
        if self.info().size != size:
            self.delete()
            raise InputError(
                "address", f"{str(self)!r} cannot be written: the store has another number of bytes than were sent"
            )

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


FileLocation: TypeAlias = Path | ObjectPath
"""A local file, or an object in a store."""


def as_place(place: str | FileLocation) -> FileLocation:
    """The object with this address, or else the file with this name.

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
