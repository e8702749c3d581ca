"""Fingerprints, policies and folders by the command line, and an attacker who carries the files."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from confide import federated
from confide.cli.federated.coordinator import silos_of_plan
from confide.federated.envelope import sign_message
from tests.federated.by_files import RULES as PINNED
from tests.federated.by_files import Files
from tests.federated.test_identities import NORTH, SOUTH

NAMES = ("north", "south", "east")
PRINTS = {
    "north": "56142 33978 35996 60287 69298 19768 37038 69948",
    "south": "83126 27191 64617 81960 26356 40438 64937 64865",
}


def keys_of(name):
    return {"north": NORTH, "south": SOUTH}.get(name) or federated.SiloKeys(name, name.encode()[:1] * 32, b"\5" * 32)


@pytest.fixture
def files(tmp_path, monkeypatch, run):
    """Three hospitals and a coordinator, with all public files in one folder."""
    monkeypatch.chdir(tmp_path)
    asked = ("--alpha", 0.2, "--epsilon", 4, "--candidates", "unit:21", "--method", "secure-sum")
    keys = {name: keys_of(name) for name in (*NAMES, "coordinator")}
    return Files(run, dict.fromkeys(NAMES, 40), asked=asked, keys=keys)


RULES = (*PINNED, "--budget", 4)
BY_POLICY = ("--policy", "policy.json")


def test_both_sides_see_the_same_digits(files, run):
    made = run("federated", "keygen", "west", "--keys", "west.key", "--public", "west.json", "--size", 300)
    west = federated.SiloKeys.load("west.key").public_keys()
    digits = federated.fingerprint(west.identity)
    assert f"fingerprint  {digits}\n" in made
    assert "records      300, public\n" in made
    for file in ("west.json", "west.key"):
        assert digits in run("show", file)
    assert federated.SiloKeys.load("west.key").signing.hex() not in run("show", "west.key", "--json")
    assert PRINTS["north"] in run("show", "public/north.json")
    files.plan()
    shown, said = run("show", "plan.json"), files.answer("north")
    everybody = [keys_of(name).public_keys() for name in (*NAMES, "coordinator")]
    for silo in everybody:
        assert federated.fingerprint(silo.identity) in shown
        assert federated.fingerprint(silo.identity) in said
    for text in (shown, said):
        assert f"  roster, all of them      {federated.fingerprint(federated.roster(everybody), groups=12)}\n" in text
        assert f"{PRINTS['north']}, 40 records\n" in text
    document = json.loads(run("show", "plan.json", "--json"))
    assert document["fingerprints"]["north"] == PRINTS["north"]
    assert document["roster"] == federated.fingerprint(federated.roster(everybody), groups=12)


def test_show_says_what_a_plan_asks_before_anything_is_paid(files, run):
    files.plan("--closes", "2030-01-31T12:00:00Z", "--classes", "cat,dog", "--score", "lac")
    shown = run("show", "plan.json")
    for words in ("secure-sum", "lac", "coverage 0.8", "4-differential privacy", "at most 1 of the 3 silos may collude",
                  "2: cat, dog", "2030-01-31T12:00:00Z", "3 answers: coverage at least 0.8",
                  "also if the silos differ"):  # fmt: skip
        assert words in shown
    assert not Path("north.db").exists()
    assert "--records: " in run("show", "plan.json", "--records", 2, code=3)


def test_show_reads_what_else_a_federation_writes(files, run):
    files.plan()
    files.answer("north")
    shown = run("show", "north-answer.json")
    assert "answer of 'north'" in shown
    assert federated.FederatedPlan.read(Path("plan.json").read_text())[0].digest in shown
    head = json.loads(run("show", "north-answer.json", "--json"))["answer"]
    assert (head["silo"], head["signer"]) == ("north", NORTH.public_keys().signing)
    bad = json.loads(Path("north-answer.json").read_text())
    Path("bad.json").write_text(json.dumps(bad | {"content": bad["content"] | {"silo": "south"}}))
    assert "altered" in run("show", "bad.json", code=3)
    Path("bad.json").write_text(sign_message("answer", bad["content"] | {"silo": "a\x1b[31m"}, NORTH.signing))
    assert "\x1b" not in run("show", "bad.json", code=3)


def test_sizes_are_issued_anew_with_the_same_digits(files, run):
    said = run("federated", "public", "--keys", "north.key", "--size", 41, "--out", "north.json")
    assert PRINTS["north"] in said
    assert "41, public" in said
    assert run("federated", "public", "--keys", "north.key", "--out", "north.json", code=4)
    run("federated", "public", "--keys", "north.key", "--out", "north.json", "--force")
    assert "secret" in run("show", "north.json")
    assert "would replace the input" in run(
        "federated", "public", "--keys", "north.key", "--out", "north.key", "--force", code=3
    )
    # Another silo's policy, pinned before, stays valid.
    run("federated", "policy", *RULES, "--out", "policy.json")
    Path("north.csv").write_text("s\n" + "\n".join(map(str, np.linspace(0, 1, 41))) + "\n")
    run("federated", "public", "--keys", "north.key", "--size", 41, "--out", "public/north.json", "--force")
    files.plan()
    for name in NAMES:
        files.answer(name, rules=BY_POLICY)


def test_unsigned_public_files_are_refused(files, run):
    old = {"kind": "confide/federated.silo", **SOUTH.public_keys(40).fields()}
    Path("public", "south.json").write_text(json.dumps(old))
    for words in (("show", "public/south.json"), ("federated", "policy", *RULES, "--out", "p.json")):
        said = run(*words, code=3)
        assert "'public/south.json' cannot be used: malformed" in said


def test_the_man_in_the_middle(files, run):
    """An attacker carries all files, has every public file, and tries to reveal one hospital's counts alone."""
    attacker = federated.SiloKeys("attacker", b"\7" * 32, b"\7" * 32)
    north = json.loads(Path("public", "north.json").read_text())
    # A file with the attacker's key for masks: the hospital's own signature no longer matches.
    swapped = north | {"content": north["content"] | {"agreement": attacker.public_keys().agreement}}
    Path("swapped.json").write_text(json.dumps(swapped))
    assert "altered" in run("show", "swapped.json", code=3)
    files.plan()
    peers = ("--coordinator", "public/coordinator.json", "--budget", 4, "--peer", "swapped.json", "--peer")
    assert "altered" in files.answer("south", rules=(*peers, "public/east.json"), code=3)
    assert "altered" in files.plan(silos="swapped.json", out="another.json", code=3)
    # The same file, signed by the attacker's key, has another fingerprint, which people would compare.
    mine = federated.SiloKeys("north", attacker.signing, attacker.agreement)
    Path("swapped.json").write_text(mine.public(40).to_json())
    assert PRINTS["north"] not in run("show", "swapped.json")
    # All silos that pinned the true file refuse a plan with the false one, and are not charged.
    shutil.copytree("public", "false")
    shutil.copy("swapped.json", "false/north.json")
    files.plan(silos="false", out="false.json")
    run("federated", "policy", *RULES, "--out", "policy.json")
    for rules in (RULES, ("--policy", "policy.json")):
        said = files.answer("south", rules=rules, plan="false.json", code=3)
        assert f"and {PRINTS['north']} in the policy" in said
    assert "spent so far: 4 of 4" in files.answer("south")  # nothing was charged before


def test_a_policy_file_states_what_options_state(files, run):
    words = ("federated", "policy", *RULES, "--per-plan", 2, "--allow", "fedcp2-qq", "--least-colluding", 2)
    said = run(*words, "--out", "policy.json")
    assert PRINTS["south"] in said
    made = federated.Policy.load("policy.json")
    assert made.coordinator == keys_of("coordinator").public_keys().identity
    assert made.methods == ("private-qq", "secure-sum", "fedcp2-qq")
    assert dict(made.peers) == {name: keys_of(name).public_keys().identity for name in (*NAMES, "coordinator")}
    assert (made.budget, made.per_plan, made.least_colluding) == (4.0, 2.0, 2)
    assert said.split("\n", 1)[1] == run("show", "policy.json").split("\n", 1)[1]
    assert run(*words, "--out", "policy.json", code=4)
    assert "would replace the input" in run(*words, "--out", "public/north.json", "--force", code=3)
    twice = files.answer("north", "--policy", "policy.json", code=2)
    assert "--coordinator must be left out with --policy: the policy contains it" in twice
    assert "or --policy" in files.answer("north", rules=("--budget", 4), code=2)
    files.plan()
    assert "the policy requires 2" in files.answer("north", rules=BY_POLICY, code=3)
    files.plan("--colluding", 2, "--force")
    assert "and the policy allows 2 for one" in files.answer("north", rules=BY_POLICY, code=3)


def test_a_silo_demands_tolerance_of_colluders_on_the_command_line(files, run):
    assert "at most 1 of the 3 silos may collude" in files.plan()
    said = files.answer("north", "--least-colluding", 2, code=3)
    assert "colludes with 1 of the silos, the policy requires 2" in said
    assert "lower --least-colluding" in said
    assert "at most 2 of the 3 silos may collude" in files.plan("--colluding", 2, "--force")
    assert "at most 2 of the 3 silos may collude" in files.answer("north", "--least-colluding", 2)
    assert "no silo may collude" in files.plan("--colluding", 0, "--force")
    assert "colludes with 0 of the silos" in files.answer("south", code=3)


def test_folders_of_public_files(files, run):
    """The coordinator's own file is not a silo by accident; other files are ignored, and ambiguous ones are refused."""
    Path("public", "notes.txt").write_text("of another user")
    shutil.copy("public/north.json", "public/north (1).json")
    assert "not invited: public/coordinator.json, the coordinator's own" in files.plan(out="public/plan.json")
    made, _ = federated.FederatedPlan.read(Path("public", "plan.json").read_text())
    assert {silo.name for silo in made.silos} == set(NAMES)
    own = keys_of("coordinator").public_keys()
    alone = Path("public/coordinator.json")
    assert [silo.name for silo in silos_of_plan([alone], own)[0]] == ["coordinator"]  # by intent
    assert silos_of_plan([alone.parent], own) == (list(made.silos), [alone])
    Path("empty").mkdir()
    assert "has no public file" in files.plan(silos="empty", out="p.json", code=3)
    run("federated", "public", "--keys", "north.key", "--size", 41, "--out", "public/north (1).json", "--force")
    said = files.plan(out="p.json", code=3)
    assert "name: 'north' is in two public files" in said


def test_keygen_never_replaces_keys_and_offers_what_it_has(files, run):
    words = ("federated", "keygen", "north", "--keys", "north.key", "--public", "new.json")
    before = Path("north.key").read_bytes()
    assert "confide federated public" in run(*words, code=4)
    said = run("federated", "keygen", "north", "--keys", "new.key", "--public", "public/north.json", code=4)
    assert "--force" not in said
    assert not Path("new.key").exists()
    assert Path("north.key").read_bytes() == before


def test_a_copy_of_the_keys_answers_from_the_named_ledger_alone(files, run):
    """`keygen` and `public` name the ledger; older keys work without, and a warning informs the silo."""
    files.plan()
    assert "this silo's public file names no ledger" in files.answer("north")
    made = run("federated", "keygen", "west", "--keys", "west.key", "--public", "west.json", "--ledger", "west.db")
    west = federated.Silo.from_json(Path("west.json").read_text())
    assert west.ledger == federated.SiloLedger("west.db").identity
    assert f"ledger       {federated.fingerprint(west.ledger, groups=4)}\n" in made
    assert f"ledger       {federated.fingerprint(west.ledger, groups=4)}\n" in run("show", "west.json")
    for name in NAMES:
        more = ("--size", 40, "--ledger", f"{name}.db", "--out", f"public/{name}.json", "--force")
        run("federated", "public", "--keys", f"{name}.key", *more)
    files.plan("--force")
    assert "names no ledger" not in files.answer("south")
    Path("flower").mkdir()
    shutil.copy("south.key", "flower/keys.json")
    own = ("--plan", "plan.json", "--keys", "flower/keys.json", "--ledger", "flower/budget.db", "--out", "again.json")
    said = run("federated", "answer", "south.csv", "--score-column", "s", *own, *RULES, code=3)
    assert "not-invited: the plan names another ledger of this silo than this one" in said
    assert not Path("again.json").exists()


def test_a_file_that_is_no_answer_is_named(files, run):
    files.plan()
    asked = ("--plan", "plan.json", "--out", "released.json")
    said = run("federated", "aggregate", "public/north.json", *asked, code=3)
    assert "malformed: file 'public/north.json' is a silo's public file, not a silo's answer" in said
    said = run(
        "federated",
        "list",
        "plan.json",
        "--plan",
        "plan.json",
        "--keys",
        "coordinator.key",
        "--out-folder",
        "o",
        code=3,
    )
    assert "file 'plan.json' is a federated plan, not a silo's answer" in said
    files.answer("north")
    said = run("federated", "aggregate", "north-answer.json", "--plan", "public/south.json", "--out", "x", code=3)
    assert "malformed: the message is a silo's public file, not a federated plan" in said
