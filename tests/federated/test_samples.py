"""Signed plans, answers and calibrations of every method from version 0.1 keep their meaning."""

import dataclasses
import json
from pathlib import Path

import pytest

from confide import Candidates, federated
from confide.errors import FormatError
from confide.federated.envelope import sign_message, verify_message
from confide.federated.protocols import PROTOCOLS
from confide.releases import Release
from tests.builders import slow

SAMPLES = Path(__file__).parent / "samples"
CASES = sorted(path.parent.name for path in SAMPLES.glob("*/plan.json"))
RELEASED = sorted(path.parent.name for path in SAMPLES.glob("*/released.json"))
VOID = {"left": 1, "right": 1, "scale": 1.0, "selector": "permute_and_flip", "colluding": 0, "bits": 32}
SIZES = {"n_min": 1, "n_typical": 1000}


def keys(name):
    return federated.SiloKeys.load(SAMPLES / "keys" / f"{name}.json")


def sample(case, name):
    return (SAMPLES / case / f"{name}.json").read_text(encoding="utf-8")


def test_there_is_a_sample_of_every_method():
    methods = {json.loads(sample(case, "plan"))["content"]["method"] for case in RELEASED}
    assert methods == {"private-qq", "secure-sum", "fedcp-qq", "fedcp2-qq", "fedcp-avg"} <= set(PROTOCOLS)


@pytest.mark.parametrize("case", CASES)
def test_a_plan_is_read_and_signed_again_to_the_same_bytes(case):
    text = sample(case, "plan")
    plan, envelope = federated.FederatedPlan.read(text)
    coordinator = keys("coordinator")
    assert envelope.signer == coordinator.public().signing
    assert plan.fields() == envelope.content
    assert plan.sign(coordinator) == text
    assert federated.FederatedPlan.from_fields(plan.fields()) == plan


def test_fields_that_a_protocol_does_not_have_are_void_unless_stated():
    for case in CASES:
        plan, _ = federated.FederatedPlan.read(sample(case, "plan"))
        assert bool(plan.unused) == case.endswith("-stated")
    stated, _ = federated.FederatedPlan.read(sample("secure-sum-selector-stated", "plan"))
    assert dict(stated.unused)["selector"] == "exponential"
    assert dataclasses.replace(stated, unused=()).digest != stated.digest
    content = json.loads(sample("fedcp-qq", "plan"))["content"]
    for field, value in VOID.items() | SIZES.items():
        assert content[field] == value


@pytest.mark.parametrize("case", [*RELEASED[::3], *slow(sorted({*RELEASED} - {*RELEASED[::3]}))])
def test_answers_are_read_signed_again_and_aggregated_to_the_same_calibration(case):
    plan, answers, text = sample(case, "plan"), json.loads(sample(case, "answers")), sample(case, "released")
    spoiled = case == "private-qq-left-out"
    for answer in [] if spoiled else answers:
        content = verify_message("answer", answer).content
        assert sign_message("answer", content, keys(content["silo"]).signing) == answer
    before = federated.FederatedCalibration.from_json(text)
    assert before.to_json() == text
    assert Release.from_json(text) == before
    again = federated.aggregate(plan, answers, drop_refused=spoiled)
    if spoiled:  # 0.1 reported a copy as a contradiction, under the name in an unsigned message
        assert dict(before.refused) == {"message 1": "altered", "south": "duplicate"}
        assert again.refused == ((1, "altered"),)
        assert set(again.answered) == {*before.answered, "south"}
    else:
        assert dataclasses.replace(again, versions=before.versions) == before
        assert dataclasses.replace(again, versions=before.versions).to_json() == text
    assert 0 <= before.coverage_failure()(0.5) <= 1


def test_a_calibration_made_when_a_level_met_exactly_did_not_count_as_met_is_read():
    """27 of 29 replies of one record reach 0.9 exactly.

    A quadrature finds slightly less, so that version 0.1 took the 28th reply.
    """
    coordinator, silos = keys("coordinator"), [federated.SiloKeys.generate(f"silo {i}").public(1) for i in range(29)]
    made = federated.plan(silos, 0.1, method="fedcp-qq", candidates=Candidates.unit(11), dropouts=9)
    assert made.certify()[0] == 27
    plan = json.loads(made.sign(coordinator))

    def released(k, count=29, threshold=0.5, coverage=0.9):
        guarantee = {"kind": "marginal", "coverage": coverage, "delta": None, "n": count, "n_min": None}
        content = {"threshold": threshold, "k": k, "guarantee": guarantee, "epsilon": "none", "refused": [], "sent": {}}
        answered = [silo.name for silo in silos[:count]]
        text = sign_message(
            "calibration", {**content, "answered": answered, "plan": plan, "versions": {}}, coordinator.signing
        )
        return federated.FederatedCalibration.from_json(text)

    for k in (27, 28):
        before = released(k)
        assert (before.k, before.coverage) == (k, 0.9)
        assert federated.FederatedCalibration.from_json(before.to_json()) == before
        assert federated.verify(before, coordinator.public()).holds
    assert released(9, count=9).coverage == 0.9
    assert released(10, count=9, threshold="+inf", coverage=1.0).coverage == 1  # version 0.1 found no k among 9
    for k, count in [(26, 29), (29, 29), (28, 28), (10, 9), (11, 9)]:  # the 27th of 28 exceeds 0.9
        with pytest.raises(FormatError):
            released(k, count)
