"""Silos that exchange files by commands: the whole way, fingerprints, policies, and an attacker with all files."""

import json
import shutil
from pathlib import Path

import pytest

from confide import federated
from confide.core import Release
from confide.federated.messages import sign
from tests.federated.helpers import RULES as PINNED
from tests.federated.helpers import Files, altered, content_of
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
    asked = ("--alpha", 0.2, "--epsilon", 4, "--set", "candidates=unit:21", "--method", "secure-sum")
    keys = {name: keys_of(name) for name in (*NAMES, "coordinator")}
    return Files(run, dict.fromkeys(NAMES, 40), asked=asked, keys=keys)


RULES = (*PINNED, "--budget", 4)
BY_POLICY = ("--policy", "policy.json")


@pytest.mark.long
@pytest.mark.parametrize("method", ["private-qq", "secure-sum"])
def test_whole_way_over_files(files, run, method):
    assert "coverage at least 0.8" in files.plan("--method", method)
    for name in files.names:
        files.answer(name)
    first = Path("north-answer.json").read_text()
    Path("north.csv").write_text("s\n" + "0.5\n" * 40)
    files.answer("north", "--force")
    assert run.err.startswith("warning: ")  # the data differ
    assert Path("north-answer.json").read_text() == first
    assert federated.SiloLedger("north.db").spent == 4.0
    said = files.aggregate()
    found = federated.replies(Path("plan.json").read_text(), [Path(file).read_text() for file in files.answers()])
    assert list(found.values()) == sorted(found.values())
    assert len(found) == (3 if method == "private-qq" else 0)
    assert ("replies: " in said) == bool(found)
    assert Release.load("released.json").coverage >= 0.8
    assert f"{method}, 3 of 3 silos" in run("show", "released.json")


def test_both_sides_see_the_same_digits(files, run):
    made = run("federated", "keygen", "west", "--keys", "west.key", "--public", "west.json", "--size", 300)
    west = federated.SiloKeys.load("west.key").public_keys()
    digits = federated.fingerprint(west.identity)
    assert digits in made
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
        assert federated.fingerprint(federated.roster(everybody), groups=12) in text
    document = json.loads(run("show", "plan.json", "--json"))
    assert document["fingerprints"]["north"] == PRINTS["north"]
    assert document["roster"] == federated.fingerprint(federated.roster(everybody), groups=12)


def test_show_reads_what_else_a_federation_writes(files, run):
    files.plan()
    files.answer("north")
    shown = run("show", "north-answer.json")
    assert "answer of 'north'" in shown
    assert federated.read_plan(Path("plan.json").read_text()).digest in shown
    head = json.loads(run("show", "north-answer.json", "--json"))["answer"]
    assert (head["silo"], head["signer"]) == ("north", NORTH.public_keys().signing)
    text = Path("north-answer.json").read_text()
    Path("bad.json").write_text(altered(text, silo="south"))
    assert "altered" in run("show", "bad.json", code=3)
    Path("bad.json").write_text(sign("answer", content_of(text) | {"silo": "a\x1b[31m"}, NORTH.signing))
    assert "\x1b" not in run("show", "bad.json", code=3)


def test_the_man_in_the_middle(files, run):
    """An attacker carries all files, has every public file, and tries to reveal one hospital's counts alone."""
    attacker = federated.SiloKeys("attacker", b"\7" * 32, b"\7" * 32)
    # A file with the attacker's key for masks: the hospital's own signature no longer matches.
    north = Path("public", "north.json").read_text()
    Path("swapped.json").write_text(altered(north, agreement=attacker.public_keys().agreement))
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
    twice = files.answer("north", "--policy", "policy.json", code=3)
    assert "--coordinator: must be left out with --policy: the policy contains it" in twice
    assert "or --policy" in files.answer("north", rules=("--budget", 4), code=2)
    files.plan()
    assert "the policy requires 2" in files.answer("north", rules=BY_POLICY, code=3)
    files.plan("--colluding", 2, "--force")
    assert "and the policy allows 2 for one" in files.answer("north", rules=BY_POLICY, code=3)


def test_keygen_never_replaces_keys_and_offers_what_it_has(files, run):
    words = ("federated", "keygen", "north", "--keys", "north.key", "--public", "new.json")
    before = Path("north.key").read_bytes()
    assert "confide federated public" in run(*words, code=4)
    said = run("federated", "keygen", "north", "--keys", "new.key", "--public", "public/north.json", code=4)
    assert "--force" not in said
    assert not Path("new.key").exists()
    assert Path("north.key").read_bytes() == before
