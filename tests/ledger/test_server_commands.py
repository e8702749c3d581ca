"""A ledger on a server from the command line, from silos, from many processes, and after a failover."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import confide
from confide import federated
from confide.cli import main
from confide.errors import LedgerError
from confide.ledger import Cost, Ledger, request_digest
from confide.ledger.state import MissingRecordsError
from confide.releases import Document
from confide.watching import Watch
from tests.calibrations import calibration_at
from tests.federated.helpers import Federation, asked_twice_at_once
from tests.files import class_table, write
from tests.ledger.servers import JOBS, OFFICERS, ServerLedger, new_database
from tests.refused import refused
from tests.tables.postgres_server import PASSWORD

ASK = ("--probabilities", "p_*", "--label", "name", "--alpha", "0.1", "--epsilon", "1")


@pytest.fixture
def said(capfd):
    """Runs commands; at the end all their output is searched for the password."""
    printed = []

    def run(*arguments: object) -> tuple[int, str]:
        code = main([str(one) for one in arguments])
        out, err = capfd.readouterr()
        printed.append(out + err)
        return code, printed[-1]

    yield run
    assert PASSWORD not in "".join(printed)


@pytest.mark.slow
def test_the_commands_of_a_ledger(on_server, said, tmp_path):
    """Jobs charge up to the limit; the owner sets limits; auditors read; passwords are in no output and no file."""
    owner, jobs, officers = on_server.url(), on_server.url(JOBS), on_server.url(OFFICERS)
    records = write(tmp_path / "records.parquet", class_table())
    paid = ("calibrate", records, *ASK, "--ledger", jobs, "--dataset", "patients", "--out")
    assert said("ledger", "init", owner, "--charge-role", JOBS, "--read-role", OFFICERS)[0] == 0
    assert said("ledger", "limit", owner, "patients", 1.5)[0] == 0
    assert said(*paid, tmp_path / "one.json")[0] == 0
    code, out = said(*paid, tmp_path / "two.json")
    assert code == 0
    assert "nothing was charged" in out
    code, out = said(*paid, tmp_path / "three.json", "--n-min", 2)
    assert code == 3
    assert "0.5 left of its limit epsilon = 1.5" in out
    code, out = said("ledger", "limit", jobs, "patients", 100)
    assert code == 3
    assert "limits are the owner's" in out
    code, out = said("ledger", "show", officers, "patients")
    assert f"by {JOBS}" in out
    assert "limit 1.5, 0.5 left" in said("ledger", "list", officers)[1]
    for command, out in (("export", "export.json"), ("report", "report.html")):
        assert said("ledger", command, officers, "--out", tmp_path / out)[0] == 0
    assert said("ledger", "check", officers)[0] == 0
    for address in (jobs.replace(PASSWORD, "wrong"), jobs.replace("5", "x"), jobs + "?x=1"):
        assert said("ledger", "list", address)[0] == 3
    for file in tmp_path.iterdir():
        assert PASSWORD.encode() not in file.read_bytes()


@pytest.mark.slow
def test_silos_keep_their_answers_on_a_server(on_server, tmp_path):
    """One session, one answer, the budget of the policy: as in a file."""
    rng = np.random.default_rng(0)
    three = Federation(tmp_path, [rng.random(200) for _ in range(3)], budget=3.0)
    three.ledgers[0] = federated.SiloLedger(on_server.url(JOBS))
    plan = three.plan(epsilon=2.0)
    first = three.answer(0, plan)
    assert three.answer(0, plan) == first
    assert three.ledgers[0].spent == 2.0
    with pytest.raises(federated.Refusal) as refusal:
        three.answer(0, three.plan(epsilon=2.0))
    assert refusal.value.code == "budget-spent"
    assert federated.aggregate(plan, three.answers(plan)).threshold <= 1
    assert PASSWORD not in repr(three.ledgers[0])


@pytest.mark.slow
def test_a_second_request_waits_for_the_first_on_a_server(on_server, tmp_path, monkeypatch):
    three = Federation(tmp_path, [np.linspace(0, 1, 200)] * 3)
    three.ledgers[0] = federated.SiloLedger(on_server.url(JOBS))
    asked_twice_at_once(monkeypatch, three)


@pytest.mark.slow
def test_one_waits_for_a_token_on_a_server_until_its_timeout(on_server):
    ledger = Ledger(on_server.url(JOBS), timeout=0.1)
    with ledger.lock("ab" * 16):
        with ledger.lock("cd" * 16):  # another one is another matter
            pass
        with refused(LedgerError, "ledger"), ledger.lock("ab" * 16):
            pass
    with ledger.lock("ab" * 16):
        pass


SPEND = """
import sys
from confide.errors import BudgetError
from confide.ledger import Cost, Ledger, request_digest
ledger, done = Ledger(sys.argv[1]), 0
sys.stdin.readline()
for k in range(5):
    try:
        token = ledger.charge("patients", Cost(0.1, "add_remove", "m"), request_digest({"k": [sys.argv[2], k]}))
        ledger.attach(token, "release")
        done += 1
    except BudgetError:
        pass
print(done)
"""


@pytest.mark.slow
def test_eight_processes_race_for_the_last_of_the_budget(on_server):
    """Processes request 40 releases at once, of which 13 fit: exactly 13 are charged."""
    Ledger(on_server.url()).set_limit("patients", 1.3)
    command = [sys.executable, "-c", SPEND, on_server.url(JOBS)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    workers = [subprocess.Popen([*command, str(k)], **pipes) for k in range(8)]
    for worker in workers:
        worker.stdin.write("\n")
        worker.stdin.flush()
    done = [int(worker.communicate(timeout=300)[0]) for worker in workers]
    entries = Ledger(on_server.url()).account("patients").entries
    assert sum(done) == len(entries) == 13
    assert all(entry.release == "release" for entry in entries)


@pytest.mark.slow
def test_failover_to_a_restored_backup(new_server_ledger):
    """A standby with missing commits charges again what was spent; a ledger that was open detects it."""
    today = new_server_ledger()
    Ledger(today.url()).set_limit("patients", 2.0)
    charge = (Cost(1.0, "add_remove", "m"), request_digest({"a": 1}))
    Ledger(today.url(JOBS)).charge("patients", *charge)
    backup = ServerLedger(today.server, new_database(today.server, today.database))
    opened = Ledger(today.url(JOBS))
    opened.charge("patients", *charge)
    object.__setattr__(opened, "path", Ledger(backup.url(JOBS)).path)  # the same name leads to the standby
    assert Ledger(backup.url(JOBS)).account("patients").remaining() == 1.0
    with refused(MissingRecordsError, "ledger"):
        opened.accounts()
    Ledger(backup.url(JOBS)).charge("patients", *charge)  # as many records as before the failover
    with refused(MissingRecordsError, "ledger"):
        opened.charge("patients", *charge)


@pytest.fixture
def year(on_server, said, tmp_path, monkeypatch):
    """A data set on a server with a limit, and files of one batch; what a charging role runs."""
    monkeypatch.chdir(tmp_path)
    calibration_at(float(confide.Candidates.unit(10).values[4]), score=None).save("released.json")
    write(tmp_path / "batch.parquet", {"s": np.repeat([0.1, 0.9], [460, 40])})
    assert said("ledger", "limit", on_server.url(), "patients", 6)[0] == 0
    paid = ("--epsilon", 1, "--ledger", on_server.url(JOBS), "--dataset", "patients")
    return lambda *words: said(*words, "--score-column", "s", *paid)


COMMANDS = {
    "calibrate": ("calibrate", "batch.parquet", "--alpha", 0.3, "--candidates", "unit:20", "--out"),
    "recalibrate": ("recalibrate", "released.json", "batch.parquet", "--candidates", "unit:20", "--out"),
    "evaluate": ("evaluate", "batch.parquet", "--calibration", "released.json", "--out"),
    "watch": ("watch", "released.json", "batch.parquet", "--batch", 500, "--look", "Monday", "--state"),
}


@pytest.mark.slow
def test_a_year_is_charged_on_a_server_by_a_role_that_may_only_charge(year, on_server, tmp_path):
    """Calibrations, evaluations, looks and renewals: charged, repeated at no cost, errors beyond the limit."""
    for name, words in COMMANDS.items():
        code, out = year(*words, f"{name}.json")
        assert code == 0, out
        before = Ledger(on_server.url(OFFICERS)).account("patients")
        code, out = year(*words, f"{name}-again.json")
        assert code == 0
        assert "nothing was charged" in out
        assert Ledger(on_server.url(OFFICERS)).account("patients") == before
    entries = before.entries
    assert [entry.kind for entry in entries] == ["calibration", "calibration", "evaluation", "look"]
    assert {entry.by for entry in entries} == {JOBS}
    assert all(entry.release is not None for entry in entries)
    kept = {name: Document.load(f"{name}.json") for name in ("calibrate", "evaluate")}
    assert [Document.from_json(entries[at].release) for at in (0, 2)] == list(kept.values())
    for day in ("Tuesday", "Wednesday"):
        assert year(*COMMANDS["watch"][:-2], day, "--state", "watch.json")[0] == 0
    code, out = year(*COMMANDS["watch"][:-2], "Thursday", "--state", "watch.json")
    assert code == 3
    assert [look.name for look in Watch.load("watch.json").looks] == ["Monday", "Tuesday", "Wednesday"]
    for file in tmp_path.iterdir():
        assert PASSWORD.encode() not in file.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["evaluate", "watch"])
def test_a_role_that_may_only_read_draws_nothing(year, said, on_server, tmp_path, name):
    paid = ("--epsilon", 1, "--ledger", on_server.url(OFFICERS), "--dataset", "patients")
    code, out = said(*COMMANDS[name], "out.json", "--score-column", "s", *paid)
    assert code == 3
    assert "no look yet" in out if name == "watch" else "noise" not in out
    assert "coverage  " not in out
    assert not (tmp_path / "out.json").exists()
    assert not Ledger(on_server.url()).account("patients").entries


@pytest.mark.slow
@pytest.mark.parametrize("name", ["recalibrate", "evaluate", "watch"])
def test_a_run_that_is_interrupted_on_a_server_goes_on(year, on_server, tmp_path, monkeypatch, name):
    """The charge stands, nothing was shown; the next run charges again."""

    def stop(*arguments):
        os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr("confide.ledger.Ledger.attach_all", stop)
        assert year(*COMMANDS[name], "out.json")[0] == 143
    assert not (tmp_path / "out.json").exists()
    (entry,) = Ledger(on_server.url()).account("patients").entries
    assert entry.release is None
    code, out = year(*COMMANDS[name], "out.json")
    kept = [one.release is not None for one in Ledger(on_server.url()).account("patients").entries]
    assert code == 0, out
    assert kept == [False, True]
