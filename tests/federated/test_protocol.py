"""plan -> answer -> aggregate: accepted messages, refusals by name, and the statements of a result."""

import dataclasses
from copy import deepcopy
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

import confide
from confide import federated
from confide.candidates import Candidates
from confide.errors import InputError, InputTypeError
from confide.federated import Refusal
from confide.federated.messages import sign
from confide.scores import LIBRARY, score_kind
from confide.selection import zcdp_of_range
from tests.exact import histograms, mechanism_law, replaced, worst_log_ratio
from tests.federated.helpers import Federation, content_of
from tests.refused import Refused, refused

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def five(tmp_path):
    return Federation.uniform(tmp_path, 200, 150, 120, 180, 160)


PARAMETERS = {"raps": "(penalty=0.01,k_reg=5)", "saps": "(penalty=0.1)"}
SCORES = [
    None,
    *(family + PARAMETERS.get(family, "") for family in (score.name for score in LIBRARY)),
    "aps_deterministic",
]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["private-qq", "secure-sum"])
@pytest.mark.parametrize("score", SCORES)
def test_every_score_with_its_candidates(tmp_path, score, method):
    """Sign a plan, read it, answer and aggregate: the reader supports recipes of all kinds."""
    drawn = np.random.default_rng(0).random((3, 60 if method == "private-qq" else 300))
    three = Federation(tmp_path, list(np.ceil(20 * drawn) if score == "top_k" else drawn))
    plan = federated.plan(three.silos, 0.2, 8.0, score=score, method=method).sign(three.coordinator)
    released = federated.aggregate(plan, three.answers(plan))
    assert released.score == score
    assert released.plan.candidates.recipe["of"] == score_kind(score).spread_kind
    assert released.threshold in released.plan.candidates.values
    assert federated.FederatedRelease.from_json(released.to_json()) == released


@pytest.mark.long
def test_a_plan_that_silos_cannot_read_is_not_signed(five):
    unlike = Candidates(np.array([0.1, 0.5, 0.9]), {"kind": "unit", "size": 5, "spacing": "uniform"})
    with refused(InputError, "plan"):
        five.plan(candidates=unlike)
    good = federated.plan(five.silos, 0.1, 2.0, method="private-qq", candidates=Candidates.unit(51))
    content = content_of(good.sign(five.coordinator))
    for recipe in ({"kind": "unit", "size": 51.0, "spacing": "uniform"}, {"kind": "lost"}):
        request = content["request"] | {"candidates": recipe}
        with refused(Refusal, "malformed"):
            federated.read_plan(sign("plan", content | {"request": request}, five.coordinator.signing))


@pytest.mark.long
def test_secret_sizes_travel_nowhere(tmp_path):
    few = Federation.uniform(tmp_path, 333, 444, 555, seed=1, secret=True)
    plan = few.plan(epsilon=2.0, n_min=50, n_typical=400)
    answers = few.answers(plan)
    released = federated.aggregate(plan, answers)
    assert released.guarantee.n is None
    assert released.guarantee.n_min == 50
    assert released.privacy.neighbors == "add_remove"
    contents = [content_of(a) for a in answers]
    assert all(set(c) == {"plan", "silo", "answered", "versions", "sent"} for c in contents)


@pytest.mark.long
def test_dropped_silos_are_certified_for_those_who_answered(five):
    plan = five.plan(dropouts=2)
    for who in ([0, 1, 2, 3, 4], [0, 2, 3, 4], [1, 3, 4]):
        released = federated.aggregate(plan, five.answers(plan, who))
        assert released.coverage >= 0.9
        assert released.threshold > 0.5
        assert released.guarantee.n == sum(len(five.scores[i]) for i in who)
    promises = federated.read_plan(plan).promises()
    assert set(promises) == {1, 2, 3, 4, 5}
    assert all(promise.coverage >= 0.9 for promise in promises.values())
    assert [promises[count].infinite for count in (5, 4, 3)] == ["never"] * 3


@pytest.mark.long
def test_silo_refuses_by_name(five):
    plan, scores, policy, stranger = five.plan(), five.scores[0], five.policy, federated.SiloKeys.generate("stranger")
    good = {"plan": plan, "scores": scores, "keys": five.keys[0], "policy": policy, "ledger": five.ledgers[0]}
    pinned = dataclasses.replace(policy, peers={**policy.peers, "silo 1": "00" * 32})
    published = {"plan": five.plan(method="secure-sum")}
    for code, change in [
        ("altered", {"plan": plan.replace('"payload": "eyJ', '"payload": "eyK')}),
        ("malformed", {"plan": plan[:-30]}),
        ("malformed", {"plan": "x" * 17_000_000}),
        ("coordinator-unknown", {"plan": federated.read_plan(plan).sign(stranger)}),
        ("not-invited", {"keys": stranger}),
        ("size-differs", {"scores": scores[1:]}),
        ("not-allowed", {"policy": dataclasses.replace(policy, per_plan=1.0)}),
        ("not-allowed", {**published, "policy": dataclasses.replace(policy, methods=("private-qq",))}),
        ("not-allowed", {"plan": five.plan(method="secure-sum"), "policy": pinned}),
        ("late", {"plan": five.plan(closes=NOW), "now": NOW + timedelta(seconds=2)}),
    ]:
        Refused(federated.answer, good, change, code, kind=Refusal).check()
    with pytest.raises(InputError):
        federated.answer(**good | {"scores": np.append(scores[1:], np.nan)})
    assert five.ledgers[0].spent == 0


@pytest.mark.long
def test_coordinator_refuses_by_name(five):
    plan, other = five.plan(epsilon=5.0, closes=NOW), five.plan(epsilon=5.0, closes=NOW)
    before = NOW - timedelta(hours=1)
    good = [five.answer(i, plan, now=before) for i in range(5)]
    federated.aggregate(plan, good)
    content = content_of(good[0])

    def forged(**changes):
        return sign("answer", content | changes, five.keys[0].signing)

    cases = {
        "malformed": [good[0][:-20], forged(sent=[3, 3])],
        "altered": [good[0].replace('"payload": "eyJ', '"payload": "eyK')],
        "foreign": [five.answer(0, other, now=before), forged(silo="unknown"), forged(silo="silo 1")],
        "late": [forged(answered="2030-01-01T00:00:01Z")],
        "out-of-range": [forged(sent=[51]), forged(sent=[-1])],
    }
    for code, texts in cases.items():
        for text in texts:
            with refused(Refusal, code):
                federated.aggregate(plan, [text, *good[1:]])
            dropped = federated.aggregate(plan, [text, *good[1:]], drop_refused=True)
            assert dropped.answered == ("silo 1", "silo 2", "silo 3", "silo 4")
            assert dropped.refused[0][1] == code
    days = (content_of(good[1]) | {"answered": f"2029-12-{day}T00:00:00Z"} for day in (30, 31))
    two, three = (sign("answer", content, five.keys[1].signing) for content in days)
    with refused(Refusal, "duplicate"):
        federated.aggregate(plan, [two, *good])
    both = federated.aggregate(plan, [two, *good, two, good[1], three], drop_refused=True)
    assert "silo 1" not in both.answered
    assert both.refused == (("silo 1", "duplicate"),)


@pytest.mark.slow
def test_a_silo_is_not_mistaken_for_the_place_of_a_message(tmp_path):
    three = Federation.uniform(tmp_path, *[300] * 3, names=("message 1", "message 2", "2"))
    plan = three.plan(epsilon=5.0, dropouts=1)
    good = three.answers(plan)
    released = federated.aggregate(plan, [good[0], "garbage", *good[1:]], drop_refused=True)
    assert released.answered == ("message 1", "message 2", "2")
    assert released.refused == ((2, "malformed"),)
    assert "left out: message 2, of no silo of the plan (malformed)" in str(released)
    assert confide.Release.from_json(released.to_json()) == released
    page = confide.report(released).html
    assert page.count("unknown sender") == page.count("left out: ") == 1


@pytest.mark.long
@pytest.mark.parametrize("secret", [False, True])
def test_loss_of_every_message_by_enumeration(secret):
    """Compute the distribution of a silo's message, from its plan, over all histograms that differ in one record."""
    from tests.exact import added

    silos = [federated.SiloKeys.generate(f"s{i}").public(None if secret else 8) for i in range(6)]
    options = {"n_min": 3, "n_typical": 8, "method": "private-qq"}
    plan = federated.plan(silos, 0.4, 1.5, candidates=Candidates.unit(4), **options)
    mechanism = plan.first.mechanism(0)
    if secret:
        starts = [h for n in range(8) for h in histograms(n, 4)]
        worst = worst_log_ratio(lambda h: mechanism_law(mechanism, h), starts, added)
    else:
        worst = worst_log_ratio(lambda h: mechanism_law(mechanism, h), histograms(8, 4), replaced)
    assert worst <= plan.loss(0) + 1e-9
    assert plan.loss(0) <= 1.5
    # The stated loss is not much too high: the slopes are equal, and so few records seldom change both.
    assert worst > 0.35 * plan.loss(0)
    assert plan.privacy().rho == zcdp_of_range(plan.privacy().epsilon)


@pytest.mark.long
def test_arguments_of_plan_are_refused_by_name(five):
    for options, argument in [
        ({"method": "best"}, "method"),
        ({"liars": 5}, "liars"),
        ({"dropouts": 5}, "dropouts"),
        ({"method": "secure-sum", "liars": 1}, "liars"),
        ({"method": "secure-sum", "dropouts": 2}, "dropouts"),
        ({"method": "secure-sum", "colluding": 5}, "colluding"),
        ({"method": "secure-sum", "candidates": Candidates.unit(2**14 + 1)}, "candidates"),
        ({"colluding": 1}, "colluding"),
        ({"population": "mixture"}, "population"),
        ({"method": "fedcp2-qq"}, "silos"),
        ({"alpha": 0.001, "epsilon": 0.1}, "silos"),
        ({"closes": datetime(2030, 1, 1)}, "closes"),
    ]:
        with refused(InputTypeError if argument == "closes" else InputError, argument):
            five.plan(**options)


def test_private_keys_stay_out_of_sight(five, tmp_path):
    key = five.keys[0]
    assert key.signing.hex() not in repr(key)
    path = tmp_path / "key.json"
    key.save(path)
    assert path.stat().st_mode & 0o077 == 0
    assert federated.SiloKeys.load(path) == key
    with refused(InputError, "keys"):
        key.save(path)
    silo = key.public(10)
    assert federated.Silo.from_json(silo.to_json()) == silo
    five.policy.save(tmp_path / "policy.json")
    assert federated.Policy.load(tmp_path / "policy.json") == five.policy


# Classes and metadata, as the plan states them for every silo

NAMES = ("cat", "dog", "emu")
ABOUT = {"model": "resnet 50", "responsible": "A. = B.", "date": "2026-11-21"}
RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(3), 200)
Y = np.array([RNG.choice(3, p=row) for row in P])


@pytest.fixture
def three(tmp_path):
    return Federation(tmp_path, [confide.lac_score(P, Y)] * 3)


@pytest.mark.long(unless="secure-sum")
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


@pytest.mark.parametrize(
    "wrong",
    [{"classes": ["a", "a"]}, {"classes": []}, {"classes": True}, {"classes": ["0", "1"]}, {"classes": 0},
     {"about": {}}, {"about": {"author": "x"}}, {"about": {"model": ""}}, {"about": "model"}],
)  # fmt: skip
def test_words_that_no_plan_would_say_are_malformed(three, wrong):
    content = content_of(three.plan(score="lac"))
    with refused(Refusal, "malformed"):
        federated.read_plan(sign("plan", content | {"request": content["request"] | wrong}, three.coordinator.signing))


@pytest.mark.slow(unless="scores1-classes must be the 2")
@pytest.mark.parametrize(
    ("scores", "says"),
    [
        (confide.aps_score(P, Y, randomised=False), "score must be left out or be 'aps_deterministic'"),
        (confide.lac_score(np.full((200, 2), 0.5), np.zeros(200, int)), "classes must be the 2"),
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
