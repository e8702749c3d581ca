"""Classes and metadata of a federated calibration, as the plan states them for every silo."""

import json
from copy import deepcopy

import numpy as np
import pytest

import confide
from confide import federated
from confide.cli import main
from confide.errors import FormatError, InputError
from confide.federated import Refusal
from confide.federated.envelope import sign_message
from confide.federated.plan import FederatedPlan
from tests.federated.helpers import Federation
from tests.files import write
from tests.refused import refused

NAMES = ("cat", "dog", "emu")
ABOUT = {"model": "resnet 50", "responsible": "A. = B.", "date": "2026-11-21"}
RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(3), 200)
Y = np.array([RNG.choice(3, p=row) for row in P])


@pytest.fixture
def three(tmp_path):
    return Federation(tmp_path, [confide.lac_score(P, Y)] * 3)


@pytest.mark.parametrize("method", ["private-qq", "secure-sum"])
def test_a_calibration_knows_what_its_plan_says(three, method):
    plan = three.plan(0.1, 2.0, method=method, score="lac", classes=NAMES, about=ABOUT)
    read, _ = FederatedPlan.read(plan)
    assert (read.classes, read.about) == (NAMES, ABOUT)
    assert deepcopy(read) == read
    assert FederatedPlan.from_fields(read.fields()) == read
    released = federated.aggregate(plan, three.answers(plan))
    for made in (released, confide.Calibration.from_json(released.to_json()), deepcopy(released)):
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
    assert not {"classes", "about"} & json.loads(silent)["content"].keys()
    assert federated.aggregate(silent, three.answers(silent)).classes is None


def test_words_are_signed(three):
    for options in ({}, {"classes": NAMES}, {"about": ABOUT}):
        plan = three.plan(score="lac", **options)
        message = json.loads(plan)
        other = {"content": message["content"] | {"classes": ["ant", "bee", "cow"]}}
        for change, code in (({"schema": 2}, "malformed"), (other, "altered")):
            with refused(Refusal, code):
                FederatedPlan.read(json.dumps(message | change))


@pytest.mark.parametrize(
    "wrong",
    [{"classes": ["a", "a"]}, {"classes": []}, {"classes": True}, {"classes": ["0", "1"]}, {"classes": 0},
     {"about": {}}, {"about": {"author": "x"}}, {"about": {"model": ""}}, {"about": "model"}],
)  # fmt: skip
def test_words_that_no_plan_would_say_are_malformed(three, wrong):
    content = FederatedPlan.read(three.plan(score="lac"))[0].fields() | wrong
    with refused(Refusal, "malformed"):
        FederatedPlan.read(sign_message("plan", content, three.coordinator.signing))


def test_a_calibration_cannot_be_given_other_classes(three):
    plan = three.plan(score="lac", classes=NAMES)
    document = json.loads(federated.aggregate(plan, three.answers(plan)).to_json())
    document["plan"]["content"]["classes"] = ["ant", "bee", "cow"]
    with pytest.raises(FormatError):
        federated.FederatedCalibration.from_json(json.dumps(document))


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


def run(*arguments):
    return main([str(a) for a in arguments])


@pytest.mark.slow
def test_over_files(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("north", "coordinator"):
        assert run("federated", "keygen", name, "--keys", f"{name}.key", "--public", f"{name}.json", "--size", 200) == 0
    order = [2, 0, 1]
    columns = {f"p_{NAMES[k]}": P[:, k] for k in order} | {"y": np.array(NAMES)[Y]}
    right = write(tmp_path / "right.parquet", columns)
    wrong = write(
        tmp_path / "wrong.parquet", {name.replace("p_emu", "p_owl"): column for name, column in columns.items()}
    )
    asked = ("--silo", "north.json", "--keys", "coordinator.key", "--alpha", 0.1, "--epsilon", 2, "--out", "plan.json")
    said = ("--classes", ",".join(NAMES), "--about", "model=resnet 50", "--about", "date=2026-11-21")
    assert run("federated", "plan", *asked, "--score", "lac", *said) == 0
    who = ("--keys", "north.key", "--coordinator", "coordinator.json", "--ledger", "north.db", "--budget", 4)
    answering = ("--probabilities", "p_*", "--label", "y", "--plan", "plan.json", "--out", "answer.json", *who)
    capsys.readouterr()
    assert run("federated", "answer", wrong, *answering) != 0
    assert "the first: 'owl'" in capsys.readouterr().err
    unnamed = ("--score-column", "p_cat", *answering[4:])
    assert run("federated", "answer", right, *unnamed) != 0
    assert "--score" in capsys.readouterr().err
    assert run("federated", "answer", right, *answering) == 0
    assert run("federated", "aggregate", "answer.json", "--plan", "plan.json", "--out", "released.json") == 0
    capsys.readouterr()
    assert run("show", "released.json") == 0
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("3: cat, dog, emu", "resnet 50", "2026-11-21"))
    predicting = ("--calibration", "released.json", "--probabilities", "p_*", "--out", "sets.parquet")
    assert run("predict", wrong, *predicting) != 0
    assert "the first: 'emu'" in capsys.readouterr().err
    assert run("predict", right, *predicting) == 0
