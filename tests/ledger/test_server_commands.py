"""A ledger on a server from the command line, from silos, from many processes, and after a failover."""

import subprocess
import sys

import pytest

from confide.cli import main
from confide.ledger import Cost, Ledger, request_digest
from confide.ledger.location import MissingRecordsError
from tests.files import class_table, write
from tests.ledger.servers import JOBS, OFFICERS, ServerLedger, new_database
from tests.refused import refused
from tests.tables.postgres_server import PASSWORD

ASK = ("--probabilities", "p_*", "--label", "name", "--alpha", "0.1", "--epsilon", "1")


@pytest.fixture
def said(capfd, monkeypatch):
    """Runs commands with the password in the environment; at the end all their output is searched for it."""
    printed = []
    monkeypatch.setenv("PGPASSWORD", PASSWORD)

    def run(*arguments: object) -> tuple[int, str]:
        code = main([str(one).replace(f":{PASSWORD}@", "@") for one in arguments])
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
    code, out = said(*paid, tmp_path / "three.json", "--set", "n_min=2")
    assert code == 3
    assert "0.5 left of its limit epsilon = 1.5" in out
    code, out = said("ledger", "limit", jobs, "patients", 100)
    assert code == 3
    assert "limits are the owner's" in out
    code, out = said("ledger", "show", officers, "patients")
    assert JOBS in out
    assert "limit 1.5, 0.5 left" in said("ledger", "list", officers)[1]
    for command, out in (("export", "export.json"), ("show", "report.html")):
        assert said("ledger", command, officers, "--out", tmp_path / out)[0] == 0
    for address in (jobs.replace(PASSWORD, "wrong"), jobs.replace("5", "x"), jobs + "?x=1"):
        assert said("ledger", "list", address)[0] == 3
    for file in tmp_path.iterdir():
        assert PASSWORD.encode() not in file.read_bytes()


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
