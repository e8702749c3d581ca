"""Objects of S3 and of Azure's store, read and written as files are; this module starts the servers.

S3 is moto's, which checks signatures and permissions. Azure's is an emulator, which needs npm.
"""

import gzip
import os
from itertools import count

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import confide
from confide.cli.app import main
from confide.core import Release, load_release
from confide.errors import FormatError, InputError
from confide.support import ObjectReader, OutputExistsError, as_place
from confide.tables import ClassColumns, ScoreColumn, calibrate_table, evaluate_table, open_table, predict_table
from tests.elsewhere import python_of
from tests.refused import refused
from tests.tables.class_records import WARD, K, N, P, Y, calibrated
from tests.tables.engines import Engine, halves, widened
from tests.tables.store_servers import AZURITE_ACCOUNT, AZURITE_KEY, BUCKET, started

# the tests of all other sources, with these sources
from tests.tables.test_exactness import (  # noqa: F401
    test_counts_are_those_of_arrays,
    test_each_adversary_in_a_separate_group,
    test_missing_and_outside_scores_are_counted_in_the_error,
)
from tests.tables.test_people import (
    test_nameless_and_tied_records_raise_an_error,  # noqa: F401
    test_sums_are_those_of_arrays,  # noqa: F401
)
from tests.tables.test_several import test_releases_are_those_of_arrays  # noqa: F401

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("stores")]
DATA = pa.table({"id": np.arange(N), "ward": WARD, "label": Y, **{f"p_{k}": P[:, k] for k in range(K)}})
WHAT = ClassColumns("p_*", "label")
names = count()


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    with started(python_of("stores"), tmp_path_factory.mktemp("stores") / "log") as said:
        yield said


@pytest.fixture
def store(servers, monkeypatch):
    """The environment of a user with all permissions."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "AZURE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ENDPOINT_URL", servers["s3"])
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", servers["owner"][0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", servers["owner"][1])
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", AZURITE_ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", AZURITE_KEY)
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", servers.get("az", ""))
    return servers


def fresh(scheme: str = "s3") -> str:
    """A new prefix."""
    if scheme == "az" and not os.environ["AZURE_STORAGE_ENDPOINT"]:
        pytest.skip("needs Azurite: `nox -s stores` installs it where npm is on the PATH")
    return f"{scheme}://{BUCKET}/t{next(names)}"


def put(content: bytes, address: str) -> str:
    place = as_place(address)
    place.store.put(place.key, content)
    return address


def packed(data: pa.Table, kind: str) -> bytes:
    """A table as the bytes of a file of this kind."""
    sink = pa.BufferOutputStream()
    if kind == "parquet":
        pq.write_table(data, sink, row_group_size=700)
    elif kind == "arrow":
        with pa.ipc.new_file(sink, data.schema) as writer:
            writer.write_table(data, max_chunksize=700)
    else:
        pa.csv.write_csv(pa.table([widened(one) for one in data.columns], names=data.column_names), sink)
    held = sink.getvalue().to_pybytes()
    return gzip.compress(held) if kind == "csv.gz" else held


class Store(Engine):
    """Two objects below a prefix, and an object of another program."""

    def __init__(self, scheme: str, kind: str) -> None:
        self.scheme, self.kind = scheme, kind
        if kind.startswith("csv"):
            self.lists = self.decimals = self.single = False

    def table(self, data: pa.Table) -> str:
        folder = fresh(self.scheme)
        for i, part in enumerate(halves(data)):
            put(packed(part, self.kind), f"{folder}/part={i}/0.{self.kind}")
        put(b"of another program", f"{folder}/_logs/x.{self.kind}")
        return folder


@pytest.fixture(params=["s3-parquet", "s3-csv.gz", "s3-arrow", "az-parquet"])
def engine(request, store):
    return Store(*request.param.split("-"))


@pytest.fixture
def ranking(engine):
    return engine


@pytest.fixture
def records(store):
    return put(packed(DATA, "parquet"), f"{fresh()}/records.parquet")


@pytest.mark.parametrize("scheme", ["s3", "az"])
@pytest.mark.parametrize("ending", ["parquet", "csv", "csv.gz", "arrow"])
def test_predictions_are_those_of_files(store, tmp_path, scheme, ending):
    source, released = put(packed(DATA, "parquet"), f"{fresh(scheme)}/in.parquet"), calibrated("aps_deterministic")
    out, here = f"{fresh(scheme)}/sets.{ending}", tmp_path / f"sets.{ending}"
    pq.write_table(DATA, tmp_path / "in.parquet")
    figures = predict_table(source, ClassColumns("p_*"), released, out)
    assert figures == predict_table(tmp_path / "in.parquet", ClassColumns("p_*"), released, here)
    with as_place(out).open() as stream:
        written = stream.read()
    assert written == here.read_bytes() if ending != "csv.gz" else gzip.decompress(written)
    with refused(OutputExistsError, "output"):
        predict_table(source, ClassColumns("p_*"), released, out)
    with pytest.raises(FileExistsError):  # what a job gets that has looked before another wrote
        as_place(out).write(here, overwrite=False)
    predict_table(source, ClassColumns("p_*"), released, out, overwrite=True)
    with refused(InputError, "output"):
        predict_table(source, ClassColumns("p_*"), released, source, overwrite=True)


@pytest.mark.parametrize("scheme", ["s3", "az"])
def test_folders_are_written_and_read(records, scheme):
    folder, released = fresh(scheme), calibrated("lac")
    predict_table(records, ClassColumns("p_*"), released, folder, keep=("id", "ward"))
    expected = confide.predict_set(P, released)
    for source in (folder, f"{folder}/*.parquet", f"{folder}/**/part-0.parquet"):
        with open_table(source) as opened:
            assert (opened.row_count(), set(opened.columns)) == (N, {"id", "ward", "prediction_set", "set_size"})
            (found,) = [pa.Table.from_batches(opened.batches(reads("id", "ward", "set_size"), 10**6)).combine_chunks()]
        found = found.sort_by("value id")
        assert found["value set_size"].to_pylist() == expected.sizes.tolist()
        assert found["value ward"].to_pylist() == WARD.tolist()
    with refused(OutputExistsError, "output"):
        predict_table(records, ClassColumns("p_*"), released, folder)


def reads(*columns):
    from confide.tables.arrow import ColumnRef

    return [ColumnRef(column, "value") for column in columns]


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_only_the_columns_in_question_are_fetched(store, monkeypatch, ending):
    numbers = np.random.default_rng(0).random((6, 20000))
    wide, lengths = pa.table(dict(zip("sabcde", numbers, strict=True))), []
    source = put(packed(wide, ending), f"{fresh()}/x.{ending}")
    fetch = ObjectReader.fetch
    monkeypatch.setattr(ObjectReader, "fetch", lambda *given: lengths.append(given[-1]) or fetch(*given))
    calibrate_table(source, ScoreColumn("s"), 0.1, 1.0)
    assert 8 * 20000 <= sum(lengths) < 3 * 8 * 20000


@pytest.mark.parametrize("scheme", ["s3", "az"])
def test_a_complete_job(store, tmp_path, capsys, scheme):
    base = fresh(scheme)
    for i, part in enumerate(halves(DATA)):
        put(packed(part, "parquet"), f"{base}/records/{i}.parquet")
    records, release = f"{base}/records/*.parquet", f"--calibration {base}/a.json"
    columns, request = "--probabilities p_* --label label", "--alpha 0.2 --epsilon 2"
    look = f"--state {tmp_path}/watch.json --look 2026-03-02 --epsilon 1 --batch {N}"
    for command in (
        f"plan --n 2500 {request} --pilot {base}/records {columns} --out {base}/plan.html",
        f"calibrate {records} {columns} {request} --out {base}/a.json",
        f"show {base}/a.json",
        f"verify {base}/a.json",
        f"report {base}/a.json --out {base}/a.html",
        f"predict {records} --probabilities p_* {release} --out {base}/sets.csv",
        f"evaluate {records} {columns} {release} --out {base}/evaluation.json",
        f"watch {records} {columns} {release} {look} --out {base}/watch.html",
        f"recalibrate {records} {columns} {release} --epsilon 1 --out {base}/b.json",
    ):
        assert main(command.split()) == 0, (command, capsys.readouterr().err)
    released = load_release(f"{base}/a.json")
    assert f"saved: {base}/b.json" in capsys.readouterr().out
    with pytest.raises(OutputExistsError):
        released.save(f"{base}/a.json")
    released.save(f"{base}/a.json", overwrite=True)
    assert Release.load(f"{base}/a.json") == released
    assert main(["report", f"{base}/a.json", "--out", f"{base}/sets.csv", "--force"]) == 3
    assert "may replace nothing but a page" in capsys.readouterr().err
    with as_place(f"{base}/a.html").open() as stream:
        assert stream.read(15).lower() == b"<!doctype html>"
    found = evaluate_table(records, WHAT, released)
    assert found == confide.tables.evaluate_table(DATA, WHAT, released)


@pytest.mark.parametrize("scheme", ["s3", "az"])
def test_a_failed_output_leaves_no_objects(store, scheme):
    wrong = DATA.set_column(3, "p_0", pa.array([7.0] * N))
    source, out = put(packed(wrong, "parquet"), f"{fresh(scheme)}/x.parquet"), fresh(scheme)
    for target in (f"{out}.parquet", out):
        with refused(InputError, "table"):
            predict_table(source, ClassColumns("p_*"), calibrated("lac"), target)
        assert not as_place(target).exists()


def test_errors_of_stores_have_a_remedy(store, servers, monkeypatch, records):
    secret = servers["other"][1]

    def message(source=records):
        with pytest.raises(InputError) as caught, open_table(source):
            pass
        assert secret not in str(caught.value)
        assert "AWS Error" not in str(caught.value)
        return str(caught.value)

    assert "there is no such bucket" in message("s3://missing-bucket/x.parquet")
    assert "does not exist" in message(f"s3://{BUCKET}/none.parquet")
    assert "It names none of them" in message(f"s3://{BUCKET}/none/*.parquet")
    assert "without keys or options" in message(f"s3://me:{secret}@{BUCKET}/x.parquet")
    assert "without keys or options" in message(f"s3://{BUCKET}/x.parquet?secret_key={secret}")
    with pytest.raises(InputError):
        predict_table(records, ClassColumns("p_*"), calibrated("lac"), "s3://missing-bucket/sets.parquet")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", servers["other"][0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    assert "no permission to do that, or credentials are missing or rejected; they are taken from AWS_" in message()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    assert "AWS_SECRET_ACCESS_KEY" in message()
    assert "credentials are missing or rejected" in message(f"s3://{BUCKET}/*.parquet")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert "it cannot be reached; check the network, and AWS_ENDPOINT_URL" in message()


@pytest.mark.parametrize("content", [b"", b"PAR1 987654.321" * 30, b"PAR1"], ids=["empty", "garbage", "truncated"])
def test_errors_of_damaged_objects_contain_no_content(store, content):
    with refused(FormatError, "path") as caught:
        calibrate_table(put(content, f"{fresh()}/x.parquet"), ScoreColumn("s"), 0.1, 1.0)
    assert "987654" not in str(caught.value)
