"""A request that looks identical: the earlier release for the same data, an error for other data."""

import json

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.errors import EarlierReleaseWarning, InputError, OtherDataError
from confide.tables import ScoreColumn, calibrate_table
from tests.draws import SECURE, recording
from tests.refused import refused
from tests.tables.engines import SQLite

pytestmark = pytest.mark.filterwarnings("ignore::confide.CoverageWarning")  # +inf is drawn now and then

UNIT = confide.Candidates.unit(20)
N = 400


def month(k):
    """The records of one month."""
    return np.random.default_rng(k).random(N)


def groups(scores, **options):
    return confide.calibrate(scores, 0.1, 1.0, groups=np.arange(N) % 2, names=[0, 1], partition="kind", **options)


def sides(scores, **options):
    return confide.calibrate_sides(np.tile([-1.0, 1.0], (N, 1)), scores * 4 - 2, 0.2, 1.0, **options)


def losses(scores, **options):
    options.pop("candidates")
    table = np.clip(scores[:, None] - UNIT.edges, 0, 1)
    return confide.calibrate_losses(table, UNIT, 0.1, 1.0, u=np.linspace(0, 0.99, N), loss="shortfall", **options)


KINDS = {
    "threshold": lambda s, **o: confide.calibrate(s, 0.1, 1.0, **o),
    "public n": lambda s, **o: confide.calibrate(s, 0.1, 1.0, neighbors="replace_one", **o),
    "noisy-histogram": lambda s, **o: confide.calibrate(s, 0.1, 1.0, mechanism="noisy-histogram", **o),
    "pps-laplace": lambda s, **o: confide.calibrate(s, 0.1, 1.0, neighbors="replace_one", mechanism="pps-laplace", **o),
    "none": lambda s, **o: confide.calibrate(s, 0.1, mechanism="none", **o),
    "levels": lambda s, **o: confide.calibrate(s, [0.1, 0.2], 1.0, **o),
    "groups": groups,
    "sides": sides,
    "losses": losses,
    "table": lambda s, **o: calibrate_table(pa.table({"s": s}), ScoreColumn("s"), 0.1, 1.0, **o),
}


def charges(ledger, dataset="clinic"):
    return len(ledger.account(dataset).entries)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_only_the_same_data_get_the_earlier_release(ledger, kind):
    ask, paid = KINDS[kind], {"ledger": ledger, "dataset": "clinic", "candidates": UNIT}
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
    ask(month(2), again=True, **paid)
    assert charges(ledger) == 2 * before


@pytest.mark.parametrize("kind", ["threshold", "levels", "groups", "sides"])
def test_an_earlier_release_states_the_versions_that_made_it(ledger, monkeypatch, kind):
    ask, paid = KINDS[kind], {"ledger": ledger, "dataset": "clinic", "candidates": UNIT}
    for module in "account", "steps":
        monkeypatch.setattr(f"confide.core.{module}.library_versions", lambda: {"confide": "0.4.99"})
    first = ask(month(1), **paid)
    monkeypatch.undo()
    with pytest.warns(EarlierReleaseWarning):
        assert ask(month(1), **paid).checksum == first.checksum
    assert first.versions == {"confide": "0.4.99"}


@pytest.mark.slow
def test_again_draws_anew_whatever_the_data_are(ledger, draw_with):
    """Were the earlier release returned for the same data, equal releases would reveal that no one joined or left."""
    drawn = []
    draw_with(select=recording(drawn, SECURE.select))
    for k in range(3):
        confide.calibrate(month(1), 0.1, 1.0, ledger=ledger, dataset="clinic", again=True)
        assert (charges(ledger), len(drawn)) == (k + 1, k + 1)


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
        ask(month(1), ledger=ledger, dataset="clinic", candidates=UNIT)
    assert ledger.account("clinic").entries == ()


def test_again_belongs_to_a_ledger():
    with refused(InputError, "again"):
        confide.calibrate(month(1), 0.1, 1.0, again=True)


def test_key_and_fingerprints_stay_in_the_file(ledger):
    confide.calibrate(month(1), 0.1, 1.0, ledger=ledger, dataset="clinic")
    keys = [ledger.look_up([confide.Dataset("clinic")], []).key]
    marks = [entry.fingerprint for entry in ledger.account("clinic").entries]
    assert [len(text) for text in (*keys, *marks)] == [64, 64]
    shown = json.dumps(ledger.export()) + repr(ledger) + repr(ledger.account("clinic")) + repr(ledger.accounts())
    assert not [text for text in (*keys, *marks) if text in shown]
