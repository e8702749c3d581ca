"""Two copies of one private key file: the public file names one ledger, and only that ledger answers."""

import json
import shutil

import numpy as np
import pytest

from confide import federated
from confide.candidates import Candidates
from confide.errors import LedgerError
from confide.federated import Refusal
from confide.federated.checkpoint import store_checkpoint
from confide.ledger import Ledger, MissingRecordsError
from tests.federated.helpers import Federation, altered, content_of
from tests.refused import refused

FEW = Candidates.unit(11)


@pytest.fixture
def copies(tmp_path):
    """Create three silos; the first one's keys are in two folders, as for the command line and for Flower."""
    three = Federation(tmp_path, [np.linspace(0, 0.5, 200)] * 3)
    for name in ("command-line", "flower"):
        (tmp_path / name).mkdir()
        three.keys[0].save(tmp_path / name / "keys.json")
    return three


def answers_of_both(copies, tmp_path, plan):
    """Yield the answers of the two copies about different records, each with its own ledger."""
    for name, scores in (("command-line", copies.scores[0]), ("flower", 1 - copies.scores[0])):
        keys = federated.SiloKeys.load(tmp_path / name / "keys.json")
        ledger = federated.SiloLedger(tmp_path / name / "budget.db")
        yield federated.answer(plan, scores, keys, copies.policy, ledger)


def test_without_a_name_two_ledgers_answer_under_one_mask(copies, tmp_path):
    """Two answers under one mask reveal the difference of the records, up to noise of scale 1."""
    plan = copies.plan(method="secure-sum", epsilon=8.0, candidates=FEW)
    one, two = (np.array(content_of(text)["sent"], dtype=np.uint32) for text in answers_of_both(copies, tmp_path, plan))
    difference = (one - two).view(np.int32)
    assert max(abs(int(value)) for value in difference) < 1000  # has probability below 1e-6 for 32 random bits


@pytest.mark.slow
@pytest.mark.parametrize("method", ["secure-sum", "private-qq"])
def test_the_other_ledger_is_refused(copies, tmp_path, method):
    named = federated.SiloLedger(tmp_path / "command-line" / "budget.db").identity
    copies.silos[0] = copies.keys[0].public(200, ledger=named)
    plan = copies.plan(method=method, epsilon=8.0, candidates=FEW)
    both = answers_of_both(copies, tmp_path, plan)
    first = next(both)
    with refused(Refusal, "not-invited"):
        next(both)
    assert federated.SiloLedger(tmp_path / "flower" / "budget.db").spent == 0
    made = federated.aggregate(plan, [first, *copies.answers(plan, [1, 2])], keys=copies.coordinator)
    assert federated.verify(type(made).from_json(made.to_json()), copies.coordinator.public()).holds


def test_a_ledger_keeps_its_identity(tmp_path):
    ledger = Ledger(tmp_path / "a.db")
    first = ledger.identity()
    ledger.set_limit("patients", 1.0)
    assert Ledger(tmp_path / "a.db").identity() == first
    assert Ledger(tmp_path / "c.db").identity() != first
    assert first not in str(ledger.export())


def test_a_public_file_states_its_ledger_or_none(tmp_path):
    keys = federated.SiloKeys.generate("north")
    plain, named = keys.public(300), keys.public(300, ledger="0" * 64)
    assert plain.ledger is None
    for silo in (plain, named):
        assert federated.Silo.from_json(silo.to_json()) == silo
        assert silo.identity == keys.public_keys().identity
    with refused(Refusal, "altered"):
        federated.Silo.from_json(altered(named.to_json(), ledger=None))


def test_keys_that_name_a_ledger_answer_with_no_other(copies, tmp_path):
    """Test also a plan with an older public file that names no ledger; a copy of the key file names the ledger, too."""
    identity = federated.SiloLedger(tmp_path / "command-line" / "budget.db").identity
    own = tmp_path / "command-line" / "keys.json"
    federated.SiloKeys.load(own).name_ledger(own, identity)
    (tmp_path / "flower" / "keys.json").write_bytes(own.read_bytes())
    plan = copies.plan(method="secure-sum", epsilon=8.0, candidates=FEW)
    assert federated.read_plan(plan).silos[0].ledger is None
    both = answers_of_both(copies, tmp_path, plan)
    next(both)
    with refused(Refusal, "not-invited"):
        next(both)
    assert federated.SiloLedger(tmp_path / "flower" / "budget.db").spent == 0


def test_issued_anew_the_ledger_stays_named(tmp_path, run):
    """The ledger stays named when the public file is issued again, by command line or Python, with another size."""
    key, public = tmp_path / "north.key", tmp_path / "north.json"

    def issued(*words):
        run("federated", "public", "--keys", key, "--out", public, "--force", *words)
        return federated.Silo.from_json(public.read_text()).ledger

    run("federated", "keygen", "north", "--keys", key, "--public", public, "--ledger", tmp_path / "north.db")
    north, south = (federated.SiloLedger(tmp_path / f"{name}.db").identity for name in ("north", "south"))
    assert federated.Silo.from_json(public.read_text()).ledger == north
    assert issued("--size", 300) == north
    assert federated.SiloKeys.load(key).public(299).ledger == north
    assert issued("--ledger", tmp_path / "south.db") == issued() == south
    assert key.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.glob("north.*")) == ["north.db", "north.json", "north.key"]


def test_keys_without_a_ledger_do_not_state_one(tmp_path):
    keys = federated.SiloKeys.generate("north")
    keys.save(tmp_path / "north.key")
    assert set(json.loads((tmp_path / "north.key").read_text())) == {"kind", "schema", "name", "signing", "agreement"}
    (tmp_path / "damaged.key").write_text((tmp_path / "north.key").read_text().replace("}", ', "ledger": "ab"}'))
    with refused(Refusal, "malformed"):
        federated.SiloKeys.load(tmp_path / "damaged.key")


def test_an_outdated_copy_of_keys_and_ledger_is_refused_next_to_the_keys(copies, tmp_path):
    """Copies of one ledger have one identity; keys that continued with one copy refuse the other."""
    own = tmp_path / "command-line"
    keys, ledger = federated.SiloKeys.load(own / "keys.json"), federated.SiloLedger(own / "budget.db")
    copies.silos[0] = keys.public(200, ledger=ledger.identity)
    (tmp_path / "flower" / "budget.db").write_bytes((own / "budget.db").read_bytes())
    behind = federated.SiloLedger(tmp_path / "flower" / "budget.db")
    assert behind.identity == ledger.identity
    plan = copies.plan(method="secure-sum", epsilon=8.0, candidates=FEW)
    federated.answer(plan, copies.scores[0], keys, copies.policy, ledger)
    with refused(LedgerError, "ledger"):
        federated.answer(plan, copies.scores[0], keys, copies.policy, behind)


def test_copies_of_everything_are_noticed_by_the_coordinator_and_by_another_machine_alone(copies, tmp_path):
    """No silo can detect this, because each copy of keys, checkpoint and ledger is consistent (docs/federated.md)."""
    for name in ("command-line", "flower"):
        shutil.copy(copies.ledgers[0].path, tmp_path / name / "budget.db")
    plan = copies.plan(method="secure-sum", epsilon=8.0, candidates=FEW)
    both = list(answers_of_both(copies, tmp_path, plan))
    with refused(Refusal, "duplicate"):
        federated.aggregate(plan, [*both, *copies.answers(plan, [1, 2])])
    store_checkpoint(Ledger(tmp_path / "command-line" / "budget.db"), tmp_path / "elsewhere.json")
    with refused(MissingRecordsError, "ledger"):
        store_checkpoint(Ledger(tmp_path / "flower" / "budget.db"), tmp_path / "elsewhere.json")
