"""A ledger as version 0.1 wrote it: the same accounts and releases, and identical requests are served from it."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from confide.errors import FormatError
from confide.ledger import Ledger
from tests.releases.samples.made_by_0_1 import ledger_requests, summary

FOLDER = Path(__file__).parent / "samples" / "0.1"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture
def path(tmp_path):
    return shutil.copy(FOLDER / "budget.ledger", tmp_path)


def test_the_sample_says_what_it_said(path):
    assert Ledger(path, create=False).export() == EXPECTED["export"]


def test_identical_requests_are_served_from_the_sample(path):
    """Nothing is charged: today's requests, mechanisms and candidates have the digests that 0.1 gave them."""
    ledger = Ledger(path, create=False)
    before = ledger.accounts()
    served = ledger_requests(ledger)
    assert {name: summary(one) for name, one in served.items()} == EXPECTED["served"]
    assert ledger.accounts() == before


def test_the_sample_goes_on(path):
    """A charge of today stands beside those of then."""
    ledger = Ledger(path, create=False)
    entry = ledger.account("patients").entries[0]
    before = ledger.account("patients").spent().epsilon
    ledger.charge("patients", replace(entry.cost, mechanism="another"), "a" * 64)
    assert ledger.account("patients").spent().epsilon > before


def test_a_changed_sample_is_refused(path):
    content = Path(path).read_bytes()
    changed = content.replace(b'"epsilon": 1.0', b'"epsilon": 0.1', 1)
    assert changed != content
    Path(path).write_bytes(changed)
    with pytest.raises(FormatError, match="altered or damaged"):
        Ledger(path, create=False)
