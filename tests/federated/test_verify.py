"""A signed calibration: its signer, the messages that its threshold follows from, and whether it counts an answer."""

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
