"""Identities that people tell apart, public files and releases with a signature, and conditions on a release."""

import dataclasses
import json
import math
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import confide
from confide import federated
from confide.candidates import Candidates
from confide.cli.app import main
from confide.core import Document, Release
from confide.errors import FormatError, InputError, InputTypeError, SimilarNameWarning
from confide.federated import Conditions, Refusal
from confide.federated.answers import _count_for
from confide.federated.messages import MOST_CHARACTERS, encode, sign
from confide.ledger import Cost
from confide.mechanisms import PrivacyStatement
from confide.support import FileKind, checksum, kind_of, kind_stated
from confide.watching import Watch
from tests.federated.helpers import Federation, content_of
from tests.kept import names, path_of
from tests.refused import refused

COST = Cost(0.1, "replace_one", "private-qq")
NORTH = federated.SiloKeys("north", b"\1" * 32, b"\2" * 32)
SOUTH = federated.SiloKeys("south", b"\3" * 32, b"\4" * 32)
LOW_ORDER = (
    "00" * 32,
    "01" + "00" * 31,
    "ec" + "ff" * 30 + "7f",
    "ed" + "ff" * 30 + "7f",
    "ee" + "ff" * 30 + "7f",
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
)


@pytest.fixture
def three(tmp_path):
    return Federation.uniform(tmp_path, *[60] * 3)


def test_fingerprints_of_known_keys():
    assert federated.fingerprint(NORTH.public_keys().identity) == "56142 33978 35996 60287 69298 19768 37038 69948"
    assert federated.fingerprint(SOUTH.public_keys().identity) == "83126 27191 64617 81960 26356 40438 64937 64865"
    assert NORTH.public_keys().identity.startswith("16fc215b")
    assert NORTH.public_keys().identity.endswith("e771fc")
    both = federated.roster([SOUTH.public(), NORTH.public()])
    assert both == federated.roster([NORTH.public_keys(), SOUTH.public_keys()])
    assert federated.fingerprint(both) == "86842 99050 48183 85556 75012 31362 22996 60270"
    assert federated.fingerprint(both, groups=12).endswith(" " + federated.fingerprint(both))
    assert len(federated.fingerprint(both, groups=12).split()) == 12
    assert federated.fingerprint("0" * 64) == " ".join(["00000"] * 8)


def test_a_fingerprint_changes_with_name_and_keys_and_with_nothing_else():
    silo, other = NORTH.public_keys(size=300), SOUTH.public_keys()
    changes = [{"name": "North"}, {"signing": other.signing}, {"agreement": other.agreement}]
    identities = {silo.identity, *(dataclasses.replace(silo, **change).identity for change in changes)}
    assert len(identities) == 4
    assert {NORTH.public(n).identity for n in (None, 300, 301)} == {silo.identity}


def test_a_public_file_is_signed_by_the_key_that_it_shows():
    now = datetime(2030, 1, 31, 12, tzinfo=UTC)
    north, south = NORTH.public(size=300, now=now), SOUTH.public(size=300, now=now)
    text = north.to_json()
    assert federated.Silo.from_json(text) == north
    assert north.issued == "2030-01-31T12:00:00Z"
    content = content_of(text)
    for change in ({"name": "east"}, {"agreement": south.agreement}, {"size": 299}, {"issued": "2031-01-31T12:00:00Z"}):
        with refused(Refusal, "altered"):
            dataclasses.replace(north, **change)
        with refused(Refusal, "altered"):
            federated.Silo.from_json(sign("silo", content | change, SOUTH.signing))
    with refused(InputError, "public"):
        NORTH.public_keys().to_json()


@pytest.mark.parametrize("key", LOW_ORDER)
def test_keys_of_low_order_are_refused_when_they_are_read(key, three):
    """A shared secret with such a key is zero, so that masks would not hide the message."""
    content = content_of(NORTH.public(60).to_json()) | {"agreement": key}
    text = sign("silo", content, NORTH.signing)
    with refused(Refusal, "malformed"):
        federated.Silo.from_json(text)
    plan = content_of(three.plan(method="secure-sum"))
    plan["silos"][1] = {**content, "signature": json.loads(text)["signatures"][0]["sig"]}
    with refused(Refusal, "malformed"):
        three.answer(0, sign("plan", plan, three.coordinator.signing))
    assert three.ledgers[0].spent == 0


@pytest.mark.long(unless="secure-sum")
@pytest.mark.parametrize("method", ["private-qq", "secure-sum"])
def test_a_plan_with_unsigned_silos_is_refused_before_the_charge(three, method):
    """The coordinator cannot sign it as a plan, and a silo does not answer what was signed all the same."""
    content = content_of(three.plan(method=method))
    three.silos = [dataclasses.replace(silo, issued=None, signature=None) for silo in three.silos]
    with refused(InputError, "plan"):
        three.plan(method=method)
    bare = {**content, "silos": [vars(silo) for silo in three.silos]}
    for stated in (bare, {name: value for name, value in bare.items() if name != "coordinator"}):
        with refused(Refusal, "malformed"):
            three.answer(0, sign("plan", stated, three.coordinator.signing))
    assert three.ledgers[0].spent == 0


def test_a_silo_demands_that_colluding_silos_are_withstood(three):
    """A plan that tolerates fewer colluding silos than the policy requires is refused."""
    for least, allowed in ((0, {0, 1, 2}), (1, {1, 2}), (2, {2})):
        policy = dataclasses.replace(three.policy, least_colluding=least)
        for colluding in range(3):
            plan = federated.read_plan(three.plan(method="secure-sum", colluding=colluding))
            if colluding in allowed:
                policy.check(plan, 0, COST)
            else:
                with refused(Refusal, "not-allowed"):
                    policy.check(plan, 0, COST)
    assert federated.Policy("00" * 32, 1.0, 1.0).least_colluding == 1
    two = federated.plan(three.silos[:2], 0.1, 2.0, method="secure-sum", candidates=Candidates.unit(20))
    assert two.channel.colluders == 1


def test_policies_pin_identities(three):
    text = three.plan(method="secure-sum")
    plan = federated.read_plan(text)
    for coordinator in (three.coordinator.public_keys().identity, three.coordinator.public_keys().signing):
        dataclasses.replace(three.policy, coordinator=coordinator).check(plan, 0, COST)
    impostor = dataclasses.replace(three.coordinator, agreement=NORTH.agreement)
    pinned = dataclasses.replace(three.policy, coordinator=impostor.public_keys().identity)
    with refused(Refusal, "coordinator-unknown"):
        pinned.check(plan, 0, COST)
    # Another signing key with the same pinned key for masks is another silo.
    true, other = three.silos[1], federated.SiloKeys.generate("silo 1")
    false = dataclasses.replace(other, agreement=three.keys[1].agreement).public(60)
    three.silos[1] = false
    with refused(Refusal, "not-allowed"):
        three.answer(0, three.plan(method="secure-sum"))
    unknown = dataclasses.replace(three.policy, peers={"silo 1": true.identity})
    with refused(Refusal, "not-allowed") as error:
        unknown.check(plan, 0, COST)
    assert "--peers" in str(error.value)
    assert three.ledgers[0].spent == 0


def test_policies_with_wrong_fields_are_refused(three):
    content = json.loads(three.policy.to_json())
    assert federated.Policy.from_json(json.dumps(content)) == three.policy
    wrong = [{"peers": {"south": 3}}, {"least_colluding": -1}, {"least_colluding": True}, {"least_honest": 2}]
    old = {name: value for name, value in content.items() if name != "least_colluding"} | {"least_honest": 2}
    for stated in (old, *(content | change for change in wrong)):
        with refused(Refusal, "malformed"):
            federated.Policy.from_json(json.dumps(stated))


def test_ten_thousand_silos_fit_into_a_plan():
    """The list of silos is the longest field; every other is short or has one or two numbers for each silo."""
    from confide.federated.terms import MOST_SILOS

    silo = dataclasses.replace(NORTH, name="n" * 64).public(2**40)
    assert len(encode(silo)) * MOST_SILOS * 4 / 3 < MOST_CHARACTERS


# Names


def planned(names):
    silos = [federated.SiloKeys.generate(name).public(size=200) for name in names]
    return federated.plan(silos, 0.1, 5.0, method="private-qq", candidates=Candidates.unit(21))


@pytest.mark.slow(unless="n0rth")
@pytest.mark.parametrize("other", ["north ", "n-orth", "n0rth"])
def test_names_that_look_similar_are_pointed_out(other):
    with pytest.warns(SimilarNameWarning):
        planned(["north", other])
    planned([f"school {i}" for i in range(12)])  # numbered silos are as they are: a warning would be an error
    with refused(InputError, "silos"):
        planned(["north", "South", "North"])


READ = (FileKind.RELEASE, FileKind.EVALUATION, FileKind.WATCH)
FILES = [path for path in map(path_of, names()) if kind_of(path) in READ]
"""Every kept file of a kind that `verify` reads."""
RELEASES = [path for path in FILES if kind_of(path) is FileKind.RELEASE]
FEDERATED = "confide/federated.release"
OFFICE = federated.SiloKeys("office", b"\1" * 32, b"\2" * 32)


def text_of(path):
    return path.read_text(encoding="utf-8")


@pytest.fixture
def signed_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    confide.calibrate(np.linspace(0, 1, 500), 0.1, 1.0, score="lac").save("r.json")
    OFFICE.save("office.key")
    Path("office.json").write_text(OFFICE.public().to_json())
    Path("other.json").write_text(federated.SiloKeys.generate("other").public().to_json())
    return tmp_path


@pytest.mark.parametrize("path", RELEASES, ids=lambda path: path.stem)
def test_every_kept_release_is_signed_and_read_as_it_was(path, tmp_path):
    text = text_of(path)
    release = Release.from_json(text)
    if kind_stated(json.loads(text)) == FEDERATED:
        with refused(InputError, "released"):
            federated.sign(release, OFFICE)
        return
    signed = federated.sign(release, OFFICE)
    (tmp_path / "signed.json").write_text(signed, encoding="utf-8")
    assert kind_of(tmp_path / "signed.json") is FileKind.SIGNED
    found, signer = federated.read_signed(signed)
    assert signer == OFFICE.public().signing
    assert type(found) is type(release)
    assert found.to_json() == text
    assert found.checksum == release.checksum
    assert federated.read_signed(text) == (release, None)


def test_a_signature_makes_no_claim_true():
    """A holder of keys can sign anything; the reader refuses a release whose statements do not follow."""
    release = json.loads(confide.calibrate(np.linspace(0, 1, 500), 0.1, 1.0, score="lac").to_json())
    signed = json.loads(federated.sign(Release.from_json(json.dumps(release)), OFFICE))
    evaluation = json.loads(text_of(path_of("private-sets")))
    common = json.loads(text_of(path_of("federated-levels")))
    claimed = {**release, "thresholds": [{**release["thresholds"][0], "coverage": 0.99}]}
    del claimed["sha256"]
    resealed = {**claimed, "sha256": checksum(claimed)}
    for content in ({}, {"release": release}, {**release, "more": 1}, resealed, signed, evaluation, common):
        with pytest.raises(FormatError):
            Document.from_json(sign("signed-release", content, OFFICE.signing))
    with refused(InputTypeError, "released"):
        federated.sign(Document.from_json(text_of(path_of("watch-sizes"))), OFFICE)


def test_on_the_command_line(signed_folder, capsys):
    assert main(["sign", "r.json", "--keys", "office.key", "--out", "s.json"]) == 0
    assert main(["sign", "r.json", "--keys", "office.key", "--out", "s.json"]) == 4
    assert main(["sign", "r.json", "--keys", "office.key", "--out", "s.json", "--force"]) == 0
    assert main(["sign", "s.json", "--keys", "office.key", "--out", "r.json", "--force"]) == 3
    capsys.readouterr()
    for option in ("--signer", "--coordinator"):
        assert main(["verify", "s.json", option, "office.json", "--signed"]) == 0
        assert "signed by 'office'" in capsys.readouterr().out
    assert main(["verify", "s.json", "--signed"]) == 0
    assert f"signed with the key {OFFICE.public().signing}" in capsys.readouterr().out
    assert main(["verify", "s.json", "--signer", "other.json"]) == 5
    assert "signed with another key than that of 'other'" in capsys.readouterr().err
    assert main(["verify", "r.json", "--signer", "office.json"]) == 5
    assert "not signed" in capsys.readouterr().err
    assert main(["verify", "s.json", "--answer", "office.json"]) == 3
    text = Path("s.json").read_text()
    Path("s.json").write_text(text.replace('"payload": "ew', '"payload": "fw'))
    capsys.readouterr()
    for command in ("verify", "show"):
        assert main([command, "s.json"]) == 3
        assert "the signature of the signed-release does not match" in capsys.readouterr().err


# Releases of a federation: who signed, and which answers count


@pytest.fixture
def four(tmp_path):
    return Federation.uniform(tmp_path, *[200] * 4)


@pytest.mark.long
def test_who_signed_must_be_the_plans_coordinator(four):
    plan = four.plan(epsilon=5.0, dropouts=1)
    answers = four.answers(plan, [0, 1, 2])
    released = federated.aggregate(plan, answers, keys=four.coordinator)
    with pytest.raises(FormatError):
        confide.Release.from_json(sign("release", content_of(released.to_json()), four.keys[0].signing))
    with refused(InputError, "keys"):
        federated.aggregate(plan, answers, keys=four.keys[0])


def test_another_answer_of_the_silo_does_not_count(four):
    plan = four.plan(epsilon=5.0, dropouts=1)
    answers = four.answers(plan)
    released = federated.aggregate(plan, answers[1:], keys=four.coordinator)
    changed = content_of(answers[1]) | {"answered": "2020-01-01T00:00:00Z"}
    two = sign("answer", changed, four.keys[1].signing)
    output = federated.verify(released, None, [answers[0], two, "garbage", answers[2]])
    assert output.failures[:2] == (
        "the answer of 'silo 0' does not count",
        "another answer of 'silo 1' counts than this one",
    )
    assert output.failures[2].startswith("an answer cannot be used: malformed")
    assert output.statements[-1] == "the answer of 'silo 2' counts"


def stated(privacy):
    """Return the privacy loss of one person, computed from the fields of the statement."""
    k = privacy.records_per_person
    others = [k * one for one in (privacy.add_remove, privacy.replace_one) if one is not None]
    return max(privacy.epsilon, *others)


def promised(document):
    match document:
        case Watch():
            return min(document.settings.promised.values(), default=None)
        case Release() if document.by == "side":
            return document["low"].coverage + document["high"].coverage - 1
        case Release() if document.loss is not None:
            share = document.loss in ("false_negative_rate", "missed_area")
            return 1 - document.risk if share else None
        case Release():
            return min(part.coverage for part in document.parts.values())
    return min(document.query.statements.values())


@pytest.mark.slow(unless=("calibration-infinite", "intervals", "watch-sizes", "watch-alarm"))
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_kept_file_meets_just_what_it_states(path):
    document = Document.from_json(text_of(path))
    bare = math.isinf(document.privacy.epsilon) and document.privacy.rho is None
    assert Conditions().check(document).holds is not bare
    loss = stated(document.privacy) * (max(1, len(document.looks)) if isinstance(document, Watch) else 1)
    if math.isinf(loss):
        assert not Conditions(epsilon_at_most=1e6).check(document).holds
    elif loss > 0:
        assert Conditions(epsilon_at_most=loss * (1 + 1e-9)).check(document).holds
        assert not Conditions(epsilon_at_most=loss * (1 - 1e-9)).check(document).holds
    coverage = promised(document)
    wrong = Conditions().check(document).failures
    if coverage is None:
        assert Conditions(coverage_at_least=1e-6).check(document).failures != wrong
    else:
        low, high = (round_to(1e6 * coverage) / 1e6 for round_to in (lambda x: math.floor(x + 1e-6), math.ceil))
        if 0 < low < 1:
            assert Conditions(coverage_at_least=low).check(document).failures == wrong
        if 0 < high + 1e-6 < 1:
            assert len(Conditions(coverage_at_least=high + 1e-6).check(document).failures) == len(wrong) + 1
    protected = not bare
    assert Conditions(private=True).check(document).holds is protected
    assert Conditions(signed=True).check(document).failures[-1] == "a signature is required; given: none"
    assert Conditions(signed=True).check(document, "ab" * 32).failures == wrong


class Stated(Release):
    """A release that states only its privacy loss."""

    def __init__(self, privacy):
        self.given = privacy

    privacy = property(lambda self: self.given)
    parts = property(lambda self: {})


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.3])
def test_an_epsilon_at_the_border_holds_and_the_next_float_does_not(epsilon):
    document = Stated(PrivacyStatement("replace_one", epsilon, 1, None, epsilon, None))
    assert Conditions(epsilon_at_most=epsilon).check(document).holds
    assert not Conditions(epsilon_at_most=np.nextafter(epsilon, 0)).check(document).holds


def test_the_larger_of_the_relations_counts_unless_one_is_named():
    document = Stated(PrivacyStatement("add_remove", 1.0, 2, 0.5, 0.75, None))
    found = Conditions(epsilon_at_most=1.4).check(document)
    assert found.failures == ("epsilon at most 1.4 is required; stated: 1 under add_remove, 1.5 under replace_one",)
    assert Conditions(epsilon_at_most=1.5).check(document).holds
    assert Conditions(epsilon_at_most=1, neighbors="add_remove").check(document).holds
    assert not Conditions(epsilon_at_most=1, neighbors="replace_one").check(document).holds
    public = Stated(PrivacyStatement("replace_one", 1.0, 1, None, 1.0, None))
    found = Conditions(epsilon_at_most=1, neighbors="add_remove").check(public)
    assert found.failures == ("epsilon at most 1 is required; stated: none under add_remove",)


def test_zcdp_alone_is_private_and_has_no_epsilon():
    document = Stated(PrivacyStatement("replace_one", math.inf, 1, None, math.inf, 0.01))
    assert Conditions(private=True).check(document).holds
    assert not Conditions(epsilon_at_most=1e6).check(document).holds


@pytest.mark.parametrize(
    "asked",
    [
        {"epsilon_at_most": 0}, {"epsilon_at_most": math.nan}, {"epsilon_at_most": math.inf}, {"coverage_at_least": 0},
        {"coverage_at_least": 90}, {"coverage_at_least": math.nan}, {"neighbors": "swap"},
    ],
)  # fmt: skip
def test_conditions_that_say_nothing_are_refused(asked):
    with refused(InputError, next(iter(asked))):
        Conditions(**asked)


@pytest.fixture
def released(tmp_path):
    scores = np.random.default_rng(0).random(2000)
    for name, options in {"good": {"epsilon": 1.0, "neighbors": "replace_one"}, "bare": {"mechanism": "none"}}.items():
        confide.calibrate(scores, 0.1, score="lac", **options).save(tmp_path / f"{name}.json")
    return tmp_path


GOOD = ["--epsilon-at-most", "1", "--coverage-at-least", "0.9", "--private"]


def test_the_command_is_a_gate(released, capsys):
    good, bare = str(released / "good.json"), str(released / "bare.json")
    assert main(["verify", good, *GOOD]) == 0
    said = capsys.readouterr()
    assert "coverage of at least 0.9 is required; promised: 0.9" in said.out
    assert said.err == ""
    assert main(["verify", good, "--epsilon-at-most", "0.5", "--coverage-at-least", "0.95", "--signed"]) == 5
    said = capsys.readouterr()
    assert [line.split()[0] for line in said.err.splitlines()] == ["warning:"] * 3
    assert " is required" not in said.out
    assert main(["verify", bare]) == 5
    assert capsys.readouterr().err.startswith("warning: NOT PRIVATE")
    assert main(["verify", bare, *GOOD, "--json"]) == 5
    output = json.loads(capsys.readouterr().out)
    assert output["holds"] is False
    assert [line.partition(" ")[0] for line in output["wrong"]] == ["NOT", "epsilon"]
    assert main(["verify", good, "--coverage-at-least", "90"]) == 3
    assert main(["verify", good, "--neighbors", "add_remove"]) == 3


@pytest.mark.parametrize("key", ["0" * 63, "g" * 64, "0x" + "0" * 62, ""])
def test_keys_have_64_hexadecimal_digits(key):
    silo = federated.SiloKeys.generate("north").public()
    for field in ("signing", "agreement"):
        with refused(InputError, "keys"):
            dataclasses.replace(silo, **{field: key})


def test_groups_are_refused_where_a_plan_has_none():
    for scores, groups in (([0.5], ["a"]), ({"a": [0.5]}, None)):
        with refused(InputError, "groups"):
            _count_for(planned(["north", "south", "east"]), scores, groups)
