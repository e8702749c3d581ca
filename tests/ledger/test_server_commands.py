"""A ledger on a server from the command line, from silos, from many processes, and after a failover."""

import subprocess
import sys

import numpy as np
import pytest

from confide import federated
from confide.cli import main
from confide.errors import LedgerError
from confide.ledger import Cost, Ledger, check_head, request_digest
from tests.federated.helpers import Federation
from tests.files import class_table, write
from tests.ledger.servers import JOBS, OFFICERS, ServerLedger, new_database
from tests.tables.postgres_server import PASSWORD

ASK = ("--probabilities", "p_*", "--label", "name", "--alpha", "0.1", "--epsilon", "1")


@pytest.fixture
def said(capfd):
    """Runs a command; all that it and everything before it printed is searched for the password in the end."""
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
    """Jobs charge and are refused; the owner sets limits; auditors read; passwords are nowhere, in files neither."""
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
    assert "limits, schedules and moves are the owner's" in out
    code, out = said("ledger", "show", officers, "patients")
    assert f"by {JOBS}" in out
    assert "limit 1.5, 0.5 left" in said("ledger", "list", officers)[1]
    for command in ("export", "report"):
        assert said("ledger", command, officers, "--out", tmp_path / f"{command}.out")[0] == 0
    assert said("ledger", "check", officers, "--head", tmp_path / "head.json")[0] == 0
    assert said("ledger", "move", owner, tmp_path / "moved.db")[0] == 0
    code, out = said(*paid, tmp_path / "four.json", "--epsilon", 0.25)
    assert code == 3
    assert "moved to" in out
    for address in (jobs.replace(PASSWORD, "wrong"), jobs.replace("5", "x"), jobs + "?x=1"):
        assert said("ledger", "list", address)[0] == 3
    for file in tmp_path.iterdir():
        assert PASSWORD.encode() not in file.read_bytes()
    assert Ledger(tmp_path / "moved.db").account("patients").spent().epsilon == 1.0


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
    with pytest.raises(federated.Refusal, match=r"^budget-spent"):
        three.answer(0, three.plan(epsilon=2.0))
    assert federated.aggregate(plan, three.answers(plan)).threshold <= 1
    assert PASSWORD not in repr(three.ledgers[0])


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
    """They start together and ask for 40 releases where 13 fit: exactly 13 are charged."""
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
def test_failover_to_a_restored_backup(new_server_ledger, tmp_path):
    """It is a whole ledger of an earlier day, and charges again what was spent since; the remembered head tells."""
    today = new_server_ledger()
    Ledger(today.url()).set_limit("patients", 2.0)
    charge = (Cost(1.0, "add_remove", "m"), request_digest({"a": 1}))
    Ledger(today.url(JOBS)).charge("patients", *charge)
    check_head(Ledger(today.url(OFFICERS)), tmp_path / "head.json")
    backup = ServerLedger(today.server, new_database(today.server, today.database))
    check_head(Ledger(backup.url(OFFICERS)), tmp_path / "head.json")  # nothing was charged since: it is the same
    Ledger(today.url(JOBS)).charge("patients", *charge)
    check_head(Ledger(today.url(OFFICERS)), tmp_path / "head.json")
    assert Ledger(backup.url(JOBS)).account("patients").remaining() == 1.0
    with pytest.raises(LedgerError, match="a backup was put back"):
        check_head(Ledger(backup.url(OFFICERS)), tmp_path / "head.json")
    Ledger(backup.url(JOBS)).charge("patients", *charge)  # as many records as before the failover
    with pytest.raises(LedgerError, match="a backup was put back"):
        check_head(Ledger(backup.url(OFFICERS)), tmp_path / "head.json")
