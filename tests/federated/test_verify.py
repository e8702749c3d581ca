"""A signed calibration: its signer, the messages that its threshold follows from, and whether it counts an answer."""

import dataclasses
import json

import pytest

import confide
from confide import federated
from confide.errors import FormatError, InputError
from confide.federated.envelope import digest, sign_message
from tests.federated.helpers import Federation
from tests.refused import refused


@pytest.fixture
def four(tmp_path):
    return Federation.uniform(tmp_path, *[200] * 4)


def test_opened_sums_list_the_answers(tmp_path):
    five = Federation.uniform(tmp_path, *[200] * 5)
    plan = five.plan(epsilon=5.0, method="secure-sum", dropouts=1)
    answers = five.answers(plan)
    parts = five.parts(plan, answers[:4])
    released = federated.aggregate(plan, answers, parts=parts, keys=five.coordinator, drop_refused=True)
    released = federated.FederatedRelease.from_json(released.to_json())
    output = federated.verify(released, five.coordinator.public(), answers)
    assert output.statements[-4:] == tuple(f"the answer of 'silo {i}' counts" for i in range(4))
    assert output.failures == ("the answer of 'silo 4' was left out (late)",)
    assert "signed parts of share holders" in output.statements[1]


@pytest.mark.slow
def test_what_was_changed_is_refused(four):
    plan = four.plan(epsilon=5.0, dropouts=1)
    answers = four.answers(plan, [0, 1, 2])
    released = federated.aggregate(plan, answers, keys=four.coordinator)
    content = json.loads(released.to_json())["content"]
    other = next(v for v in released.plan.candidates.edges.tolist() if v != released.threshold)
    silo_0, silo_1 = content["sent"]["silo 0"], content["sent"]["silo 1"]
    changes = [
        {"threshold": other},
        {"sent": {}},
        {"sent": {name: output for name, output in content["sent"].items() if name != "silo 0"}},
        {"sent": content["sent"] | {"silo 0": silo_1}},
        {"sent": content["sent"] | {"silo 0": silo_1, "silo 1": silo_0}},
        {"sent": content["sent"] | {"silo 3": silo_0}},
        {"sent": {name: digest(output["content"]) for name, output in content["sent"].items()}},
        {"sent": content["sent"] | {"silo 0": silo_0 | {"signature": silo_1["signature"]}}},
    ]
    for change in changes:  # even the coordinator cannot sign a threshold that differs from that of the answers
        with pytest.raises(FormatError):
            confide.Release.from_json(sign_message("calibration", content | change, four.coordinator.signing))
    with pytest.raises(FormatError):
        confide.Release.from_json(sign_message("calibration", content, four.keys[0].signing))
    with pytest.raises(FormatError):
        confide.Release.from_json(dataclasses.replace(released, refused=(("silo 3", "late"),)).to_json())
    with refused(InputError, "keys"):
        federated.aggregate(plan, answers, keys=four.keys[0])


def test_another_answer_of_the_silo_does_not_count(four):
    plan = four.plan(epsilon=5.0, dropouts=1)
    answers = four.answers(plan)
    released = federated.aggregate(plan, answers[1:], keys=four.coordinator)
    changed = json.loads(answers[1])["content"] | {"answered": "2020-01-01T00:00:00Z"}
    two = sign_message("answer", changed, four.keys[1].signing)
    output = federated.verify(released, None, [answers[0], two, "garbage", answers[2]])
    assert output.failures[:2] == (
        "the answer of 'silo 0' does not count",
        "another answer of 'silo 1' counts than this one",
    )
    assert output.failures[2].startswith("an answer cannot be used: malformed")
    assert output.statements[-1] == "the answer of 'silo 2' counts"
