"""A request that is repeated, at the same time or after a kill: one release, or a charge that is told."""

import json
import sqlite3
import threading
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

import confide
from confide.errors import ChargedAgainWarning, EarlierReleaseWarning
from confide.ledger import Ledger, database, make_payment, pay
from confide.mechanisms import PrivacyStatement
from tests.killed import drive

psycopg = pytest.importorskip("psycopg")

PRIVACY = PrivacyStatement("add_remove", 0.1, 1, 0.1, 0.2, None)


def asked(ledger, request, draw, **options):
    payment = make_payment(PRIVACY, "look by discrete-laplace", {"request": request}, ledger, "patients", **options)
    return pay(payment, lambda: [4, 1], bytes, draw)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::confide.errors.EarlierReleaseWarning")
def test_an_identical_request_in_progress_is_waited_for(ledger, place):
    """The second caller returns the first one's release, also at a limit that allows only one; others do not wait."""
    ledger.set_limit("patients", 0.2)
    drawing, ends, found = threading.Event(), threading.Event(), []

    def draw(_):
        drawing.set()
        assert ends.wait(60)
        return f"release {len(found)}"

    callers = [threading.Thread(target=lambda: found.append(asked(Ledger(place), 1, draw))) for _ in range(3)]
    for caller in callers:
        caller.start()
    assert drawing.wait(60)
    assert asked(Ledger(place), 2, lambda _: "another request") == "another request"
    time.sleep(0.2)
    assert not found
    ends.set()
    for caller in callers:
        caller.join()
    assert found == ["release 0"] * 3
    assert len(ledger.account("patients").entries) == 2


def test_an_interrupted_request_is_charged_once_more_and_this_is_told(ledger):
    with pytest.raises(ZeroDivisionError):
        asked(ledger, 1, lambda _: 1 / 0)
    with pytest.warns(ChargedAgainWarning) as told:
        assert asked(ledger, 1, lambda _: "drawn") == "drawn"
    first, second = ledger.account("patients").entries
    assert first.charged_at in str(told[0].message)
    assert (first.release, second.release) == (None, "drawn")
    with pytest.warns(EarlierReleaseWarning):
        assert asked(ledger, 1, lambda _: "never") == "drawn"
    asked(ledger, 1, lambda _: "anew", again=True)  # that an earlier run was interrupted does not matter
    assert ledger.account("patients").spent().epsilon == 0.3


@pytest.mark.parametrize("error", [sqlite3.OperationalError("theirs"), psycopg.OperationalError("theirs")])
def test_errors_of_other_databases_are_not_those_of_the_ledger(ledger, error):
    """Records may be read from databases while a request is locked; no lock stays behind."""
    with pytest.raises(type(error), match="theirs"), ledger.lock("a" * 64):
        raise error
    with ledger.lock("a" * 64):
        if isinstance(ledger.path, Path):
            assert len(list(ledger.path.parent.glob("*.lock"))) == 1
    assert not isinstance(ledger.path, Path) or not list(ledger.path.parent.glob("*.lock"))


def test_a_clock_that_is_set_back_changes_nothing(tmp_path, monkeypatch):
    """Rows are in the order of their numbers."""
    ledger = Ledger(tmp_path / "budget.db", limit=0.3)
    for year in (2100, 1990, 2026):

        class Clock(database.datetime):
            @classmethod
            def now(cls, tz=None, year=year):
                return cls(year, 1, 1, tzinfo=tz)

        monkeypatch.setattr(database, "datetime", Clock)
        asked(ledger, year, lambda _, year=year: f"of {year}")
    entries = ledger.account("patients").entries
    assert [entry.charged_at[:4] for entry in entries] == ["2100", "1990", "2026"]
    assert ledger.account("patients").remaining() == 0.0
    with pytest.raises(confide.BudgetError):
        asked(ledger, 0, lambda _: "beyond")


# Rounds of eight processes with one request each; all are killed at random moments, and then the request is repeated.
DRIVER = """
import json, os, random, signal, sys, time, warnings
from confide.ledger import Ledger
from tests.ledger.test_repeated import asked

place, published, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
rng = random.Random(0)
Ledger(place).entry("0" * 32)  # imports, before the forks

def attempt(request):
    child = os.fork()
    if child:
        return child
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        text = asked(Ledger(place), request, lambda _: os.urandom(16).hex())
    line = json.dumps([request, text, [one.category.__name__ for one in told]]) + chr(10)
    file = os.open(published, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line.encode())
    os._exit(0)

for request in range(rounds):
    began = time.monotonic()
    children = [attempt(request) for _ in range(8)]
    for child in children:
        time.sleep(rng.random() * 0.04)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert os.waitpid(attempt(request), 0)[1] == 0
"""


@pytest.mark.long
def test_two_hundred_kills_lose_and_double_nothing(place, tmp_path):
    rounds = 25
    drive(DRIVER, str(place), str(tmp_path / "published"), str(rounds))
    published = [json.loads(line) for line in (tmp_path / "published").read_text().splitlines()]
    entries = Ledger(place).account("patients").entries
    by_request = Counter(entry.request for entry in entries)
    assert len(by_request) == rounds
    stored = {entry.release for entry in entries if entry.release is not None}
    assert len(stored) == sum(entry.release is not None for entry in entries) == rounds  # one release of each request
    for request in range(rounds):
        texts = {text for of, text, _ in published if of == request}
        assert len(texts) == 1  # the repetition got the same bytes as everybody who got an answer
        assert texts <= stored
    told = sum("ChargedAgainWarning" in kinds for *_, kinds in published)
    lost = sum(entry.release is None for entry in entries)
    assert told <= lost  # whoever was charged again and lived was told; others were killed before they could be
    newest = {entry.request: entry for entry in entries}
    assert all(entry.release is not None for entry in newest.values())
    assert Fraction(repr(Ledger(place).account("patients").spent().epsilon)) == Fraction(len(entries), 10)
