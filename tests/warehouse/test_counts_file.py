"""Counts files are read strictly, in every format, and no message contains a count."""

import json
from decimal import Decimal

import pyarrow as pa
import pytest
from pyarrow import parquet

from confide.candidates import Candidates
from confide.errors import FormatError, InputError
from confide.tables import ScoreColumn, TargetColumns
from confide.warehouse import CountingPlan, read_counts
from tests.refused import refused

PLAN = CountingPlan.of(ScoreColumn("s", "lac"), 0.1, 1.0, candidates=Candidates.unit(11))
GROUPS = CountingPlan.of(
    ScoreColumn("s", "lac"), 0.1, 1.0, by="ward", groups=["n", "s"], candidates=Candidates.unit(11)
)
SECRET = 918273


def rows(*found, plan=PLAN):
    """Rows of (part, bin, records)."""
    names = ("plan", "part", "bin", "records")
    return [dict(zip(names, (plan.digest, *one), strict=True)) for one in found]


def as_csv(listed):
    return "\n".join([",".join(listed[0]), *(",".join(map(str, one.values())) for one in listed)]) + "\n"


WRITERS = {
    "counts.csv": as_csv,
    "counts.CSV": lambda listed: "\ufeff" + as_csv(listed).replace("records", '"RECORDS"').replace("\n", "\r\n"),
    "counts.json": json.dumps,
    "texts.json": lambda listed: json.dumps([{key: str(value) for key, value in one.items()} for one in listed]),
    "counts.jsonl": lambda listed: "\n".join(map(json.dumps, listed)),
}


@pytest.mark.parametrize("name", [*WRITERS, "counts.parquet", "decimals.parquet"])
def test_every_format_has_the_same_counts(tmp_path, name):
    listed, path = rows((0, 3, 20), (0, 10, 7)), tmp_path / name
    if name in WRITERS:
        path.write_text(WRITERS[name](listed), newline="")
    else:
        table = pa.Table.from_pylist(listed)
        if name.startswith("decimals"):
            place = table.schema.get_field_index("records")
            table = table.set_column(place, "RECORDS", [[Decimal(20), Decimal(7)]])
        parquet.write_table(table.append_column("more", [["x", "y"]]), path)
    counts = read_counts(path, PLAN)["lac"]
    assert counts.candidates == PLAN.candidates
    assert counts.counts.tolist() == [0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 7]


def test_files_add_up_and_parts_are_named(tmp_path):
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    one.write_text(as_csv(rows((0, 3, 20), (1, 0, 2), plan=GROUPS)))
    other.write_text(as_csv(rows((0, 3, 1), plan=GROUPS)))
    counts = read_counts([one, other], GROUPS)
    assert {name: counts[name].total for name in counts} == {"n": 21, "s": 2}
    with refused(InputError, "files"):
        read_counts([one, tmp_path / "." / "one.csv"], GROUPS)
    (tmp_path / "linked.csv").hardlink_to(one)
    with refused(InputError, "files"):
        read_counts([one, tmp_path / "linked.csv"], GROUPS)
    header = tmp_path / "none.csv"
    header.write_text("plan,part,bin,records\n")
    assert read_counts(header, PLAN)["lac"].total == 0


GOOD = (0, 3, SECRET)
WRONG = {
    "another plan": ([{**rows(GOOD)[0], "plan": "0" * 12}], "counts[0].plan"),
    "another's candidates": (
        rows(GOOD, plan=CountingPlan.of(ScoreColumn("s", "lac"), 0.1, 1.0, candidates=Candidates.unit(12))),
        "counts[0].plan",
    ),
    "twice": (rows(GOOD, (0, 4, SECRET), (0, 3, SECRET)), "counts[2]"),
    "negative": (rows(GOOD, (0, 4, -SECRET)), "counts[1].records"),
    "too many": (rows(GOOD, (0, 4, 2**49)), "counts[1].records"),
    "fraction": (rows((0, 3, SECRET + 0.5)), "counts[0].records"),
    "true": (rows((0, 3, True)), "counts[0].records"),
    "text": (rows((0, 3, "many")), "counts[0].records"),
    "unknown bin": (rows((0, 11, SECRET)), "counts[0].bin"),
    "unknown finding": (rows((0, -2, SECRET)), "counts[0].bin"),
    "unknown part": (rows((1, 3, SECRET)), "counts[0].part"),
    "no plan": ([{"part": 0, "bin": 1, "records": SECRET}], "counts"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ["counts.csv", "counts.json"])
def test_rows_that_are_not_counts_of_the_plan_raise_an_error(tmp_path, name, wrong):
    listed, argument = WRONG[wrong]
    (tmp_path / name).write_text(WRITERS[name](listed))
    with refused(FormatError, argument) as error:
        read_counts(tmp_path / name, PLAN)
    assert str(SECRET) not in str(error.value)
    assert PLAN.digest not in str(error.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("counts.csv", ""),
        ("counts.json", ""),
        ("counts.json", "[1]"),
        ("counts.json", "{"),
        ("counts.json", '[{"plan": "a", "part": 0, "bin": 1, "records": 1, "records": 2}]'),
        ("counts.csv", "plan,part,bin,records\na,1\n"),
        ("counts.csv", 'plan,part,bin,records\n"a,1\n'),
        ("counts.csv", "plan,part,part,bin,records\n"),
        ("counts.parquet", "PAR1"),
    ],
)
def test_files_that_are_not_counts_raise_an_error(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(FormatError):
        read_counts(tmp_path / name, PLAN)


def test_unusable_records_release_nothing(tmp_path):
    """A record of two sides counts once among them if either side is unusable."""
    path = tmp_path / "counts.csv"
    path.write_text(as_csv(rows((0, 3, SECRET), (0, -1, 2))))
    with refused(InputError, "counts"):
        read_counts(path, PLAN)
    sides = CountingPlan.of(
        TargetColumns(("f", "g"), "t", "cqr_sides"), 0.1, 1.0, candidates=Candidates.spread("signed", 200, unit=1.0)
    )
    path.write_text(as_csv(rows((0, -2, 5), (1, -2, 5), (1, -1, 1), plan=sides)))
    with refused(InputError, "counts"):
        read_counts(path, sides)
