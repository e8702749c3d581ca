"""A signed calibration: its signer, the messages that its threshold follows from, and whether it counts an answer."""

import dataclasses

import pytest

import confide
from confide import federated
from confide.errors import FormatError, InputError
from confide.federated.messages import sign
from tests.federated.helpers import Federation, content_of
from tests.refused import refused


@pytest.fixture
def four(tmp_path):
    return Federation.uniform(tmp_path, *[200] * 4)


@pytest.mark.slow
def test_what_was_changed_is_refused(four):
    plan = four.plan(epsilon=5.0, dropouts=1)
    answers = four.answers(plan, [0, 1, 2])
    released = federated.aggregate(plan, answers, keys=four.coordinator)
    content = content_of(released.to_json())
    other = next(v for v in released.plan.candidates.edges.tolist() if v != released.threshold)
    silo_0, silo_1 = content["sent"]["silo 0"], content["sent"]["silo 1"]
    changes = [
        {"thresholds": [other]},
        {"sent": {}},
        {"sent": {name: output for name, output in content["sent"].items() if name != "silo 0"}},
        {"sent": content["sent"] | {"silo 0": silo_1}},
        {"sent": content["sent"] | {"silo 0": silo_1, "silo 1": silo_0}},
        {"sent": content["sent"] | {"silo 3": silo_0}},
        {"sent": dict.fromkeys(content["sent"], "0" * 64)},
        {"sent": content["sent"] | {"silo 0": silo_0.replace('"sig": "', '"sig": "AA')}},
    ]
    for change in changes:  # even the coordinator cannot sign a threshold that differs from that of the answers
        with pytest.raises(FormatError):
            confide.Release.from_json(sign("release", content | change, four.coordinator.signing))
    with pytest.raises(FormatError):
        confide.Release.from_json(sign("release", content, four.keys[0].signing))
    with pytest.raises(FormatError):
        confide.Release.from_json(dataclasses.replace(released, refused=(("silo 3", "late"),)).to_json())
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
