"""Every value that a notebook ends a cell with shows itself: in one line, in full, and as a table."""

import math
from html import escape

import numpy as np
import pytest

import confide
from confide.core import Document
from confide.support import Described
from tests.calibrations import calibration_at
from tests.kept import RELEASES, names, read, text_of

KEPT = names(*RELEASES, "confide/evaluation", "confide/watch")


def shown(value):
    """Its three forms, looked at."""
    line, full, table = repr(value), str(value), value._repr_html_()
    assert line.startswith(f"{type(value).__name__}(")
    assert "\n" not in line
    assert len(line) < 300
    assert table.startswith('<table class="tex2jax_ignore mathjax_ignore"><caption')
    assert len(table) < 20_000
    return line, full, table


@pytest.mark.long(unless=("calibration-infinite", "intervals", "risk", "sides"))
@pytest.mark.parametrize("name", KEPT)
def test_releases_of_every_kind(name):
    value = read(text_of(name))
    assert isinstance(value, Described)
    line, full, table = shown(value)
    assert "sha256" not in line
    privacy = getattr(value, "privacy", None)
    if privacy is not None:
        assert ("NOT PRIVATE" in line) == math.isinf(privacy.epsilon)
        unit = privacy.neighbors
        assert math.isinf(privacy.epsilon) or f"({unit}" in line
    if isinstance(value, confide.Release) and value.by is None and value.loss is None:
        guarantee = value.guarantee
        assert guarantee.brief in line
        assert f"alpha {float(value.alpha):g}" in line
        assert f"threshold {value.threshold:.6g}" in line
        assert (f"score {value.score!r}" if value.score else "no score named") in line
        assert escape(str(guarantee)) in table
    if isinstance(value, Document) and not isinstance(value, confide.Evaluation):
        assert escape(str(value.privacy)) in table
    assert full.splitlines()[0].strip() not in ("", line)


def test_evaluations_say_that_they_are_not_private():
    p = np.tile([[0.75, 0.25], [0.25, 0.75]], (50, 1))
    found = confide.evaluation.evaluate_sets(calibration_at(0.5), p, ["cat", "dog"] * 50, ["cat", "dog"])
    levels = confide.evaluation.evaluate_scores(read(text_of("levels")), np.linspace(0, 0.2, 100))
    for value in (found, levels):
        line, full, table = shown(value)
        assert line.endswith("NOT PRIVATE)")
        assert "These numbers are computed from the records without noise: they are not private." in full
    assert "(coverage 1.000 (95 % interval 0.964 to 1.000, n=100), 0.9 is promised, " in repr(found)
    assert "alpha 0.3: 1.000" in repr(levels)
    assert 'scope="rowgroup"' in table
    sets = confide.PredictionSets(np.array([[True, False], [True, True]]), ("cat", "dog"))
    assert (
        shown(confide.evaluation.class_coverage(sets, ["dog", "dog"]))[0]
        == "CoverageTable(1 parts, n=2, worst 'dog' 0.500)"
    )
    assert repr(confide.evaluation.coverage(sets, ["dog", "dog"])).startswith("CoverageEstimate(0.500 (95 % interval")


def test_ledgers_and_accounts_show_neither_releases_nor_fingerprints(tmp_path):
    ledger = confide.Ledger(tmp_path / "budget.db", limit=2.0)
    options = {"neighbors": "replace_one", "score": "lac", "ledger": ledger, "dataset": "ward <b>"}
    confide.calibrate(np.linspace(0, 1, 3000), 0.1, 0.5, **options)
    account = ledger.account("ward <b>")
    (entry,) = account.entries
    assert "spent 0.5 in 1 release (replace_one); limit 2, 1.5 left" in repr(account)
    for value in (ledger, account, entry):
        line, full, table = shown(value)
        assert value is entry or f"ward <b>: {account.summary}" in full.splitlines()
        assert "<b>" not in table
        for text in (line, table):  # what was released is in the file, but not how data are distinguished
            assert entry.release[:40] not in text
            assert entry.fingerprint not in text
    shown(account.spent())
