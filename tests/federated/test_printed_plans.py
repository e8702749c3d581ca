"""Classes and metadata of a federated calibration, as the plan states them for every silo."""

from copy import deepcopy

import numpy as np
import pytest

import confide
from confide import federated
from confide.errors import InputError
from confide.federated import Refusal
from confide.federated.messages import sign
from tests.federated.helpers import Federation, altered, content_of
from tests.refused import refused

NAMES = ("cat", "dog", "emu")
ABOUT = {"model": "resnet 50", "responsible": "A. = B.", "date": "2026-11-21"}
RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(3), 200)
Y = np.array([RNG.choice(3, p=row) for row in P])


@pytest.fixture
def three(tmp_path):
    return Federation(tmp_path, [confide.lac_score(P, Y)] * 3)


@pytest.mark.slow(unless="secure-sum")
@pytest.mark.parametrize("method", ["private-qq", "secure-sum"])
def test_a_calibration_knows_what_its_plan_says(three, method):
    plan = three.plan(0.1, 2.0, method=method, score="lac", classes=NAMES, about=ABOUT)
    read = federated.read_plan(plan)
    assert (read.request.classes, read.request.about) == (NAMES, ABOUT)
    assert deepcopy(read) == read
    released = federated.aggregate(plan, three.answers(plan))
    for made in (released, confide.Release.from_json(released.to_json()), deepcopy(released)):
        assert (made.classes, made.about) == (NAMES, ABOUT)
        assert made == released
    assert confide.predict_set(P[:5], released).classes == NAMES
    with refused(InputError, "probabilities"):
        confide.predict_set(P[:, :2] / P[:, :2].sum(axis=1, keepdims=True), released)
    with refused(InputError, "classes"):
        confide.predict_set(P[:5], released, ["cat", "dog", "owl"])


@pytest.mark.slow
def test_a_number_of_classes_is_kept_and_none_need_be_said(three):
    plan = three.plan(score="lac", classes=3)
    released = federated.aggregate(plan, three.answers(plan))
    assert (released.classes, dict(released.about)) == (3, {})
    with refused(InputError, "probabilities"):
        confide.predict_set(np.full((2, 4), 0.25), released)
    silent = three.plan(score="lac")
    assert not {"classes", "about"} & content_of(silent)["request"].keys()
    assert federated.aggregate(silent, three.answers(silent)).classes is None


@pytest.mark.slow
def test_words_are_signed(three):
    for options in ({}, {"classes": NAMES}, {"about": ABOUT}):
        plan = three.plan(score="lac", **options)
        request = content_of(plan)["request"] | {"classes": ["ant", "bee", "cow"]}
        with refused(Refusal, "altered"):
            federated.read_plan(altered(plan, request=request))


@pytest.mark.parametrize(
    "wrong",
    [{"classes": ["a", "a"]}, {"classes": []}, {"classes": True}, {"classes": ["0", "1"]}, {"classes": 0},
     {"about": {}}, {"about": {"author": "x"}}, {"about": {"model": ""}}, {"about": "model"}],
)  # fmt: skip
def test_words_that_no_plan_would_say_are_malformed(three, wrong):
    content = content_of(three.plan(score="lac"))
    with refused(Refusal, "malformed"):
        federated.read_plan(sign("plan", content | {"request": content["request"] | wrong}, three.coordinator.signing))


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        (confide.aps_score(P, Y, randomised=False), "score must be left out or be 'aps_deterministic'"),
        (
            confide.lac_score(np.full((200, 2), 0.5), np.zeros(200, int)),
            "classes must be the 2",
        ),
        (confide.lac_score(P, np.array(["cat", "dog", "owl"])[Y], classes=["cat", "dog", "owl"]), "other names"),
    ],
)
def test_a_silo_whose_scores_are_others_does_not_answer(three, scores, says):
    """The ledger has no charge, and the silo answers with correct scores afterwards."""
    plan = three.plan(score="lac", classes=NAMES)
    three.scores[0] = scores
    with refused(InputError, "scores"):
        three.answer(0, plan)
    assert three.ledgers[0].spent == 0
    three.scores[0] = confide.lac_score(P, np.array(NAMES)[Y], classes=NAMES)
    assert federated.aggregate(plan, three.answers(plan)).classes == NAMES
