"""Addresses, credentials and objects of stores without a store: a folder replaces it, and nothing is sent."""

from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

import confide
from confide import FormatError, InputError
from confide.ledger import Ledger
from confide.support import (
    Address,
    OutputExistsError,
    as_place,
    object_stores,
    write_text,
)
from confide.support.object_stores import filesystem_of, parse_address, store_words
from confide.tables import open_table, predict_table
from confide.tables.files import _as_regex
from tests.calibrations import calibration_at
from tests.refused import refused
from tests.tables.class_records import P

RELEASED = calibration_at(confide.Candidates.unit(10).edges[7])
SET = (
    "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION", "STORAGE_EMULATOR_HOST",
    "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN",
)  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    for name in SET:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def bucket(tmp_path, monkeypatch):
    """A folder as the bucket `b` of every store."""
    (tmp_path / "store" / "b").mkdir(parents=True)
    held = pyarrow.fs.SubTreeFileSystem(str(tmp_path / "store"), pyarrow.fs.LocalFileSystem())
    monkeypatch.setattr(object_stores, "filesystem_of", lambda address: held)
    return tmp_path / "store" / "b"


@pytest.fixture
def asked(monkeypatch):
    """The arguments for pyarrow's file systems."""
    made = []
    for name in ("S3FileSystem", "GcsFileSystem", "AzureFileSystem"):
        monkeypatch.setattr(pyarrow.fs, name, lambda *given, _name=name, **named: made.append((_name, given, named)))
    return made


@pytest.mark.parametrize(
    "text",
    [
        *("s3://key:hidden@bucket/x.csv", "s3://hidden@bucket/x.csv", "gs://bucket/x.csv?token=hidden", "s3:///hidden"),
        *("az://hidden@bucket/x.csv", "abfss://c@hidden.example.org/x", "s3://bucket/?access_key=hidden&secret_key=y"),
    ],
)
def test_possible_secrets_raise_and_are_not_printed(text):
    for call in (parse_address, lambda address: open_table(address).__enter__()):
        with refused(InputError, "address") as caught:
            call(text)
        assert "hidden" not in str(caught.value)


def test_one_object_has_several_addresses():
    assert (
        as_place("s3a://b/x").address == as_place("s3://b//x".replace("//x", "/x")).address == Address("s3", "b", "x")
    )
    azure = as_place("abfss://c@account.dfs.core.windows.net/x/y.csv")
    assert (azure.address.path, azure.address.account, azure.name, azure.suffix) == (
        "c/x/y.csv",
        "account",
        "y.csv",
        ".csv",
    )
    assert str(azure) == "abfss://c@account.dfs.core.windows.net/x/y.csv"
    with refused(InputError, "address"):
        as_place("s3://b/x//y")
    for name in ("s3://b/./x", "gs://b/x/../y", "az://c/x/."):
        with refused(InputError, "address"):
            as_place(name)
    assert as_place("s3://b/.x/y..z").address.key == ".x/y..z"


def test_google_and_azure_use_the_environment(asked, monkeypatch):
    filesystem_of(Address("gs", "b", ""))
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "localhost:9023")
    filesystem_of(Address("gs", "b", ""))
    with refused(InputError, "address"):
        filesystem_of(Address("az", "c", ""))
    filesystem_of(Address("az", "c", "", "account"))
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "sas")
    filesystem_of(Address("az", "c", "", "account"))
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "mine")
    monkeypatch.setenv("AZURE_STORAGE_KEY", "key==")
    filesystem_of(Address("az", "c", ""))
    for name in SET:
        monkeypatch.delenv(name, raising=False)
    place = "http://127.0.0.1:10000/devstoreaccount1"
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", f"AccountName=dev;AccountKey=ab==;BlobEndpoint={place};")
    filesystem_of(Address("az", "c", ""))
    patient = {"retry_time_limit": timedelta(seconds=60)}
    local = {f"{kind}_storage_authority": "127.0.0.1:10000" for kind in ("blob", "dfs")}
    local |= {f"{kind}_storage_scheme": "http" for kind in ("blob", "dfs")}
    assert asked == [
        ("GcsFileSystem", (), patient),
        ("GcsFileSystem", (), {"anonymous": True, "endpoint_override": "localhost:9023", "scheme": "http", **patient}),
        ("AzureFileSystem", ("account",), {}),
        ("AzureFileSystem", ("account",), {"sas_token": "sas"}),
        ("AzureFileSystem", ("mine",), {"account_key": "key=="}),
        ("AzureFileSystem", ("dev",), {"account_key": "ab==", **local}),
    ]


@pytest.mark.parametrize(
    ("family", "text", "says"),
    [
        (
            "s3",
            "AWS Error ACCESS_DENIED during HeadObject operation: No response body.",
            "no permission .* AWS_PROFILE",
        ),
        (
            "s3",
            "AWS Error INVALID_ACCESS_KEY_ID during ListObjectsV2 operation",
            "credentials are rejected.* AWS_PROFILE",
        ),
        ("s3", "AWS Error UNKNOWN (HTTP status 301) ... PERMANENT_REDIRECT", "another region; set AWS_REGION"),
        ("gs", "google::cloud::Status(PERMISSION_DENIED: ...)", "no permission .* GOOGLE_APPLICATION_CREDENTIALS"),
        ("az", "Azure Error: AuthenticationFailed", "credentials are rejected.* AZURE_STORAGE_KEY"),
        ("az", "Fail to get a new connection for: https://...", "cannot be reached.* AZURE_STORAGE_CONNECTION_STRING"),
        ("s3", "AWS Error SLOW_DOWN during PutObject", "the store rejects the request"),
    ],
)
def test_failures_contain_a_remedy(family, text, says):
    import re

    assert re.search(says, store_words(Address(family, "b", "k"), OSError(text)))
    assert store_words(Address(family, "b", "k"), ValueError("Couldn't deserialize thrift")) is None


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        ("*.csv", ["a.csv", "[.csv"], [".csv", "a/b.csv", "a.csvx", "axcsv"]),
        ("p?-[0-9].csv", ["p1-7.csv"], ["p-7.csv", "p/-7.csv", "p1-x.csv"]),
        ("a*b**[cd]*/*", ["a-b-d/x", "ab-cc.b/x"], ["a.c.b/x", "abd/.x"]),
        ("*a" * 40 + "b", ["a" * 40 + "b"], ["a" * 99]),  # both take little time
        ("*" * 40, ["a" * 99], ["b/a"]),
        ("**/x[!a].csv", ["xb.csv", "u/v/xb.csv"], ["xa.csv", "uxb.csv"]),
        ("year=*/**/*.csv", ["year=1/a.csv", "year=1/u/a.csv"], ["year=1.csv", "a.csv"]),
        ("x[z-a]*[b--c]", [], ["xz", "xb-"]),
        ("[]-]x[^y].(1)", ["]x^.(1)", "-xy.(1)"], ["ax^.(1)", "]xz.(1)"]),
    ],
)
def test_patterns_are_those_of_folders(tmp_path, pattern, inside, outside):
    import glob

    for name in (*inside, *outside):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    matched = {name for name in (*inside, *outside) if _as_regex(pattern).fullmatch(name)}
    assert matched == set(inside)
    found = {Path(name).as_posix() for name in glob.glob(pattern, root_dir=tmp_path, recursive=True)}  # noqa: PTH207
    assert found & {*inside, *outside} == set(inside)


def test_a_release_is_written_and_read(bucket):
    released, address = RELEASED, "gs://b/a/released.json"
    bucket.joinpath("a").mkdir()
    released.save(address)
    assert confide.Release.load(address) == released
    with refused(OutputExistsError, "output"):
        released.save(address)
    released.save(address, overwrite=True)
    with refused(InputError, "output"):
        write_text("gs://b/a/released.json", "something else", overwrite=True)
    with refused(InputError, "path"):
        confide.Release.load("gs://b/none.json")
    (bucket / "bytes.json").write_bytes(b"\xff\xfe")
    with refused(FormatError, "path"):
        confide.Release.load("gs://b/bytes.json")
    assert sorted(path.name for path in bucket.rglob("*.json")) == ["bytes.json", "released.json"]


def test_no_partial_object_remains(bucket, monkeypatch):
    def half(source, target, *_, **__):
        (bucket / Path(target).name).write_bytes(Path(source).read_bytes()[:10])

    monkeypatch.setattr(pyarrow.fs, "copy_files", half)
    with refused(InputError, "address"):
        RELEASED.save("s3://b/x.json")
    assert not (bucket / "x.json").exists()


def test_sets_and_folders(bucket):
    pq.write_table(pa.table({f"p_{k}": P[:, k] for k in range(5)} | {"i": np.arange(len(P))}), bucket / "in.parquet")
    released, what = RELEASED, confide.tables.ClassColumns("p_*")
    predict_table("s3://b/in.parquet", what, released, "s3://b/sets.parquet")
    with open_table("s3://b/sets.parquet") as written:
        assert written.counted_rows() == len(P)
        assert written.columns == ["i", "prediction_set", "set_size"]
    with refused(InputError, "output"):
        predict_table("s3://b/i*.parquet", what, released, "s3://b/in.parquet", overwrite=True)
    with refused(InputError, "output"):
        predict_table("s3://b/in.parquet", what, released, "s3a://b/in.parquet", overwrite=True)
    (bucket / "folder.csv" / "x").mkdir(parents=True)
    with refused(InputError, "output"):
        predict_table("s3://b/in.parquet", what, released, "s3://b/folder.csv", overwrite=True)
    before = (bucket / "sets.parquet").read_bytes()
    wrong = confide.tables.ClassColumns(("p_0", "p_1", "p_2", "p_3", "i"), classes=range(5))
    with refused(InputError, "table"):
        predict_table("s3://b/in.parquet", wrong, released, "s3://b/sets.parquet", overwrite=True)
    assert (bucket / "sets.parquet").read_bytes() == before


def test_a_ledger_cannot_be_stored_there():
    with refused(InputError, "ledger"):
        Ledger("s3://b/budget.db")


def test_without_pyarrow_the_extra_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow.fs", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with refused(confide.errors.MissingExtraError, "s3://"):
        as_place("s3://b/x").exists()
    assert object_stores
