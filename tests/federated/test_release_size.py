"""Plans at the limits of size: every charged answer can be released, signed and read."""

from dataclasses import replace

import numpy as np
import pytest

from confide import federated
from confide.candidates import Candidates
from confide.errors import FormatError, InputError
from confide.federated import release_size
from confide.federated.envelope import sign_message
from confide.federated.several_plans import read_plan
from confide.support import library_versions
from tests.federated.helpers import Federation
from tests.refused import refused

FEW = Candidates.unit(21)


def answers_to(text, keys, threshold):
    """Return signed replies of silos that all draw one candidate."""
    read, _ = read_plan(text)
    values = next(iter(read.parts.values())).candidates.values
    one = {"candidate": threshold, "threshold": float(values[threshold])}
    content = {"plan": read.digest, "session": read.session, "answered": "2026-01-01T00:00:00Z"}
    content["versions"] = dict(library_versions())
    return [
        sign_message("answer", {**content, "silo": own.name, "replies": [one] * len(read.parts)}, own.signing)
        for own in keys
    ]


def by_class(silos, classes, n_typical=50):
    coordinator = federated.SiloKeys("coordinator", b"\1" * 32, b"\2" * 32)
    keys = [federated.SiloKeys.generate(f"silo {i}") for i in range(silos)]
    names = [f"class {j}" for j in range(classes)]
    options = {"by": "class", "candidates": FEW, "n_typical": n_typical}
    plan = federated.plan_groups([own.public() for own in keys], names, 0.1, 4.0, **options)
    return coordinator, keys, plan


@pytest.mark.slow
def test_a_release_that_would_be_too_long_tells_digests(monkeypatch):
    """With whole answers the release would exceed the limit; writer and reader compute this from the plan."""
    coordinator, keys, plan = by_class(12, 30)
    text = plan.sign(coordinator)
    answers = answers_to(text, keys, 19)
    whole = federated.aggregate(text, answers, keys=coordinator)
    assert all(isinstance(output, dict) for output in whole.sent.values())
    most = len(whole.to_json()) - 1
    monkeypatch.setattr(release_size, "MOST_CHARACTERS_OF_RELEASE", most)
    monkeypatch.setattr("confide.federated.evidence.MOST_CHARACTERS_OF_RELEASE", most)
    with pytest.raises(FormatError):
        type(whole).from_json(whole.to_json())
    made = federated.aggregate(text, answers, keys=coordinator)
    assert len(made.to_json()) < most
    assert {len(output) for output in made.sent.values()} == {64}
    assert {name: part.threshold for name, part in made.parts.items()} == {
        name: part.threshold for name, part in whole.parts.items()
    }
    again = type(made).from_json(made.to_json())
    found = federated.verify(again, coordinator.public(), [answers[0]])
    assert found.holds
    assert "the answer of 'silo 0' counts" in found.statements
    assert "cannot be recomputed from this file" in found.statements[1]


@pytest.mark.slow
@pytest.mark.parametrize(("silos", "classes"), [(3, 1), (3, 40), (12, 30)])
def test_the_bound_is_above_what_is_written_and_near_it(silos, classes):
    coordinator, keys, plan = by_class(silos, classes)
    text = plan.sign(coordinator)
    read = read_plan(text)[0]
    made = federated.aggregate(text, answers_to(text, keys, 19), keys=coordinator)
    bound = release_size._characters(text, read, whole=True)
    assert len(made.to_json()) <= bound <= 1.6 * len(made.to_json()) + release_size._HEAD
    digests = replace(made, sent=dict.fromkeys(made.sent, "0" * 64))
    assert len(digests.to_json()) <= release_size._characters(text, read, whole=False) <= bound


@pytest.mark.slow
@pytest.mark.parametrize("method", ["private-qq", "secure-sum"])
def test_the_bound_is_above_every_release_of_one_threshold(tmp_path, method):
    options = {"dropouts": 1, "colluding": 1} if method == "secure-sum" else {}
    five = Federation(tmp_path, [np.linspace(0, 1, 90)] * 5)
    text = five.plan(method=method, candidates=FEW, **options)
    answers = five.answers(text)
    made = federated.aggregate(text, answers, parts=five.parts(text, answers), keys=five.coordinator)
    assert len(made.to_json()) <= release_size._characters(text, read_plan(text)[0], whole=True)


@pytest.mark.slow
def test_what_no_ledger_keeps_is_refused_before_a_silo_pays():
    """An answer for so many classes would be charged and could then not be stored."""
    coordinator, _, plan = by_class(2, 12_000)
    with refused(InputError, "plan"):
        plan.sign(coordinator)


def test_a_release_that_no_reader_takes_is_refused_with_the_plan(monkeypatch):
    coordinator, _, plan = by_class(3, 5)
    monkeypatch.setattr(release_size, "MOST_CHARACTERS_OF_RELEASE", 5_000)
    with refused(InputError, "plan"):
        plan.sign(coordinator)


@pytest.mark.slow
def test_what_is_signed_is_read_back(monkeypatch, tmp_path):
    """A file that the reader refuses is never returned as signed, whatever the plan allowed."""
    three = Federation(tmp_path, [np.linspace(0, 1, 90)] * 3)
    text = three.plan(candidates=FEW)
    answers = three.answers(text)
    monkeypatch.setattr("confide.federated.evidence.MOST_CHARACTERS_OF_RELEASE", 500)
    with refused(InputError, "release"):
        federated.aggregate(text, answers, keys=three.coordinator)
    assert federated.aggregate(text, answers).signature is None


@pytest.mark.slow
def test_the_release_that_0_2_wrote_and_could_not_read(tmp_path):
    """260 silos and 1,000 classes make 17,986,047 characters of whole answers."""
    coordinator, keys, plan = by_class(260, 1000)
    text = plan.sign(coordinator)
    made = federated.aggregate(text, answers_to(text, keys, 19), keys=coordinator)
    assert len(made.to_json()) < 1_000_000
    assert federated.verify(made, coordinator.public()).holds
