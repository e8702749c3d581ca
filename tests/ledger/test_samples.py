"""A ledger of version 0.1: the same accounts and releases, and identical requests are recognised."""

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import confide
from confide.errors import FormatError, OtherDataError
from confide.ledger import Ledger, payment
from tests.refused import refused
from tests.releases.samples.made_by_0_1 import ledger_requests, summary

FOLDER = Path(__file__).parent / "samples" / "0.1"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture
def path(tmp_path):
    return shutil.copy(FOLDER / "budget.ledger", tmp_path)


def test_the_sample_says_what_it_said(path):
    said = Ledger(path, create=False).export()
    for dataset in said["datasets"]:
        assert {entry.pop("kind") for entry in dataset["entries"]} == {"calibration"}
    assert said == EXPECTED["export"]


SAME_MECHANISM = ("pps",)
"""Requests with the mechanism of 0.1; the default mechanism is another one now."""


@pytest.mark.filterwarnings("ignore::confide.EarlierReleaseWarning")
def test_identical_requests_are_known_from_the_sample(path, monkeypatch):
    """Today's requests, mechanisms and candidates have the digests that 0.1 gave them; its releases are read."""
    monkeypatch.setattr(payment, "find_same_data", lambda dataset, entries, seen, key: entries[-1])
    ledger = Ledger(path, create=False)
    before = ledger.accounts()
    served = ledger_requests(ledger, SAME_MECHANISM)
    assert {name: summary(one) for name, one in served.items()} == {k: EXPECTED["served"][k] for k in SAME_MECHANISM}
    assert ledger.accounts() == before


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
def test_requests_that_another_mechanism_answers_today_are_new(path):
    ledger = Ledger(path, create=False)
    ledger.set_limit("patients", 20.0)
    before = {name: len(account.entries) for name, account in ledger.accounts().items()}
    new = EXPECTED["served"].keys() - set(SAME_MECHANISM)
    assert ledger_requests(ledger, new).keys() == new
    charged = {name: len(account.entries) - before[name] for name, account in ledger.accounts().items()}
    assert charged == {"patients": 5, "zcdp": 1, "public size": 1, "hospitals": 2, "bound": 0}


def test_the_sample_cannot_tell_whether_data_are_the_same(path):
    """0.1 kept no fingerprints: nothing is charged, nothing returned, and the message says why."""
    ledger = Ledger(path, create=False)
    before = ledger.accounts()
    with refused(OtherDataError, "dataset"):
        ledger_requests(ledger, SAME_MECHANISM)
    assert ledger.accounts() == before


@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
def test_the_sample_gets_its_key_with_its_first_charge(path):
    ledger = Ledger(path, create=False)
    scores = np.random.default_rng(0).random(300)
    assert ledger.snapshot().key is None
    released = confide.calibrate(scores, 0.4, 0.5, ledger=ledger, dataset="patients")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    with pytest.warns(confide.EarlierReleaseWarning):
        assert confide.calibrate(scores, 0.4, 0.5, ledger=ledger, dataset="patients") == released


def test_the_sample_goes_on(path):
    """A new charge is added to those of the sample."""
    ledger = Ledger(path, create=False)
    entry = ledger.account("patients").entries[0]
    before = ledger.account("patients").spent().epsilon
    ledger.charge("patients", replace(entry.cost, mechanism="another"), "a" * 64)
    assert ledger.account("patients").spent().epsilon > before


def test_changed_sample_raises(path):
    content = Path(path).read_bytes()
    changed = content.replace(b'"epsilon": 1.0', b'"epsilon": 0.1', 1)
    assert changed != content
    Path(path).write_bytes(changed)
    with pytest.raises(FormatError):
        Ledger(path, create=False)
