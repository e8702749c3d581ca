"""Several processes at once, SIGKILL at every step between request and release, and requests that are repeated."""

import json
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest

import confide
from confide.errors import ChargedAgainWarning, EarlierReleaseWarning
from confide.ledger import Ledger, make_payment, pay, rows
from confide.ledger.database import transaction
from confide.mechanisms import PrivacyStatement
from tests.killed import drive
from tests.refused import refused

SPEND = """
import sys
from confide.errors import BudgetError
from confide.ledger import Cost, Ledger, request_digest
done = 0
for k in range(20):
    try:
        request = request_digest({"k": [sys.argv[2], k]})
        token = Ledger(sys.argv[1]).charge("patients", Cost(0.1, "add_remove", "m"), request)
        Ledger(sys.argv[1]).attach(token, f"release {sys.argv[2]} {k}")
        done += 1
    except BudgetError:
        pass
print(done)
"""

# Every step of a paid release, as (module or class, function, whether to die before it, in the middle, or after).
STEPS = {
    "before the charge": ("confide.ledger.ledger.Ledger.charge_all", "before"),
    "data set written, not committed": ("confide.ledger.rows.Connection.add:dataset", "after"),
    "charge written, not committed": ("confide.ledger.rows.Connection.add:charge", "after"),
    "charge committed": ("confide.ledger.ledger.Ledger.charge_all", "after"),
    "before the draw": ("confide.mechanisms.slopes.Slopes.choose", "before"),
    "after the draw": ("confide.mechanisms.slopes.Slopes.choose", "after"),
    "before the release is kept": ("confide.ledger.ledger.Ledger.attach_all", "before"),
    "release written, not committed": ("confide.ledger.rows.Connection.add:release", "after"),
    "release kept": ("confide.ledger.ledger.Ledger.attach_all", "after"),
    "calibration returned": ("confide.core.account._LedgerAccount.answers", "after"),
}

# The same for a request of which one threshold was released before, and another is new.
LATER_STEPS = {
    "compared, not charged": ("confide.ledger.payment.Transaction.earlier_releases", "after"),
    "the other one charged": ("confide.ledger.ledger.Ledger.charge_all", "after"),
    "the other one kept": ("confide.ledger.ledger.Ledger.attach_all", "after"),
}

# A process of its own that imports once and forks a child per step; each child arms one step and really dies there.
DRIVER = """
import json, os, sys
import numpy as np
import confide, confide.ledger.payment
from confide.errors import ChargedAgainWarning
from confide.ledger import Ledger
from confide.ledger.database import transaction
from tests.killed import arm

SCORES = np.random.default_rng(0).random(300)

UNIT = confide.Candidates.unit(50)
confide.calibrate(SCORES, 0.1, 1.0)  # before the forks, so that children need not load and plan again what they do
confide.calibrate(SCORES, [0.1, 0.2], 1.0, candidates=UNIT, shares=["1/2", "1/2"])
for folder, (kept_in, place, when, later) in json.loads(sys.argv[1]).items():
    ledger = Ledger(kept_in, limit=1.5)
    out = folder + "/published"
    if later:
        confide.calibrate(SCORES, 0.1, 0.5, candidates=UNIT, ledger=ledger, dataset="patients")
    child = os.fork()
    if child == 0:
        arm(place, when)
        if later:
            paid = {"candidates": UNIT, "ledger": ledger, "dataset": "patients"}
            released = confide.calibrate(SCORES, [0.1, 0.2], 1.0, shares=["1/2", "1/2"], **paid)
        else:
            released = confide.calibrate(SCORES, 0.1, 1.0, ledger=ledger, dataset="patients")
        with open(out, "w") as file:
            file.write(released.to_json())
        os._exit(0)
    _, status = os.waitpid(child, 0)
    with open(folder + "/status", "w") as file:
        file.write(str(os.waitstatus_to_exitcode(status)))
"""


def run(code: str, *arguments: str) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_processes_never_overspend(place):
    """Eight processes request 160 releases of 0.1 under a limit of 3: exactly 30 are charged."""
    Ledger(place).set_limit("patients", 3.0)
    workers = [run(SPEND, str(place), str(k)) for k in range(8)]
    done = [int(worker.communicate(timeout=300)[0]) for worker in workers]
    account = Ledger(place).account("patients")
    assert sum(done) == len(account.entries) == 30
    assert account.spent().epsilon == 3.0
    assert all(entry.release is not None for entry in account.entries)


@pytest.mark.slow
def test_processes_make_one_ledger(tmp_path):
    """All processes create the missing ledger at once; one succeeds, and no charge is lost."""
    workers = [run(SPEND, str(tmp_path / "new.db"), str(k)) for k in range(4)]
    done = [int(worker.communicate(timeout=300)[0]) for worker in workers]
    assert done == [20] * 4
    assert len(Ledger(tmp_path / "new.db").account("patients").entries) == 80


@dataclass(frozen=True)
class Killed:
    """Where a process was killed at a step: its own folder, and its ledger."""

    folder: Path
    place: str


@pytest.fixture(scope="module", params=["file", pytest.param("server", marks=pytest.mark.slow)])
def killed(request, tmp_path_factory) -> dict[str, Killed]:
    folders = {step: tmp_path_factory.mktemp("killed") for step in [*STEPS, *LATER_STEPS]}
    if request.param == "file":
        places = {step: str(folder / "budget.db") for step, folder in folders.items()}
    else:
        new = request.getfixturevalue("new_server_ledger")
        places = {step: new().url() for step in folders}
    steps = [(step, *where, False) for step, where in STEPS.items()]
    steps += [(step, *where, True) for step, where in LATER_STEPS.items()]
    plan = {str(folders[step]): (places[step], *where) for step, *where in steps}
    drive(DRIVER, json.dumps(plan))
    return {step: Killed(folders[step], places[step]) for step in folders}


@pytest.mark.slow
@pytest.mark.xdist_group("killed")
@pytest.mark.parametrize("step", STEPS)
def test_killed_between_request_and_release(killed, step):
    """After a kill at every step: no release without a charge, no lost charge, and the ledger opens."""
    folder, place = killed[step].folder, killed[step].place
    assert (folder / "status").read_text() == str(-signal.SIGKILL), "the process did not die at this step"
    accounts = Ledger(place).accounts()
    entries = accounts["patients"].entries if accounts else ()
    committed = step not in ("before the charge", "data set written, not committed", "charge written, not committed")
    assert [entry.cost.epsilon for entry in entries] == ([1.0] if committed else [])
    kept = step in ("release kept", "calibration returned")
    assert [entry.release is not None for entry in entries] == ([kept] if committed else [])
    assert not (folder / "published").exists()


@pytest.mark.slow
@pytest.mark.xdist_group("killed")
@pytest.mark.parametrize("step", LATER_STEPS)
def test_killed_between_comparison_and_release(killed, step):
    """A stored release is neither charged again nor lost; a new one is charged before it is drawn."""
    folder, place = killed[step].folder, killed[step].place
    assert (folder / "status").read_text() == str(-signal.SIGKILL), "the process did not die at this step"
    entries = Ledger(place).account("patients").entries
    charged = step != "compared, not charged"
    assert [entry.cost.epsilon for entry in entries] == ([0.5, 0.5] if charged else [0.5])
    kept = step == "the other one kept"
    assert [entry.release is not None for entry in entries] == ([True, kept] if charged else [True])
    assert not (folder / "published").exists()


@pytest.mark.slow
@pytest.mark.xdist_group("killed")
def test_after_a_kill_the_limit_still_counts_the_charge(killed):
    import numpy as np

    import confide

    scores = np.random.default_rng(0).random(300)
    ledger = Ledger(killed["after the draw"].place)
    with refused(confide.BudgetError, "dataset"):
        confide.calibrate(scores, 0.1, 1.0, ledger=ledger, dataset="patients")
    # A release that was not kept before the process died is drawn anew, charged once more, and this is said.
    ledger = Ledger(killed["before the draw"].place)
    ledger.set_limit("patients", 2.0)
    with pytest.warns(ChargedAgainWarning):
        confide.calibrate(scores, 0.1, 1.0, ledger=ledger, dataset="patients")
    assert ledger.account("patients").spent().epsilon == 2.0
    # A release that was kept before the process died is found, and costs nothing.
    ledger = Ledger(killed["release kept"].place)
    with pytest.warns(confide.errors.EarlierReleaseWarning):
        assert confide.calibrate(scores, 0.1, 1.0, ledger=ledger, dataset="patients").epsilon == 1.0
    assert len(ledger.account("patients").entries) == 1


@pytest.mark.slow
def test_killed_at_random_times(place):
    """Workers are killed while they spend: every release that was acknowledged has its charge, and the ledger opens."""
    import time

    Ledger(place).set_limit("patients", 1000.0)
    code = SPEND.replace("range(20)", "range(100000)").replace("done += 1", "print(k, flush=True)")
    acknowledged = 0
    for k in range(6):
        with run(code, str(place), str(k)) as worker:
            assert worker.stdout is not None
            assert worker.stdout.readline().strip() == "0"
            time.sleep(0.03 * k)
            worker.kill()
            acknowledged += 1 + len(worker.stdout.read().split())
        account = Ledger(place).account("patients")
        released = sum(entry.release is not None for entry in account.entries)
        assert acknowledged <= released <= len(account.entries) <= acknowledged + 2 * (k + 1)


TAKE = """
import sqlite3, sys
for _ in range(2):
    connection = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        print("writes")
    except sqlite3.OperationalError:
        print("has to wait")
    connection.close()
"""


@pytest.mark.slow
def test_opening_a_ledger_leaves_the_locks_of_other_threads_in_place(tmp_path):
    """While one thread writes, another one opens the ledger; other processes still wait, and no charge is lost.

    A file that is opened and closed next to SQLite would give back all locks of the process.
    """
    ledger = Ledger(tmp_path / "budget.db")
    opened = {"key": "patients", "name": "patients", "neighbors": "add_remove", "fingerprint": None}
    with transaction(ledger.path, 5.0, write=True) as connection:
        connection.add("dataset", **opened, epsilon=None, dp_delta=None)
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(lambda: Ledger(ledger.path).accounts()).result() == {}
        done = subprocess.run(
            [sys.executable, "-c", TAKE, str(ledger.path)], capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines() == ["has to wait"] * 2
        assert (tmp_path / "budget.db-wal").exists()
    assert list(ledger.accounts()) == ["patients"]


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

        class Clock(rows.datetime):
            @classmethod
            def now(cls, tz=None, year=year):
                return cls(year, 1, 1, tzinfo=tz)

        monkeypatch.setattr(rows, "datetime", Clock)
        asked(ledger, year, lambda _, year=year: f"of {year}")
    entries = ledger.account("patients").entries
    assert [entry.charged_at[:4] for entry in entries] == ["2100", "1990", "2026"]
    assert ledger.account("patients").remaining() == 0.0
    with pytest.raises(confide.BudgetError):
        asked(ledger, 0, lambda _: "beyond")


# Rounds of eight processes with one request each; all are killed at random moments, and then the request is repeated.
REPEATING = """
import json, os, random, signal, sys, time, warnings
from confide.ledger import Ledger
from tests.ledger.test_processes import asked

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
    drive(REPEATING, str(place), str(tmp_path / "published"), str(rounds))
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
