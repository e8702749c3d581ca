"""secure-sum with dropouts over files: killed processes, late and Byzantine silos, and restored ledgers."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from confide import federated
from confide.core import making_facts
from confide.federated import Refusal
from confide.federated.envelope import sign_message
from confide.federated.plan import FederatedPlan
from confide.ledger import Ledger
from tests.builders import slow
from tests.federated.by_files import Files
from tests.federated.helpers import PAID_STEPS, killed
from tests.federated.test_opened_sum import asked, part
from tests.refused import refused

NAMES = ("north", "south", "east", "west", "far")


@pytest.fixture
def files(tmp_path, monkeypatch, run):
    """Five hospitals, and a plan that allows one dropout."""
    monkeypatch.chdir(tmp_path)
    how = ("--method", "secure-sum", "--dropouts", 1, "--colluding", 1, "--set", "candidates=unit:21")
    made = Files(run, dict.fromkeys(NAMES, 60), asked=("--alpha", 0.2, "--epsilon", 4, *how))
    assert "the sum is opened by 4 of 5 silos" in made.plan()
    return made


def listed(files, *names, folder="openings", code=0):
    coordinator = ("--plan", "plan.json", "--keys", "coordinator.key", "--out-folder", folder)
    return files.run("federated", "list", *files.answers(names), *coordinator, code=code)


def opening(files, name, folder="openings"):
    own = ("--plan", "plan.json", *files.own(name, "part"))
    return ("federated", "open", f"{folder}/{name}.json", *own, "--coordinator", "public/coordinator.json")


@pytest.mark.slow
def test_whole_way_over_files_with_a_missing_silo(files, run):
    """One hospital never answers, and one separate process reconstructs the sum; the rest follows the how-to."""
    for name in NAMES[:4]:
        assert "the sum is opened by 4 of 5 silos" in files.answer(name)
    assert "secure-sum" in run("show", "plan.json")
    assert "4 of 5 silos, by a second message that costs nothing" in run("show", "plan.json")
    said = listed(files, *NAMES[:4])
    assert "on the list: 4 of 5 silos, without far\n" in said
    assert "a file for each of 5 openers; 4 of them must help" in said
    assert listed(files, *NAMES[:4]) == said  # the same survivor set again
    for name in NAMES[1:4]:
        assert "nothing was charged" in run(*opening(files, name))
    confide = [sys.executable, "-m", "confide", *map(str, opening(files, "north"))]
    done = subprocess.run(confide, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert "4 silos" in run("show", "openings/far.json")
    assert "part of 'north'" in run("show", "north-part.json")
    answers, parts = ([f"{name}-{what}.json" for name in NAMES[:4]] for what in ("answer", "part"))
    aggregate = ("federated", "aggregate", *answers, *parts, "--plan", "plan.json", "--out", "released.json")
    said = run(*aggregate)
    assert "4 of 5 silos answered" in said
    released = federated.FederatedRelease.load("released.json")
    assert (released.coverage, released.guarantee.n, len(released.opened.parts)) == (0.8, 240, 4)
    assert "secure-sum, 4 of 5 silos answered" in run("show", "released.json")
    shown = run("ledger", "show", "north.db", "sums opened with other silos")
    assert "spent 0 in 1 release" in shown
    assert "secure-sum, opened  epsilon 0" in shown
    assert Ledger("north.db").account("calibration records").spent().epsilon == 4.0
    # The hospital that was missing is not charged when it answers late, with or without a part.
    run(*opening(files, "far"))
    assert "late: this silo has helped to open" in files.answer("far", code=3)
    assert not Path("far-answer.json").exists()
    assert ("the sum was reconstructed by", "4 of 5 share holders; 4 must help") in making_facts(released)


@pytest.mark.parametrize("step", ["before the charge", *slow(list(PAID_STEPS)[1:])])
def test_killed_while_it_opens(seven, step):
    """After one survivor set is on disk the silo refuses all others, and its part is always the same."""
    plan = seven.opened_plan()
    read, answers = FederatedPlan.read(plan)[0], seven.answers(plan)
    one, other = asked(seven, plan, answers), asked(seven, plan, answers[1:])
    parts = [part(seven, plan, one, i) for i in range(1, 7)]  # load everything before the fork
    killed(PAID_STEPS[step], lambda: part(seven, plan, one, 0))
    kept = step not in ("before the charge", "charge written, not committed")
    assert seven.ledgers[0].has_opened_list(read) == kept
    if kept:
        with refused(Refusal, "session-used"):
            part(seven, plan, other, 0)
    made = part(seven, plan, one, 0)
    assert part(seven, plan, one, 0) == made
    assert seven.ledgers[0].spent == 2.0
    assert len(federated.aggregate(plan, answers, parts=[made, *parts]).answered) == 7


def test_killed_while_it_answers(seven):
    """A charge without a stored answer: the silo never answers again, is in no survivor set, and can send parts."""
    plan = seven.opened_plan()
    answers = seven.answers(plan, range(1, 7))
    killed(PAID_STEPS["made, not kept"], lambda: seven.answer(0, plan))
    with refused(Refusal, "interrupted"):
        seven.answer(0, plan)
    texts = asked(seven, plan, answers)
    released = federated.aggregate(plan, answers, parts=[part(seven, plan, texts, i) for i in range(6)])
    assert "silo 0" not in released.answered
    assert seven.ledgers[0].spent == 2.0


def test_two_processes_that_cannot_wait_keep_one_part(seven, monkeypatch):
    """As on Windows, both processes compute the part for one survivor set, and one stores it."""
    monkeypatch.setitem(sys.modules, "fcntl", None)
    plan = seven.opened_plan()
    one = asked(seven, plan, seven.answers(plan))
    keep, first = Ledger.attach_all, []

    def slow(self, kept):
        if not first:
            first.append(None)
            first.append(part(seven, plan, one, 2))
        keep(self, kept)

    monkeypatch.setattr(Ledger, "attach_all", slow)
    assert part(seven, plan, one, 2) == first[1]


def test_a_restored_ledger_of_a_share_holder_is_one_colluder_more(seven, tmp_path):
    """The restored ledger answers a second survivor set; without enough other parts no sum is reconstructed."""
    plan = seven.opened_plan()
    answers = seven.answers(plan)
    one, other = asked(seven, plan, answers), asked(seven, plan, answers[1:])
    parts = [part(seven, plan, one, i) for i in range(7)]
    content = json.loads(other["silo 0"])["content"]
    seven.ledgers[0] = federated.SiloLedger(tmp_path / "restored.db")
    assert "silo 0" not in dict(content["counted"])
    second = part(seven, plan, other, 0)
    with refused(Refusal, "missing"):
        federated.aggregate(plan, answers[1:], parts=[second])
    with refused(Refusal, "duplicate"):
        federated.aggregate(plan, answers, parts=[*parts, second])
    forged = sign_message("part", {**json.loads(parts[1])["content"], "silo": "silo 0"}, seven.keys[1].signing)
    with refused(Refusal, "foreign"):
        federated.aggregate(plan, answers, parts=[forged, *parts[1:]])
