"""Signed plans, answers and releases of every method from version 0.2 keep their meaning.

`tests/test_every_schema.py` signs their messages again.
"""

import json
from pathlib import Path

import pytest

from confide import federated
from confide.federated import Refusal
from confide.federated.protocols import METHODS
from confide.releases import Release
from tests.builders import slow
from tests.refused import refused

SAMPLES = Path(__file__).parent / "samples" / "0.2"
CASES = sorted(path.parent.name for path in SAMPLES.glob("*/plan.json"))
SIGNED = ("levels", "private-qq")
UNUSED = {
    "rate": "0", "left": 1, "right": 1, "scale": 1.0, "colluding": 0, "bits": 32,
    "n_min": 1, "n_typical": 1000,
}  # fmt: skip


def sample(case, name):
    return (SAMPLES / case / f"{name}.json").read_text(encoding="utf-8")


def test_there_is_a_sample_of_every_draw():
    plans = [federated.read_plan(sample(case, "plan"))[0] for case in CASES]
    assert {plan.method for plan in plans} == set(METHODS) - {"fedcp2-qq-sum"}  # draws as fedcp2-qq


@pytest.mark.parametrize("case", CASES)
def test_a_plan_is_read_from_its_fields(case):
    plans = federated.read_plan(sample(case, "plan"))[0].single_plans
    assert plans
    for plan in plans:
        assert federated.FederatedPlan.from_fields(plan.fields()) == plan


def test_fields_that_a_method_does_not_have_are_at_their_defaults():
    content = json.loads(sample("fedcp2-qq", "plan"))["content"]
    assert {name: content[name] for name in UNUSED} == UNUSED
    for change in ({"n_min": 7}, {"scale": 2.0}, {"left": 0}, {"bits": True}):
        with refused(Refusal, "malformed"):
            federated.FederatedPlan.from_fields(content | change)


@pytest.mark.filterwarnings("ignore:the threshold is .inf:confide.CoverageWarning")
@pytest.mark.parametrize("case", [*CASES[::3], *slow(sorted({*CASES} - {*CASES[::3]}))])
def test_answers_are_aggregated_to_the_same_release(case, monkeypatch):
    plan, answers, text = sample(case, "plan"), json.loads(sample(case, "answers")), sample(case, "released")
    before = Release.from_json(text)
    assert before.to_json() == text
    versions = next(iter(before.parts.values())).versions
    monkeypatch.setitem(federated.aggregate.__globals__, "library_versions", lambda: versions)
    parts = json.loads(sample(case, "parts")) if case == "opened" else ()
    coordinator = federated.SiloKeys.load(SAMPLES / "keys" / "coordinator.json") if case in SIGNED else None
    again = federated.aggregate(
        plan, answers, parts=parts, keys=coordinator, drop_refused=case == "private-qq-left-out"
    )
    assert again == before
    assert again.to_json() == text
    for part in before.parts.values():
        assert 0 <= part.coverage_failure()(0.5) <= 1
