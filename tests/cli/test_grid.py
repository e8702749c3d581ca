"""Every command with every source and every kind of release: the same grid as in docs/command-line.md."""

import gzip
import io
import json
import sqlite3
import sys
from collections.abc import Collection, Sequence
from contextlib import closing
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import confide
from confide.core import load_release
from confide.federated import SiloKeys
from tests.builders import grid, slow
from tests.draws import without_noise
from tests.files import in_order_of, write
from tests.tables import postgres_server

N, NAMES = 900, ("ant", "bee", "cat")
RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(3), N)
Y = np.array([RNG.choice(3, p=row) for row in P])
WARD = np.where(RNG.random(N) < 0.5, "south", "north")
F, T = RNG.normal(size=N), RNG.normal(size=N)
TRUE = RNG.random((N, 3)) < P
LOSSES = np.clip(RNG.random((N, 1)) - np.linspace(0.2, 0.8, 4), 0, 1)
DATA = pa.table(
    {
        "id": np.arange(N),
        **{f"p_{name}": P[:, k] for k, name in enumerate(NAMES)},
        "label": np.array(NAMES)[Y],
        "ward": WARD,
        "s": confide.lac_score(P, Y),
        "f": F,
        "low": F - 1,
        "high": F + 1,
        "t": F + T,
        **{f"t_{name}": TRUE[:, k].astype(np.int64) for k, name in enumerate(NAMES)},
        **{f"l_{k}": LOSSES[:, k] for k in range(4)},
        "site": np.where(WARD == "south", 7, -1),
        "person": np.arange(N) // 3,
        "w": np.arange(N) % 4 / 2,
    }
)
SURE = ("--alpha", "0.2", "--epsilon", "1000")
CLASSES, MODEL = ("--probabilities", "p_*", "--label", "label"), ("--probabilities", "p_*")
SIDES = ("--prediction", "low,high")
PEOPLE = ("--set", "people={person = 'person', most = 2, order = 'id'}")

KINDS = {
    # name: options of calibrate and evaluate, options of calibrate alone, options of predict or None, its --by
    "scores": (("--score-column", "s"), (*SURE, "--score", "lac"), MODEL, ()),
    "lac": (CLASSES, SURE, MODEL, ()),
    "aps_deterministic": (CLASSES, (*SURE, "--score", "aps_deterministic"), MODEL, ()),
    "randomised": (CLASSES, (*SURE, "--score", "aps"), MODEL, ()),
    "residuals": (("--prediction", "f", "--target", "t"), (*SURE, "--set", "unit=1"), ("--prediction", "f"), ()),
    "quantiles": ((*SIDES, "--target", "t"), (*SURE, "--set", "unit=1"), SIDES, ()),
    "sides": ((*SIDES, "--target", "t"), (*SURE, "--score", "cqr_sides"), SIDES, ()),
    "groups": (CLASSES, (*SURE, "--by", "ward", "--groups", "north,south"), MODEL, ("--by", "ward")),
    "groups of integers": (CLASSES, (*SURE, "--by", "site", "--groups", "-1,0,7"), MODEL, ("--by", "site")),
    "classes": (CLASSES, (*SURE, "--set", "by_class=true"), MODEL, ()),
    "class weights": (CLASSES, (*SURE, "--set", "class_weights={ant = 0.5, bee = 1, cat = 2}"), MODEL, ()),
    "weights": (CLASSES, (*SURE, "--set", "weights=w", "--set", "weight_bound=1.5"), MODEL, ()),
    "levels": (CLASSES, ("--alpha", "0.3,0.2", "--epsilon", "1000"), MODEL, ()),
    "labels": (("--probabilities", "p_*", "--set", "truth=t_*"), SURE, MODEL, ()),
    "losses": (("--set", "losses=l_*", "--set", "loss=shortfall", "--set", "candidates=unit:5"), SURE, None, ()),
    "people": (CLASSES, (*SURE, *PEOPLE), MODEL, ()),
    "overlapping groups": (
        CLASSES,
        (*SURE, "--by", "ward,site", "--groups", "north,south;-1,7"),
        MODEL,
        ("--by", "ward,site"),
    ),
}


class Source:
    """A source of rows on a command line; standard input is new for each command."""

    def __init__(self, *arguments: object, stdin: bytes | None = None) -> None:
        self.arguments, self.stdin = tuple(map(str, arguments)), stdin


def source_of(kind: str, folder: Path, request: pytest.FixtureRequest) -> Source:
    if kind in ("parquet", "csv", "tsv", "arrow", "feather"):
        return Source(write(folder / f"records.{kind}", DATA))
    if kind == "csv.gz":
        plain = write(folder / "plain.csv", DATA).read_bytes()
        (folder / "records.csv.gz").write_bytes(gzip.compress(plain))
        return Source(folder / "records.csv.gz")
    if kind in ("glob", "folder", "csv folder"):
        (folder / "part").mkdir()
        for i in range(3):
            write(folder / "part" / f"{i}.{'csv' if kind == 'csv folder' else 'parquet'}", DATA.slice(i * 300, 300))
        return Source(folder / "part" / "*.parquet" if kind == "glob" else folder / "part")
    if kind == "partitioned":
        hive = ds.partitioning(pa.schema([("ward", pa.string())]), flavor="hive")
        ds.write_dataset(DATA, folder / "part", format="parquet", partitioning=hive)
        return Source(folder / "part")
    if kind == "standard input, CSV":
        return Source("-", stdin=write(folder / "plain.csv", DATA).read_bytes())
    if kind == "standard input, Arrow":
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, DATA.schema) as writer:
            writer.write_table(DATA)
        return Source("-", stdin=sink.getvalue())
    if kind == "duckdb":
        import duckdb

        with duckdb.connect(folder / "records.duckdb") as connection:
            connection.register("arriving", DATA)
            connection.execute("CREATE TABLE records AS SELECT * FROM arriving")
        return Source(f"duckdb://{folder}/records.duckdb", "--table", "records")
    if kind == "sqlite":
        with closing(sqlite3.connect(folder / "records.sqlite")) as connection, connection:
            kinds = {"string": "TEXT", "int64": "INTEGER", "double": "REAL"}
            columns = ", ".join(f'"{field.name}" {kinds[str(field.type)]}' for field in DATA.schema)
            connection.execute(f"CREATE TABLE records ({columns})")
            rows = zip(*(column.to_pylist() for column in DATA.columns), strict=True)
            connection.executemany(f"INSERT INTO records VALUES ({', '.join('?' * DATA.num_columns)})", rows)  # noqa: S608
        return Source(f"sqlite://{folder}/records.sqlite", "--table", "records")
    server, reader = request.getfixturevalue("postgres"), request.getfixturevalue("reader")
    request.getfixturevalue("monkeypatch").setenv("PGPASSWORD", postgres_server.PASSWORD)
    return Source(server.address(postgres_server.READER), "--table", reader.table(DATA).get_name())


@pytest.fixture
def source(request, folder) -> Source:
    return source_of(request.param, folder, request)


DIFFERENT = ("parquet", "csv", "partitioned", "standard input, Arrow", "duckdb", "postgres")
ALIKE = ("tsv", "csv.gz", "arrow", "feather", "glob", "folder", "csv folder", "standard input, CSV", "sqlite")
"""Sources that are read like one of DIFFERENT after they are open."""


def on_every_source(
    kinds: Collection[str], alike: Collection[str] = (), everyday: Sequence[tuple[str, str]] = ()
) -> pytest.MarkDecorator:
    """Parametrise a test: all kinds from the sources in DIFFERENT, the kinds of `alike` from the others."""
    cases = slow([*product(DIFFERENT, kinds), *product(ALIKE, alike)], everyday)
    return pytest.mark.parametrize(("source", "name"), cases, indirect=["source"])


@pytest.fixture
def run(confide_run, monkeypatch):
    """Run a command on a source, with its standard input."""

    def on(command: str, source: Source, *options: object):
        if source.stdin is not None:
            raw = io.BufferedReader(io.BytesIO(source.stdin))  # type: ignore[arg-type]
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
        done = confide_run(*command.split(), *source.arguments, *options)
        assert done.code == 0, done.err
        assert postgres_server.PASSWORD not in done.out + done.err
        return done

    return on


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* for 1 of 3 groups:confide.CoverageWarning")
@on_every_source(KINDS, alike=["lac", "groups", "people"], everyday=[("parquet", "scores")])
def test_every_source_and_kind(run, source, folder, name):
    """Predictions are those of the calls on arrays; a group without records gets +inf; every record is evaluated."""
    columns, asked, model, by = KINDS[name]
    run("calibrate", source, *columns, *asked, "--out", "cal.json", "--force")
    released = load_release("cal.json")
    if model is not None:
        keep = ("--keep", "id", "--out", "sets.parquet", "--force")
        run("predict", source, *model, *by, "--calibration", "cal.json", *keep)
        predicted = in_order_of(pq.read_table("sets.parquet"), "id")
        assert predicted["id"].to_pylist() == list(range(N))
        check_predictions(name, released, predicted)
    if name == "groups of integers":
        assert released.infinite == (0,)
        return
    run(
        "evaluate",
        source,
        *columns,
        *(by or ("--by", "ward")),
        "--calibration",
        "cal.json",
        "--out",
        "ev.json",
        "--force",
    )
    found = confide.Evaluation.load("ev.json")
    sizes = {ward: (ward == WARD).sum() for ward in ("north", "south")}
    for one in found.levels.values() or [found.finding]:  # whatever has thresholds of its own, ward by ward
        assert {part.name: part.n for part in one.groups if "site" not in part.name} == {
            f"ward={ward}" if "overlapping" in name else ward: n for ward, n in sizes.items()
        }


@pytest.mark.slow(unless="standard input, Arrow-lac")
@on_every_source(["lac", "residuals"], everyday=[("parquet", "lac"), ("standard input, Arrow", "lac")])
def test_a_private_evaluation_counts_the_same_from_every_source(run, source, name, draw_with):
    """Counts without noise equal those of arrays, except few records that text rounds over the threshold."""
    draw_with(noisy_counts=without_noise)
    rng = np.random.default_rng(0)
    score = {"lac": "lac", "residuals": "absolute_residual"}[name]
    candidates = confide.Candidates.unit(50) if name == "lac" else confide.Candidates.spread("residual", 200, unit=1.0)
    released = confide.calibrate(rng.random(2000), 0.2, 50.0, score=score, candidates=candidates)
    released.save("private-cal.json", overwrite=True)
    columns, by = KINDS[name][0], ("--by", "ward", "--groups", "north")
    widths = ("--set", "width_bins=1,3") if name == "residuals" else ()
    found = run(
        "evaluate", source, *columns, *by, *widths, "--calibration", "private-cal.json", "--epsilon", "1", "--json"
    ).json["counts"]
    asked = {"groups": WARD, "group_names": ["north"], "epsilon": 1.0}
    if name == "lac":
        wanted = confide.evaluate(released, probabilities=P, labels=np.array(NAMES)[Y], classes=NAMES, **asked)
    else:
        wanted = confide.evaluate(released, predictions=F, targets=F + T, width_bins=[1, 3], **asked)
    assert np.abs(np.subtract(np.concatenate(found), np.concatenate(wanted.counts))).sum() <= 12
    if not source.arguments[0].endswith((".csv", ".tsv", ".gz", "-")):
        assert [tuple(one) for one in found] == list(wanted.counts)


def check_predictions(name, released, predicted):
    if name in ("residuals", "quantiles", "sides"):
        f = F if name == "residuals" else np.column_stack([F - 1, F + 1])
        lower, upper = confide.predict_interval(f, released)
        assert predicted["lower"].to_numpy() == pytest.approx(lower)
        assert predicted["upper"].to_numpy() == pytest.approx(upper)
    elif name == "levels":
        for alpha in released.parts:
            sets = confide.predict_set(P, released.at(alpha), NAMES)
            assert predicted[f"prediction_set_{float(alpha):g}"].to_pylist() == sets.labels()
    elif name == "labels":
        assert predicted["prediction_set"].to_pylist() == confide.predict_labels(P, released).labels()
    elif name != "randomised":
        site = DATA["site"].to_pylist()
        groups = {"groups": WARD, "groups of integers": site, "overlapping groups": {"ward": WARD, "site": site}}.get(
            name
        )
        sets = confide.predict_set(P, released, NAMES, groups=groups)
        assert predicted["prediction_set"].to_pylist() == sets.labels()


WATCHED = ("scores", "lac", "quantiles", "sides", "groups", "classes", "levels")


@on_every_source(WATCHED, alike=["lac", "groups"])
def test_a_release_is_watched_on_every_source(run, source, folder, name):
    """With an epsilon without noise, the counts of a look equal those of evaluate and predict."""
    columns, asked, model, by = KINDS[name]
    run("calibrate", source, *columns, *asked, "--out", "cal.json", "--force")
    level = ("--alpha", "0.2") if name == "levels" else ()
    first = (*level, "--epsilon", "1000", "--batch", "900", "--json", "--look", "one")
    tolerance = ("--set", "tolerance=0.3", "--state", "watch.json")  # no alarm, whatever the draw
    output = run("watch", source, "--calibration", "cal.json", *columns, *by, *tolerance, *first).json
    run("evaluate", source, *columns, *by, *level, "--calibration", "cal.json", "--out", "ev.json", "--force")
    found = confide.Evaluation.load("ev.json")
    parts = {"groups": found.groups, "classes": found.classes}.get(name)
    covered = [(part.covered, part.n - part.covered) for part in parts] if parts else [
        (round(found.coverage.value * N), N - round(found.coverage.value * N))
    ]  # fmt: skip
    assert output["counts"] == [count for pair in covered for count in pair]
    if name in ("lac", "groups", "classes", "levels"):
        words = ("--unlabelled", "--state", "sizes.json")
        output = run("watch", source, "--calibration", "cal.json", *model, *by, *words, *first).json
        sizes = {part.name: part.covered for part in found.shares}
        assert output["counts"] == [sizes.get(str(size), 0) for size in range(4)]


@on_every_source(
    ["scores", "lac", "aps_deterministic", "residuals", "quantiles"], alike=["lac"], everyday=[("parquet", "scores")]
)
def test_a_silo_answers_from_every_source(run, confide_run, source, folder, name):
    columns, *_ = KINDS[name]
    coordinator, silo = SiloKeys.generate("coordinator"), SiloKeys.generate("north")
    silo.save(folder / "north.key")
    (folder / "coordinator.json").write_text(coordinator.public().to_json())
    score = {"scores": "lac", "residuals": "absolute_residual", "quantiles": "cqr"}.get(name, name)
    plan = confide.federated.plan([silo.public(size=N)], 0.2, 20.0, score=score)
    (folder / "plan.json").write_text(plan.sign(coordinator))
    own = (*columns, *(("--score", score) if name in ("scores", "aps_deterministic") else ()))
    own = (*own, "--set", "people={person = 'id', most = 1, order = 'id'}")
    paying = ("--ledger", "north.db", "--budget", "100")
    keys = ("--plan", "plan.json", "--keys", "north.key", "--coordinator", "coordinator.json")
    run("federated answer", source, *own, *keys, *paying, "--out", "answer.json")
    done = confide_run("federated", "aggregate", "answer.json", "--plan", "plan.json", "--out", "released.json")
    assert done.code == 0, done.err


@pytest.mark.slow(unless=("duckdb-sets/", "standard input, Arrow-sets.csv.gz"))
@pytest.mark.parametrize(
    ("kind", "out"),
    grid(
        ["csv", "duckdb", "standard input, Arrow", "sqlite"],
        ["sets.csv", "sets.tsv", "sets.csv.gz", "sets.arrow", "sets.feather", "sets", "sets/"],
    ),
)
def test_every_source_is_written_to_every_target(run, confide_run, folder, request, kind, out):
    source = source_of(kind, folder, request)
    confide.calibrate(confide.lac_score(P, Y), 0.2, 1000.0, score="lac").save("cal.json")
    options = (*MODEL, "--calibration", "cal.json", "--keep", "id,ward", "--keep", "f", "--out", out)
    said = run("predict", source, *options, "--json").json
    path = folder / out.rstrip("/")
    if path.is_dir():
        found = pq.read_table(path)
    elif out.endswith((".arrow", ".feather")):
        found = pa.ipc.open_file(str(path)).read_all()
    else:
        text = gzip.decompress(path.read_bytes()) if out.endswith(".gz") else path.read_bytes()
        dialect = pa.csv.ParseOptions(delimiter="\t" if "tsv" in out else ",")
        found = pa.csv.read_csv(io.BytesIO(text), parse_options=dialect)
    assert found.column_names == ["id", "ward", "f", "prediction_set", "set_size"]
    sets = in_order_of(found, "id")["prediction_set"].to_pylist()
    wanted = confide.predict_set(P, confide.Release.load("cal.json"), NAMES)
    assert [json.loads(one) if isinstance(one, str) else one for one in sets] == wanted.labels()
    assert (said["rows"], said["mean_set_size"]) == (N, pytest.approx(wanted.sizes.mean()))
    assert confide_run("predict", *source.arguments, *options).code == 4  # it exists


@pytest.mark.long
@pytest.mark.parametrize("engine", ["polars", "datafusion"])
def test_engines_of_ibis_are_named(run, folder, engine):
    pytest.importorskip(engine)
    source = Source(f"{engine}://{write(folder / 'records.parquet', DATA)}")
    run("calibrate", source, *CLASSES, *SURE, "--out", "cal.json")
    released = confide.Release.load("cal.json")
    assert released.threshold == confide.calibrate(confide.lac_score(P, Y), 0.2, 1000.0, score="lac").threshold


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "duckdb", "sqlite", "postgres"])
def test_a_public_number_is_charged_before_the_engine_is_queried(confide_run, folder, request, kind):
    """Where an engine counts, the number must be stated, and another number is charged before it is noticed."""
    source, queried = source_of(kind, folder, request), kind in ("sqlite", "postgres")
    confide.Ledger("budget.db").set_limit("patients", 1.5, neighbors="replace_one")

    def calibrate(name, *options):
        paying = ("--neighbors", "replace_one", "--ledger", "budget.db", "--dataset", "patients")
        asked = (*CLASSES, "--alpha", "0.1", "--epsilon", "1", *paying, *options, "--out", name)
        return confide_run("calibrate", *source.arguments, *asked)

    def spent():
        return confide.Ledger("budget.db").account("patients").spent().epsilon

    if queried:
        assert calibrate("none.json").refused == (3, "--n")
        assert spent() == 0
    assert calibrate("one.json", "--n", N).code == 0
    assert confide.Release.load("one.json").n == N
    assert calibrate("two.json", *(() if not queried else ("--n", N))).code == 0
    assert (folder / "one.json").read_text() == (folder / "two.json").read_text()
    assert spent() == 1
    assert "0.5 left" in calibrate("none.json", "--n", N, "--set", "n_min=2").error
    confide.Ledger("budget.db").set_limit("patients", 2, neighbors="replace_one")
    must = f"--n: must be the number of counted records, {N}; got {N - 1}"
    assert calibrate("none.json", "--n", N - 1).error.startswith(must)
    assert spent() == (2 if queried else 1)
    assert not (folder / "none.json").exists()
