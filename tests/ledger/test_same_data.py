"""Identical requests, whatever the types of their numbers: the earlier release, or an error for other data."""

import json
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.errors import EarlierReleaseWarning, InputError, InputTypeError, OtherDataError
from confide.evaluation import Evaluation
from confide.ledger import Ledger, fingerprint
from confide.tables import ScoreColumn, calibrate_table
from confide.watching import Watch
from tests.refused import refused
from tests.tables.engines import SQLite

pytestmark = pytest.mark.filterwarnings("ignore::confide.CoverageWarning")  # +inf is drawn now and then

UNIT = confide.Candidates.unit(20)
N = 400
RELEASE = confide.calibrate(np.random.default_rng(0).random(N), 0.1, 1.0, score="lac")
NUMBERS = (float, int, np.int64, np.float32, Fraction, Decimal)
INTEGERS = (int, np.int64)


def month(k):
    """The records of one month."""
    return np.random.default_rng(k).random(N)


def groups(scores, x=1.0, **options):
    return calibrate(scores, 0.1, x, groups=np.arange(N) % 2, names=[0, 1], partition="kind", **options)


def sides(scores, x=1.0, **options):
    ends = np.tile([-1.0, 1.0], (N, 1))
    return confide.calibrate_sides(ends, scores * 4 - 2, 0.2, x, candidates=UNIT, **options)


def losses(scores, x=1.0, bound=1.0, **options):
    table = np.clip(scores[:, None] - UNIT.edges, 0, 1)
    options = {"u": np.linspace(0, 0.99, N), "loss": "shortfall", "bound": bound} | options
    return confide.calibrate_losses(table, UNIT, bound / 4, x, **options)


def looked(ledger, **asked):
    """A first look with a new state file: a repeated request must be answered from the ledger."""
    state = ledger.path.parent / f"watch-{len(list(ledger.path.parent.iterdir()))}.json"
    asked = {"epsilon": 1.0, "batch": 300, "look": "a", "ledger": ledger} | asked
    return confide.watch(pa.table({"s": month(1)}), ScoreColumn("s"), RELEASE, state=state, **asked)


calibrate = partial(confide.calibrate, candidates=UNIT)
KINDS = {
    "threshold": lambda s, x=1.0, **o: calibrate(s, 0.1, x, **o),
    "public n": lambda s, x=1.0, **o: calibrate(s, 0.1, x, neighbors="replace_one", **o),
    "noisy-histogram": lambda s, x=1.0, **o: calibrate(s, 0.1, x, mechanism="noisy-histogram", **o),
    "pps-laplace": lambda s, x=1.0, **o: calibrate(s, 0.1, x, neighbors="replace_one", mechanism="pps-laplace", **o),
    "none": lambda s, x=1.0, **o: calibrate(s, x / 4, mechanism="none", **o),
    "levels": lambda s, x=1.0, **o: calibrate(s, [x / 8, x / 4], x, **o),
    "groups": groups,
    "sides": sides,
    "losses": losses,
    "table": lambda s, x=1.0, **o: calibrate_table(pa.table({"s": s}), ScoreColumn("s"), 0.1, x, candidates=UNIT, **o),
}
"""Calibrations of records, with a number that may be of any type."""
NUMBERED = {
    "rho": lambda s, x, **o: calibrate(s, 0.1, rho=x, **o),
    "alpha and delta": lambda s, x, **o: calibrate(s, x / 4, 1.0, delta=x / 8, **o),
    "unit": lambda s, x, **o: confide.calibrate(s, 0.1, 1.0, unit=x, **o),
    "bound": lambda s, x, **o: losses(s, 1.0, bound=x, **o),
    "recalibrate": lambda s, x, **o: confide.recalibrate(RELEASE, s, epsilon=x, **o),
    "evaluate": lambda s, x, **o: confide.evaluate(RELEASE, scores=s, epsilon=x, **o),
    "confidence": lambda s, x, **o: confide.evaluate(RELEASE, scores=s, epsilon=1.0, confidence=x / 4, **o),
    "watch": lambda s, x, **o: looked(epsilon=x, **o),
    "tolerance": lambda s, x, **o: looked(tolerance=x / 4, error=x / 4, **o),
}
COUNTED = {
    "calibrate": lambda s, k, **o: calibrate(s, 0.1, 2.0, records_per_person=k, n_min=k, **o),
    "evaluate": lambda s, k, **o: confide.evaluate(RELEASE, scores=s, epsilon=2.0, records_per_person=k, **o),
    "evaluate n": lambda s, k, **o: confide.evaluate(
        RELEASE, scores=s[:2], epsilon=2.0, neighbors="replace_one", n=k, **o
    ),
    "watch": lambda s, k, **o: looked(batch=k, looks=k, records_per_person=k, **o),
}


def charges(ledger, dataset="clinic"):
    return len(ledger.account(dataset).entries)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_only_the_same_data_get_the_earlier_release(ledger, kind):
    ask, paid = KINDS[kind], {"ledger": ledger, "dataset": "clinic"}
    first = ask(month(1), **paid)
    before = charges(ledger)
    with pytest.warns(EarlierReleaseWarning) as said:
        again = ask(month(1), **paid)
    assert (again, again.checksum) == (first, first.checksum)
    (earlier,) = [one for one in said if one.category is EarlierReleaseWarning]
    assert earlier.filename == __file__
    assert set(earlier.message.charged_at) <= {entry.charged_at for entry in ledger.account("clinic").entries}
    with refused(OtherDataError, "dataset"):
        ask(month(2), **paid)
    assert charges(ledger) == before
    ask(month(1), again=True, **paid)  # the same data are drawn anew: whether they changed must not show
    assert charges(ledger) == 2 * before


@pytest.mark.slow(unless=("file-groups", "file-levels"))
@pytest.mark.parametrize("kind", ["threshold", "levels", "groups", "sides"])
def test_an_earlier_release_states_the_versions_that_made_it(ledger, monkeypatch, kind):
    ask, paid = KINDS[kind], {"ledger": ledger, "dataset": "clinic"}
    for module in "account", "steps":
        monkeypatch.setattr(f"confide.core.{module}.library_versions", lambda: {"confide": "0.4.99"})
    first = ask(month(1), **paid)
    monkeypatch.undo()
    with pytest.warns(EarlierReleaseWarning):
        assert ask(month(1), **paid).checksum == first.checksum
    assert first.versions == {"confide": "0.4.99"}


@pytest.mark.slow
def test_the_order_of_records_does_not_matter_and_one_record_does(ledger):
    paid = {"ledger": ledger, "dataset": "clinic", "candidates": UNIT}
    first = confide.calibrate(month(1), 0.1, 1.0, **paid)
    with pytest.warns(EarlierReleaseWarning):
        assert confide.calibrate(month(1)[::-1], 0.1, 1.0, **paid) == first
    with refused(OtherDataError, "dataset"):
        confide.calibrate(month(1)[1:], 0.1, 1.0, **paid)


@pytest.mark.slow
def test_arrays_files_and_databases_are_recognised_equally(ledger, tmp_path):
    import ibis
    import pyarrow.parquet

    table = pa.table({"s": month(1)})
    pyarrow.parquet.write_table(table, tmp_path / "s.parquet")
    made = [SQLite(tmp_path).create(pa.table({"s": month(k)})) for k in (1, 2)]
    same, other = map(ibis.sqlite.connect(tmp_path / "db.sqlite").table, made)
    paid = {"ledger": ledger, "dataset": "clinic", "candidates": UNIT}
    first = confide.calibrate(month(1), 0.1, 1.0, **paid)
    for source in (tmp_path / "s.parquet", same):
        with pytest.warns(EarlierReleaseWarning):
            assert calibrate_table(source, ScoreColumn("s"), 0.1, 1.0, **paid) == first
    with refused(OtherDataError, "dataset"):
        calibrate_table(other, ScoreColumn("s"), 0.1, 1.0, **paid)
    assert charges(ledger) == 1
    calibrate_table(other, ScoreColumn("s"), 0.1, 1.0, again=True, **paid)
    assert charges(ledger) == 2


@pytest.mark.parametrize("ask", [KINDS["levels"], KINDS["sides"]])
def test_what_is_released_together_is_charged_together_or_not_at_all(ledger, ask):
    ledger.set_limit("clinic", 0.75)
    with refused(confide.BudgetError, "dataset"):
        ask(month(1), ledger=ledger, dataset="clinic")
    assert ledger.account("clinic").entries == ()


def test_again_belongs_to_a_ledger():
    with refused(InputError, "again"):
        confide.calibrate(month(1), 0.1, 1.0, again=True)


@pytest.mark.slow
def test_key_and_fingerprints_stay_in_the_file(ledger):
    mark = fingerprint(bytes(range(32)), month(1))
    confide.calibrate(month(1), 0.1, 1.0, ledger=ledger, dataset=confide.Dataset("clinic", fingerprint=mark))
    keys = [ledger.look_up([confide.Dataset("clinic")], []).key]
    marks = [mark, *(entry.fingerprint for entry in ledger.account("clinic").entries)]
    assert [len(text) for text in (*keys, *marks)] == [64] * 3
    shown = (
        json.dumps(ledger.export(), allow_nan=False)
        + repr(ledger)
        + repr(ledger.account("clinic"))
        + repr(ledger.accounts())
    )
    assert not [text for text in (*keys, *marks) if text in shown]


def requests(ask, values, folder):
    """The requests in a ledger after one with each of these values."""
    ledger = Ledger(folder / "budget.db")
    for value in values:
        ask(month(1), value, ledger=ledger, dataset="d")
    return [entry.request for entry in ledger.account("d").entries]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::confide.errors.EarlierReleaseWarning")
@pytest.mark.parametrize("name", [*KINDS, *NUMBERED])
def test_numbers_of_every_type_are_one_request(name, tmp_path):
    """Parts released together are several requests, each made once."""
    ask = (KINDS | NUMBERED)[name]
    first = requests(ask, [2.0], tmp_path)
    assert requests(ask, [kind(2) for kind in NUMBERS], tmp_path) == first


@pytest.mark.filterwarnings("ignore::confide.errors.EarlierReleaseWarning")
@pytest.mark.parametrize("ask", COUNTED.values(), ids=COUNTED)
def test_integers_of_every_type_are_one_request(ask, tmp_path):
    """Counts must be integers; a float raises an error before any charge."""
    assert len(requests(ask, [kind(2) for kind in INTEGERS], tmp_path)) == 1
    with pytest.raises(InputTypeError):
        requests(ask, [2.0], tmp_path)


def test_what_cannot_be_written_is_refused_before_it_is_drawn(tmp_path, monkeypatch, draw_with):
    """Should a number slip through all checks, writing it fails first: nothing is drawn or charged."""
    ledger = Ledger(tmp_path / "budget.db")
    for document in (Evaluation, Watch):
        monkeypatch.setattr(document, "to_json", lambda self: json.dumps(np.int64(1)))
    draw_with(noisy_counts=pytest.fail)
    with pytest.raises(TypeError):
        confide.evaluate(RELEASE, scores=month(1), epsilon=1.0, ledger=ledger, dataset="d")
    with pytest.raises(TypeError):
        looked(ledger, dataset="d")
    assert not ledger.accounts()
