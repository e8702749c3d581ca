"""Counts files are read strictly, in every format; the worked examples give the counts of numpy."""

import json
import os
import subprocess
import sys
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import parquet

import confide
from confide import ScoreHistogram
from confide.candidates import Candidates
from confide.errors import FormatError, InputError
from confide.support import as_place
from confide.tables import Columns, CountsFiles, ScoreColumn, TargetColumns
from confide.tables.bin_counts import Job
from confide.tables.query_answers import read_counts
from confide.tables.unread import UnreadTable
from tests.refused import refused

SECRET = 918273


FEW = Candidates.unit(11)


def jobs_of(what, candidates=FEW, **columns):
    """What is counted, and the digest of its query."""
    columns = Columns(what, **columns)
    table = UnreadTable(columns)
    jobs = [Job(one, candidates) for one in columns.source(table).records]
    return jobs, table.digest(jobs)


SCORE = jobs_of(ScoreColumn("s", "lac"))
GROUPS = jobs_of(ScoreColumn("s", "lac"), by="ward", groups=["n", "s"])
SIDES = jobs_of(TargetColumns(("f", "g"), "t", "cqr_sides"))


def rows(*found, of=SCORE):
    """Rows of (part, reason, group, bin, n)."""
    names = ("query", "part", "reason", "group", "bin", "n")
    return [dict(zip(names, (of[1], *row), strict=True)) for row in found]


def as_csv(listed):
    return "\n".join([",".join(listed[0]), *(",".join(map(str, row.values())) for row in listed)]) + "\n"


def read(*paths, of=SCORE):
    jobs, digest = of
    return read_counts([as_place(path) for path in paths], jobs, digest)


WRITERS = {
    "counts.csv": as_csv,
    "counts.CSV": lambda listed: "\ufeff" + as_csv(listed).replace(",n\n", ',"N"\n').replace("\n", "\r\n"),
    "counts.json": json.dumps,
    "texts.json": lambda listed: json.dumps([{key: str(value) for key, value in row.items()} for row in listed]),
    "counts.jsonl": lambda listed: "\n".join(map(json.dumps, listed)),
}


@pytest.mark.parametrize("name", [*WRITERS, "counts.parquet", "decimals.parquet"])
def test_every_format_has_the_same_counts(tmp_path, name):
    listed, path = rows((0, 0, 0, 3, 20), (0, 0, 0, 10, 7)), tmp_path / name
    if name in WRITERS:
        path.write_text(WRITERS[name](listed), newline="")
    else:
        table = pa.Table.from_pylist(listed)
        if name.startswith("decimals"):
            table = table.set_column(table.schema.get_field_index("n"), "N", [[Decimal(20), Decimal(7)]])
        parquet.write_table(table.append_column("more", [["x", "y"]]), path)
    (counts,) = read(path)
    assert counts.array.tolist() == [[0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 7]]
    assert not counts.errors


def test_files_add_up_and_groups_are_in_their_order(tmp_path):
    one, other, empty = (tmp_path / name for name in ("one.csv", "other.csv", "empty.csv"))
    one.write_text(as_csv(rows((0, 0, 0, 3, 20), (0, 0, 1, 0, 2), of=GROUPS)))
    other.write_text(as_csv(rows((0, 0, 0, 3, 1), of=GROUPS)))
    empty.write_text("query,part,reason,group,bin,n\n")
    (counts,) = read(one, other, empty, of=GROUPS)
    assert counts.array.sum(axis=1).tolist() == [21, 2]
    (tmp_path / "linked.csv").hardlink_to(one)
    for paths in ([one, tmp_path / "." / "one.csv"], [one, tmp_path / "linked.csv"], []):
        with refused(InputError, "counts"):
            CountsFiles(paths)


GOOD = (0, 0, 0, 3, SECRET)
WRONG = {
    "another query": ([{**rows(GOOD)[0], "query": "0" * 12}], "counts[0].query"),
    "other candidates": (rows(GOOD, of=jobs_of(ScoreColumn("s", "lac"), Candidates.unit(12))), "counts[0].query"),
    "another column": (rows(GOOD, of=jobs_of(ScoreColumn("r", "lac"))), "counts[0].query"),
    "twice": (rows(GOOD, (0, 0, 0, 4, SECRET), GOOD), "counts[2]"),
    "negative": (rows(GOOD, (0, 0, 0, 4, -SECRET)), "counts[1].n"),
    "too many": (rows(GOOD, (0, 0, 0, 4, 2**49)), "counts[1].n"),
    "fraction": (rows((0, 0, 0, 3, SECRET + 0.5)), "counts[0].n"),
    "true": (rows((0, 0, 0, 3, True)), "counts[0].n"),
    "text": (rows((0, 0, 0, 3, "many")), "counts[0].n"),
    "unknown bin": (rows((0, 0, 0, 11, SECRET)), "counts[0].bin"),
    "no bin": (rows((0, 0, 0, "", SECRET)), "counts[0].bin"),
    "unknown reason": (rows((0, 2, 0, 0, SECRET)), "counts[0].reason"),
    "unknown part": (rows((1, 0, 0, 3, SECRET)), "counts[0].part"),
    "no query": ([{"part": 0, "reason": 0, "group": 0, "bin": 1, "n": SECRET}], "counts"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ["counts.csv", "counts.json"])
def test_rows_that_are_not_counts_of_the_query_raise_an_error(tmp_path, name, wrong):
    listed, argument = WRONG[wrong]
    (tmp_path / name).write_text(WRITERS[name](listed))
    with refused(FormatError, argument) as error:
        read(tmp_path / name)
    assert str(SECRET) not in str(error.value)
    assert SCORE[1] not in str(error.value)


def test_an_unknown_group_raises_an_error(tmp_path):
    (tmp_path / "counts.csv").write_text(as_csv(rows((0, 0, 2, 3, SECRET), of=GROUPS)))
    with refused(FormatError, "counts[0].group"):
        read(tmp_path / "counts.csv", of=GROUPS)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("counts.csv", ""),
        ("counts.json", ""),
        ("counts.json", "[1]"),
        ("counts.json", "{"),
        ("counts.json", '[{"query": "a", "part": 0, "reason": 0, "group": 0, "bin": 1, "n": 1, "n": 2}]'),
        ("counts.csv", "query,part,reason,group,bin,n\na,1\n"),
        ("counts.csv", 'query,part,reason,group,bin,n\n"a,1\n'),
        ("counts.csv", "query,part,part,reason,group,bin,n\n"),
        ("counts.parquet", "PAR1"),
    ],
)
def test_files_that_are_not_counts_raise_an_error(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(FormatError):
        read(tmp_path / name)


@pytest.mark.parametrize("name", ["none.csv", "counts.txt"])
def test_files_that_cannot_be_read_raise_an_error(tmp_path, name):
    (tmp_path / "counts.txt").touch()
    with refused(InputError, "counts"):
        read(tmp_path / name)


def test_unusable_records_are_counted_by_their_reason(tmp_path):
    (tmp_path / "counts.csv").write_text(
        as_csv(rows((0, 2, "", "", 5), (1, 2, "", "", 5), (1, 1, "", "", 1), of=SIDES))
    )
    low, high = read(tmp_path / "counts.csv", of=SIDES)
    assert [counts.errors.counts() for counts in (low, high)] == [{2: 5}, {2: 5, 1: 1}]
    assert not np.any([counts.array for counts in (low, high)])


ROOT = Path(__file__).parents[2]
K, N = 10, 4000


@pytest.fixture(scope="module")
def records(tmp_path_factory) -> tuple[Path, np.ndarray]:
    """Parquet files of inputs and labels, and the expected counts of the examples."""
    folder = tmp_path_factory.mktemp("records")
    rng = np.random.default_rng(0)
    x, label = rng.normal(size=(N, K)), rng.integers(0, K, N)
    table = pa.table({f"x_{k}": x[:, k] for k in range(K)} | {"label": label})
    for i in range(4):
        pq.write_table(table.slice(i * N // 4, N // 4), folder / f"{i}.parquet")
    raised = np.exp(x - x.max(axis=1, keepdims=True))
    scores = confide.aps_score(raised / raised.sum(axis=1, keepdims=True), label, randomised=False)
    return folder, ScoreHistogram.from_scores(
        scores, confide.scores.score_kind("aps_deterministic").candidates()
    ).counts


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_spark(spark, records):
    from examples.engines.spark_map_in_arrow import histogram

    folder, expected = records
    np.testing.assert_array_equal(histogram(spark, str(folder)).counts, expected)


@pytest.mark.long
def test_ray(records, tmp_path):
    if find_spec("ray") is None:
        pytest.skip("needs Ray: pip install 'ray>=2.40' pandas")
    folder, expected = records
    program = f"""if True:
        import numpy, ray
        ray.init("local", num_cpus=2, include_dashboard=False, object_store_memory=100 * 2**20, log_to_driver=False)
        from examples.engines.ray_map_batches import histogram
        numpy.save({str(tmp_path / "counts.npy")!r}, histogram({str(folder)!r}).counts)
        ray.shutdown()
    """
    environment = os.environ | {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    np.testing.assert_array_equal(np.load(tmp_path / "counts.npy"), expected)


@pytest.mark.slow
def test_torch():
    torch = pytest.importorskip("torch", reason="needs PyTorch: install the extra torch")
    from torch.utils.data import DataLoader, TensorDataset

    from examples.engines.torch_dataloader import histogram

    rng = np.random.default_rng(0)
    x, label = rng.normal(size=(N, K)).astype(np.float32), rng.integers(0, K, N)
    model = torch.nn.Linear(K, K)
    loader = DataLoader(TensorDataset(torch.from_numpy(x), torch.from_numpy(label)), batch_size=300)
    with torch.no_grad():
        p = torch.cat([torch.softmax(model(part).double(), 1) for part in torch.from_numpy(x).split(300)]).numpy()
    own = confide.aps_score(np.minimum(p, 1), label, randomised=False)
    found = histogram(model, loader)
    np.testing.assert_array_equal(found.counts, ScoreHistogram.from_scores(own, found.candidates).counts)
