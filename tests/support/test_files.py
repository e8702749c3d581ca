"""Files are written completely or not at all; objects of stores, for which a folder stands, have their interface."""

import glob
import os
import stat
import sys
from itertools import product
from pathlib import Path, PurePosixPath

import numpy as np
import obstore.store
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import confide
from confide.errors import FormatError, InputError
from confide.ledger import Ledger
from confide.support import ObjectPath, as_place
from confide.support.files import FileKind, OutputExistsError, new_file, write_text
from confide.tables import open_table, predict_table
from confide.tables.file_names import matches
from tests.calibrations import calibration_at
from tests.refused import refused
from tests.tables.class_records import P

RELEASE = '{"kind": "confide/release"}'


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_files_are_written_completely(tmp_path):
    with new_file(tmp_path / "a.txt", overwrite=False) as part:
        assert part.parent == tmp_path
        part.write_text("content")
        assert not (tmp_path / "a.txt").exists()
    assert (tmp_path / "a.txt").read_text() == "content"
    assert names(tmp_path) == ["a.txt"]


ERRORS = [RuntimeError(), KeyboardInterrupt(), SystemExit(), confide.errors.InputError("work", "fails")]


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("overwrite", [False, True])
def test_nothing_remains_if_the_work_fails(tmp_path, error, overwrite):
    path = tmp_path / "a.txt"
    if overwrite:
        path.write_text(RELEASE)

    def work():
        with new_file(path, overwrite=overwrite, kind=FileKind.RELEASE) as part:
            part.write_text("half")
            raise error

    with pytest.raises(type(error)):
        work()
    assert names(tmp_path) == (["a.txt"] if overwrite else [])
    assert not overwrite or path.read_text() == RELEASE


def test_an_existing_file_raises_before_the_work(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("before")
    with refused(OutputExistsError, "output"), new_file(path, overwrite=False):
        pytest.fail("the work must not begin")
    assert path.read_text() == "before"
    assert names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize(("before", "kind"), [(None, OutputExistsError), (RELEASE, confide.errors.InputError)])
def test_a_file_that_appears_during_the_work_stays(tmp_path, before, kind):
    """Where nothing was there, and where an earlier output may be replaced."""
    path = tmp_path / "a.txt"
    if before is not None:
        path.write_text(before)

    def work():
        with new_file(path, overwrite=before is not None, kind=FileKind.RELEASE) as part:
            part.write_text(RELEASE)
            path.write_text("theirs")

    with refused(kind, "output"):
        work()
    assert path.read_text() == "theirs"
    assert names(tmp_path) == ["a.txt"]


def test_overwriting_replaces_in_one_step(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text(RELEASE)
    reader = path.open()
    write_text(path, RELEASE + "\n", overwrite=True)
    with reader:
        assert reader.read() == RELEASE  # an open file is still readable
    assert path.read_text() == RELEASE + "\n"


def test_only_an_earlier_output_of_the_same_kind_is_replaced(tmp_path):
    path = tmp_path / "a.txt"
    for before in ("p_a,p_b\n", '{"kind": "confide/ledger"}', '{"other": "confide/levels"}'):
        path.write_text(before)
        with refused(confide.errors.InputError, "output"):
            write_text(path, RELEASE, overwrite=True)
        assert path.read_text() == before
    path.write_text("")
    write_text(path, RELEASE, overwrite=True)
    assert path.read_text() == RELEASE
    with refused(confide.errors.InputError, "output"):
        write_text(path, "text of no kind", overwrite=True)


def test_errors_of_the_disk_are_one_line(tmp_path):
    with refused(confide.errors.InputError, "output"), new_file(tmp_path / "a.txt", overwrite=False):
        raise OSError(28, os.strerror(28))
    assert names(tmp_path) == []


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_permissions_are_the_usual_ones(tmp_path, umask):
    before = os.umask(umask)
    try:
        write_text(tmp_path / "a.txt", "x", overwrite=False)
        assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o666 & ~umask
        assert os.umask(umask) == umask
    finally:
        os.umask(before)


def test_a_durable_file_is_on_disk_before_its_name_is(tmp_path, monkeypatch):
    """First the text, then the name in its folder; otherwise a power failure could leave an empty file."""
    steps, replace = [], Path.replace

    def synced(handle):
        steps.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "text")

    def moved(part, path):
        steps.append("name")
        return replace(part, path)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", moved)
    write_text(tmp_path / "a.json", "{}", overwrite=True, durable=True)
    assert steps == ["text", "name", "folder"]
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == "{}"


RELEASED = calibration_at(confide.Candidates.unit(10).edges[7])


@pytest.fixture
def bucket(tmp_path, monkeypatch):
    """A folder as every bucket."""
    folder = tmp_path / "store" / "b"
    monkeypatch.setattr(ObjectPath, "store", obstore.store.LocalStore(folder, mkdir=True))
    return folder


@pytest.mark.parametrize(
    "text",
    [
        *("s3://key:hidden@bucket/x.csv", "s3://hidden@bucket/x.csv", "gs://bucket/x.csv?token=hidden", "s3:///hidden"),
        *("az://hidden@bucket/x.csv", "abfss://c@hidden.example.org/x", "s3://bucket/?access_key=hidden&secret_key=y"),
    ],
)
def test_possible_secrets_raise_and_are_not_printed(text):
    for call in (ObjectPath.of, lambda address: open_table(address).__enter__()):
        with refused(InputError, "address") as caught:
            call(text)
        assert "hidden" not in str(caught.value)


def test_one_object_has_several_addresses():
    azure = as_place("abfss://c@account.dfs.core.windows.net/x/y.csv")
    assert (azure.parts, azure.name, azure.suffix) == (("c", "x", "y.csv"), "y.csv", ".csv")
    assert str(azure) == "abfss://c@account.dfs.core.windows.net/x/y.csv"
    assert as_place("az://c/x/y.csv").can_be(azure)
    assert not as_place("abfss://c@other.dfs.core.windows.net/x/y.csv").can_be(azure)
    assert as_place("s3a://b/x").can_be(as_place("s3://b/x/"))
    assert not as_place("gs://b/x").can_be(as_place("s3://b/x"))
    for name in ("s3://b/x//y", "s3://b/./x", "gs://b/x/../y", "az://c/x/."):
        with refused(InputError, "address"):
            as_place(name)
    assert as_place("s3://b/.x/y..z").key == ".x/y..z"


@pytest.mark.parametrize("name", ["s3://b/a\nb", "s3://a b/x", "s3://b/\x00y"])
def test_names_that_no_object_has(monkeypatch, name):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    with refused(InputError, "address") as caught:
        as_place(name).exists()
    assert "no object can have such a name" in str(caught.value)


@pytest.mark.parametrize("scheme", ["s3", "s3a", "gs", "gcs", "az", "abfs", "abfss"])
def test_every_scheme_has_a_store(monkeypatch, scheme):
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    family = {"s": obstore.store.S3Store, "g": obstore.store.GCSStore, "a": obstore.store.AzureStore}[scheme[0]]
    assert isinstance(as_place(f"{scheme}://b/x").store, family)
    if family is obstore.store.AzureStore:
        monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME")
        assert isinstance(as_place(f"{scheme}://b@account.blob.core.windows.net/x").store, family)
        with refused(InputError, "address"):
            as_place(f"{scheme}://b/x").exists()


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        ("*.csv", ["a.csv", "[.csv"], [".csv", "a/b.csv", "a.csvx", "axcsv"]),
        ("p?-[0-9].csv", ["p1-7.csv"], ["p-7.csv", "p/-7.csv", "p1-x.csv"]),
        ("a*b**[cd]*/*", ["a-b-d/x", "ab-cc.b/x"], ["a.c.b/x", "abd/.x"]),
        ("*a" * 40 + "b", ["a" * 40 + "b"], ["a" * 99]),  # both take little time
        ("*" * 40, ["a" * 99], ["b/a"]),
        ("**/x[!a].csv", ["xb.csv", "u/v/xb.csv"], ["xa.csv", "uxb.csv", ".u/xb.csv"]),
        ("year=*/**/*.csv", ["year=1/a.csv", "year=1/u/a.csv"], ["year=1.csv", "a.csv"]),
        ("x[z-a]*[b--c]", [], ["xz", "xb-"]),
        ("[]-]x[^y].(1)", ["]x^.(1)", "-xy.(1)"], ["ax^.(1)", "]xz.(1)"]),
    ],
)
def test_patterns_are_those_of_folders(tmp_path, pattern, inside, outside):
    for name in (*inside, *outside):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    parts = tuple(pattern.split("/"))
    assert {name for name in (*inside, *outside) if matches(tuple(name.split("/")), parts)} == set(inside)
    found = {Path(name).as_posix() for name in glob.glob(pattern, root_dir=tmp_path, recursive=True)}  # noqa: PTH207
    assert found & {*inside, *outside} == set(inside)


def test_a_release_is_written_and_read(bucket):
    address = "gs://b/a/released.json"
    RELEASED.save(address)
    assert confide.Release.load(address) == RELEASED
    with refused(OutputExistsError, "output"):
        RELEASED.save(address)
    RELEASED.save(address, overwrite=True)
    with refused(InputError, "output"):
        write_text(address, "something else", overwrite=True)
    with refused(InputError, "path"):
        confide.Release.load("gs://b/none.json")
    (bucket / "bytes.json").write_bytes(b"\xff\xfe")
    with refused(FormatError, "path"):
        confide.Release.load("gs://b/bytes.json")
    assert sorted(path.name for path in bucket.rglob("*.json")) == ["bytes.json", "released.json"]


@pytest.mark.parametrize("out", ["x.parquet", "folder"])
def test_of_two_jobs_that_write_one_name_the_second_raises_an_error(bucket, out):
    """The other job writes after this one has looked."""
    other = bucket / ("folder/part-0.parquet" if out == "folder" else out)

    def batches():
        yield pa.table({f"p_{k}": P[:, k] for k in range(5)})
        other.parent.mkdir(exist_ok=True)
        other.write_bytes(b"of the other job")

    with refused(OutputExistsError, "output"):
        predict_table(batches(), confide.tables.ClassColumns("p_*"), RELEASED, f"s3://b/{out}")
    assert [path.read_bytes() for path in bucket.rglob("*") if path.is_file()] == [b"of the other job"]


def test_sets_and_folders(bucket):
    bucket.mkdir(exist_ok=True)
    pq.write_table(pa.table({f"p_{k}": P[:, k] for k in range(5)} | {"i": np.arange(len(P))}), bucket / "in.parquet")
    what = confide.tables.ClassColumns("p_*")
    predict_table("s3://b/in.parquet", what, RELEASED, "s3://b/sets.parquet")
    with open_table("s3://b/sets.parquet") as written:
        assert written.counted_rows() == len(P)
        assert written.columns == ["i", "prediction_set", "set_size"]
    for source, out in product(("s3://b/i*.parquet", "s3://b/in.parquet"), ("s3://b/in.parquet", "s3a://b/in.parquet")):
        with refused(InputError, "output"):
            predict_table(source, what, RELEASED, out, overwrite=True)
    (bucket / "folder.csv").mkdir()
    (bucket / "folder.csv" / "x").touch()
    with refused(InputError, "output"):
        predict_table("s3://b/in.parquet", what, RELEASED, "s3://b/folder.csv", overwrite=True)
    before = (bucket / "sets.parquet").read_bytes()
    wrong = confide.tables.ClassColumns(("p_0", "p_1", "p_2", "p_3", "i"), classes=range(5))
    with refused(InputError, "table"):
        predict_table("s3://b/in.parquet", wrong, RELEASED, "s3://b/sets.parquet", overwrite=True)
    assert (bucket / "sets.parquet").read_bytes() == before


def test_an_object_has_the_interface_of_a_file(bucket):
    bucket.mkdir(exist_ok=True)
    (bucket / "x.txt").write_bytes(b"0123456789")
    with as_place("s3://b/x.txt").open() as stream:
        assert (stream.read(3), stream.seek(-2, 2), stream.read(), stream.read()) == (b"012", 8, b"89", b"")
    assert PurePosixPath((as_place("s3://b") / "x.txt").key) == PurePosixPath("x.txt")


def test_a_ledger_cannot_be_stored_there():
    with refused(InputError, "ledger"):
        Ledger("s3://b/budget.db")


@pytest.mark.parametrize("package", ["obstore", "fsspec"])
def test_without_the_packages_the_extra_is_named(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with refused(confide.errors.MissingExtraError, "s3://"):
        as_place("s3://b/x").exists()
