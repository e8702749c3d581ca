"""One look at a table: counted once, charged before it is drawn, kept whole; by several processes, and killed ones."""

import json
import signal

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.errors import (
    BudgetError,
    ChargedAgainWarning,
    EarlierReleaseWarning,
    FormatError,
    InputError,
    OtherDataError,
)
from confide.ledger import Ledger
from confide.tables import (
    ClassColumns,
    ScoreColumn,
    TargetColumns,
    evaluate_table,
    monitoring_coverage_counts,
    size_counts,
)
from confide.watching import Watch, watch
from tests.calibrations import calibration_at, calibrations_at
from tests.files import NAMES, class_table, write
from tests.killed import drive
from tests.refused import Refused, refused

RELEASE = calibration_at(float(confide.Candidates.unit(10).values[4]), score=None)
WHAT = ScoreColumn("s")
LEVELS = confide.calibrate(np.linspace(0, 1, 2000), [0.2, 0.1], 1.0, candidates=confide.Candidates.unit(10))
START = {"epsilon": 1.0, "batch": 500}


def batch(covered=460, missed=40):
    return pa.table({"s": np.repeat([0.1, 0.9], [covered, missed])})


@pytest.fixture
def state(tmp_path):
    return tmp_path / "watch.json"


def taken(state, name="Monday", source=None, **options):
    return watch(batch() if source is None else source, WHAT, RELEASE, state=state, look=name, **options)


def test_looks_are_stored_and_continued(state):
    first = taken(state, **START)
    second = taken(state, "Tuesday")
    assert second.looks[0] == first.looks[0]
    assert Watch.load(state) == second
    covered, missed = second.looks[1].counts
    assert abs(covered - 460) + abs(missed - 40) < 60  # noise of scale 1 is farther with a chance below 1e-25


def test_looks_have_the_size_that_epsilon_deserves(state, tmp_path):
    """Small batches are collected in a folder and counted together, as one look."""
    (tmp_path / "week").mkdir()
    for day in range(3):
        write(tmp_path / "week" / f"{day}.parquet", batch(90, 10))
    found = taken(state, source=tmp_path / "week", epsilon=0.3)
    assert found.settings.batch == 246
    assert abs(sum(found.looks[0].counts) - 300) < 250
    groups = calibrations_at("group", {"a": 0.5, "b": 0.5})
    assert Watch.start(groups, epsilon=0.3).settings.batch == 2 * 246
    assert not Watch.start(groups, epsilon=0.3).settings.remarks(groups)


def test_empty_batch_is_valid_look(state):
    """Whether there are records at all is as secret as their number."""
    assert abs(sum(taken(state, source=batch(0, 0), **START).looks[0].counts)) < 60
    p = class_table(5).slice(0, 0)
    released = calibration_at(0.5)
    assert size_counts(p, ClassColumns("p_*"), released, [0, 1, 2, 3]).tolist() == [0] * 4
    assert monitoring_coverage_counts(p, ClassColumns("p_*", "name"), released).tolist() == [[0, 0]]


CHOICES = {
    "epsilon": 2.0, "batch": 100, "tolerance": 0.05, "looks": 12, "error": 0.1, "neighbors": "replace_one",
    "records_per_person": 2, "unlabelled": True,
}  # fmt: skip


def test_changed_choices_after_first_look_raise(state):
    before = taken(state, **START)
    for name, value in CHOICES.items():
        with refused(InputError, name):
            taken(state, "Tuesday", **{name: value})
    for own, error in ({"look": "Monday"}, "look"), ({"release": calibration_at(0.6, score=None)}, "state"):
        with refused(InputError, error):
            watch(batch(), WHAT, **{"release": RELEASE, "look": "Tuesday", "state": state, **own})
    assert Watch.load(state) == before
    assert taken(state, "Tuesday", **START, tolerance=0.02, error="1/20").looks[0] == before.looks[0]


UNLABELLED = {"unlabelled": True, "what": ClassColumns("p_*", None, NAMES), "release": calibration_at(0.7)}
NEW = [
    ({"epsilon": ...}, "epsilon"),
    ({"release": LEVELS}, "alpha"),
    ({"alpha": 0.1}, "alpha"),
    ({"reference": 3}, "reference"),
    ({"again": True}, "again"),
    ({"state": "s3://bucket/watch.json"}, "state"),
    ({"look": ""}, "look"),
    ({"unlabelled": True, "what": TargetColumns("s")}, "unlabelled"),
    ({"unlabelled": True, "what": ClassColumns("p_*"), "release": calibration_at(0.7)}, "classes"),
    ({**UNLABELLED, "tolerance": 0.1}, "tolerance"),
]


@pytest.mark.parametrize(("change", "argument"), NEW)
def test_invalid_first_look_raises(state, change, argument):
    good = {"source": batch(), "what": WHAT, "release": RELEASE, "state": state, "look": "Monday", **START}
    Refused(watch, good, change, argument, kind=InputError).check()
    assert not state.exists()


def test_damaged_state_raises_and_stays_unchanged(state):
    taken(state, **START)
    text = state.read_text().replace('"Monday"', '"Sunday"')
    state.write_text(text)
    with pytest.raises(FormatError):
        taken(state, "Tuesday")
    assert state.read_text() == text


@pytest.mark.slow
def test_look_is_charged_and_answered_once(state, tmp_path):
    ledger = Ledger(tmp_path / "budget.db", limit=2.5)
    paid = {"ledger": ledger, "dataset": "patients"}
    first = taken(state, **START, **paid)
    with pytest.warns(EarlierReleaseWarning):
        assert taken(state, **paid) == first
    with pytest.raises(OtherDataError):
        taken(state, source=batch(450, 50), **paid)
    for other in ({**paid, "again": True}, {"ledger": Ledger(tmp_path / "other.db"), "dataset": "patients"}):
        with refused(InputError, "look"):
            taken(state, **other)
    taken(state, "Tuesday", **paid)
    before = state.read_text()
    with pytest.raises(BudgetError):
        taken(state, "Wednesday", **paid)
    assert state.read_text() == before
    entries = ledger.account("patients").entries
    assert [(one.kind, one.cost.epsilon) for one in entries] == [("look", 1.0)] * 2
    kept = json.loads(entries[0].text)
    assert kept["counts"] == list(first.looks[0].counts)


@pytest.mark.slow(unless="parquet")
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_counts_equal_those_of_evaluate(tmp_path, suffix):
    path = write(tmp_path / f"records.{suffix}", class_table(500, lists=False))
    what, released = ClassColumns("p_*", "name"), calibration_at(0.7)
    found = evaluate_table(path, what, released)
    (counts,) = monitoring_coverage_counts(path, what, released).tolist()
    assert counts == [round(found.coverage.value * 500), 500 - round(found.coverage.value * 500)]
    sizes = size_counts(path, ClassColumns("p_*"), released, [0, 1, 2, 3]).tolist()
    assert {str(size): n for size, n in enumerate(sizes) if n} == {part.name: part.covered for part in found.shares}
    assert sum(size_counts(path, ClassColumns("p_*"), released, [0, 2]).tolist()) == 500


DRIVER = """
import json, os, sys
import numpy as np, pyarrow as pa
import confide
from confide.ledger import Ledger
from confide.tables import ScoreColumn
from confide.watching import watch
from pathlib import Path
from tests.killed import arm

RELEASE = confide.Release.from_json(sys.argv[2])
TABLE = pa.table({"s": np.repeat([0.1, 0.9], [460, 40])})

def look(folder, name):
    ledger = Ledger(folder + "/budget.db")
    watch(TABLE, ScoreColumn("s"), RELEASE, state=Path(folder) / "watch.json", look=name, epsilon=1.0, batch=500,
          ledger=ledger, dataset="patients")

for folder, steps in json.loads(sys.argv[1]).items():
    look(folder, "before") if steps else None
    children = []
    for name, step in (steps or [["a", None], ["b", None], ["c", None], ["d", None]]):
        child = os.fork()
        if child == 0:
            if step:
                arm(*step)
            look(folder, name)
            os._exit(0)
        children.append(child)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    Path(folder, "status").write_text(json.dumps([os.waitstatus_to_exitcode(status) for status in statuses]))
"""

STEPS = {
    "before the count": ("confide.watching.take_look.monitoring_coverage_counts", "before"),
    "before the charge": ("confide.ledger.ledger.Ledger.charge_all", "before"),
    "charged, not drawn": ("confide.watching.watch_state.draw_counts", "before"),
    "drawn, not kept": ("confide.ledger.ledger.Ledger.attach_all", "before"),
    "kept, state not written": ("confide.watching.take_look.write_text", "before"),
    "state written": ("confide.watching.take_look.write_text", "after"),
}


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    folders = {step: tmp_path_factory.mktemp("killed") for step in [*STEPS, "together"]}
    plan = {str(folders[step]): [["Monday", where]] for step, where in STEPS.items()} | {str(folders["together"]): []}
    drive(DRIVER, json.dumps(plan), RELEASE.to_json())
    return folders


@pytest.mark.long
@pytest.mark.xdist_group("killed looks")
@pytest.mark.parametrize("step", STEPS)
def test_interrupted_look_is_neither_lost_nor_counted_twice(killed, step):
    """Whatever the step, the state is whole, and asking again adds the batch once; it is drawn at most once."""
    folder = killed[step]
    assert json.loads((folder / "status").read_text()) == [-signal.SIGKILL], "the process did not die at this step"
    state, ledger = folder / "watch.json", Ledger(folder / "budget.db")
    names = [look.name for look in Watch.load(state).looks]
    assert names == (["before", "Monday"] if step == "state written" else ["before"])
    entries = ledger.account("patients").entries
    charged = step not in ("before the count", "before the charge")
    kept = step in ("kept, state not written", "state written")
    assert len(entries) == 1 + charged
    assert [entry.release is not None for entry in entries] == [True, kept][: len(entries)]
    paid = {"ledger": ledger, "dataset": "patients"}
    if kept:
        with pytest.warns(EarlierReleaseWarning):
            found = taken(state, **paid)
        assert list(found.looks[1].counts) == json.loads(entries[1].text)["counts"]
        assert len(ledger.account("patients").entries) == 2
    elif charged:  # nothing of the batch was released: it is drawn now, and the charge of the dead process stands
        with pytest.warns(ChargedAgainWarning):
            found = taken(state, **paid)
    else:
        found = taken(state, **paid)
    assert [look.name for look in found.looks] == ["before", "Monday"]
    assert not list(folder.glob("*.part"))


@pytest.mark.slow
@pytest.mark.xdist_group("killed looks")
def test_concurrent_processes_keep_all_looks(killed):
    """Four processes look at once: each of their looks is in the state."""
    folder = killed["together"]
    assert json.loads((folder / "status").read_text()) == [0] * 4
    assert sorted(look.name for look in Watch.load(folder / "watch.json").looks) == ["a", "b", "c", "d"]
