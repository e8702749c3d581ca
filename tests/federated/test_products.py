"""Each combination of plan, method, courier and signature gives the release that the messages determine."""

import itertools
import json
import logging
from functools import partial

import numpy as np
import pytest

from confide import federated
from confide.candidates import Candidates
from confide.errors import InputError
from confide.federated.remote import Failure, NotReleasedError, Round, SiloSetup, one_round, run, serve
from tests.federated.helpers import Federation
from tests.refused import refused

NAMES = ("young", "old")
ASKED = ("one", "levels", "groups", "classes", "sides")
METHODS = ("private-qq", "secure-sum", "fedcp2-qq", "fedcp2-qq-sum")
PLANNED = {*itertools.product(("one", "levels", "sides"), METHODS), ("groups", "private-qq"), ("classes", "private-qq")}
"""The combinations that must be possible to plan; others are also tested as soon as they can be planned."""


def plan_of(made, asked, method="private-qq"):
    """Return a signed plan for one threshold or several."""
    options = {"candidates": Candidates.unit(21), "method": method, "epsilon": 8.0}
    if asked == "one":
        return federated.plan(made.silos, 0.2, **options).sign(made.coordinator)
    if asked == "levels":
        return federated.plan(made.silos, [0.3, 0.2], **options).sign(made.coordinator)
    if asked == "sides":
        return federated.plan(made.silos, 0.4, by="side", **options).sign(made.coordinator)
    by = {"groups": "group", "classes": "class"}[asked]
    silos = [keys.public() for keys in made.keys]
    return federated.plan(silos, 0.2, by=by, names=NAMES, n_typical=40, **options).sign(made.coordinator)


def groups_of(scores):
    return np.resize(np.array(NAMES), len(scores))


def setup_of(made, i):
    groups = partial(groups_of, made.scores[i])
    return SiloSetup(made.scores[i], made.keys[i], made.policy, made.ledgers[i], groups)


def functions_of(made, silent=()):
    """Return silos as functions that exchange JSON texts with the coordinator; a refusal fails the test."""

    def reply(i, request):
        if i in silent:
            return None
        return json.loads(json.dumps(serve(json.loads(json.dumps(request)), lambda: setup_of(made, i), SILENT)))

    return {10 + i: partial(reply, i) for i in range(len(made.keys))}


def courier_of(functions):
    """Return a courier to functions from a request to a reply, or to None if the node is silent."""

    def ask(requests):
        replies = ((node, functions[node](request)) for node, request in requests.items())
        return [(node, reply) for node, reply in replies if reply is not None]

    return ask


class Silent:
    """A log in which any message fails the test."""

    def exception(self, text, *values):
        raise AssertionError(text)

    warning = exception


SILENT = Silent()


def over_functions(made, plan, keys):
    functions = functions_of(made)
    return run(courier_of(functions), functions, plan, keys=keys)


def grid_of(made):
    pytest.importorskip("flwr", reason="needs the extra 'flower': pip install 'confide[flower]'")
    from flwr.clientapp import ClientApp

    from confide.federated import flower
    from tests.federated.in_process_grid import InProcessGrid

    app = ClientApp()
    flower.register(app, lambda context: setup_of(made, int(context.node_config["silo"])))
    return InProcessGrid(app, {10 + i: {"silo": i} for i in range(len(made.keys))})


def over_flower(made, plan, keys):
    grid = grid_of(made)
    from confide.federated import flower

    return flower.calibrate(grid, plan, keys=keys, poll=0.01)


COURIERS = {"functions": over_functions, "flower": over_flower}


def messages_of(made, plan):
    """Return the messages of the silos again, from their ledgers."""
    functions = functions_of(made)
    return [functions[10 + i]({"plan": plan})["answer"] for i in range(len(made.keys))]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("asked", ASKED)
def test_every_courier_brings_the_release_of_the_messages(tmp_path, asked, method):
    """Test with and without signature; `aggregate` gives the same."""
    made = Federation(tmp_path, [np.random.default_rng(i).random(60) for i in range(5)], budget=100.0)
    try:
        plan = plan_of(made, asked, method)
    except InputError:
        assert (asked, method) not in PLANNED
        return
    if asked == "sides":
        made.scores = [dict.fromkeys(("cqr_low", "cqr_high"), scores) for scores in made.scores]
    for number, carried in enumerate(COURIERS.values()):
        for keys in (made.coordinator, None):
            signed = keys is not None
            found, asked_of = carried(made, plan, keys)
            if number == 0 and signed:
                spent, answers = [ledger.spent for ledger in made.ledgers], messages_of(made, plan)
            assert sorted(asked_of.answers.values()) == sorted(answers)
            expected = federated.aggregate(plan, answers, keys=keys)
            assert found.to_json() == expected.to_json()
            assert found == expected
            assert (found.signature is not None) is signed
            if (asked, method) == ("one", "private-qq"):
                assert federated.own_share(found, asked_of.answers[10]).threshold >= found.threshold
            assert federated.verify(found, made.coordinator.public()).holds is signed
    assert [ledger.spent for ledger in made.ledgers] == spent
    assert min(spent) > 0


# Rounds: accepted replies, repeated requests, and the files of a silo


@pytest.fixture
def three(tmp_path):
    return Federation(tmp_path, [np.random.default_rng(i).random(60) for i in range(3)])


# Accepted replies


def test_the_first_reply_of_each_requested_node_is_used():
    pairs = (2, {"answer": "b"}), (1, {"answer": "a"}), (1, {"answer": "c"}), (9, {"answer": "d"}), (3, Failure(7))
    found = one_round(lambda requests: pairs, {node: {"plan": ""} for node in (1, 2, 3, 4, 5)})
    assert list(found.answers.items()) == [(1, "a"), (2, "b")]  # the order of arrival has no effect
    assert (found.errors, found.silent) == ({3: 7}, [4, 5])


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ({}, "malformed"),
        ({"answer": 7}, "malformed"),
        ({"refused": "patient 7 has measles"}, "malformed"),
        ({"refused": "budget-spent", "why": "patient 7"}, "budget-spent"),
    ],
)
def test_of_a_refusal_nothing_but_a_known_code_is_taken(reply, code):
    found = Round()
    found.record(1, reply)
    assert found == Round(refused={1: code})


def test_too_few_answers_name_the_missing(three):
    functions = functions_of(three, silent=[1])
    functions[12] = lambda request: Failure("EXECUTION_EXCEPTION")
    with refused(NotReleasedError, "missing") as caught:
        run(courier_of(functions), functions, three.plan(method="secure-sum"))
    assert "1 answered; errors: 12 (EXECUTION_EXCEPTION); silent: 11" in str(caught.value)
    assert caught.value.missing == ("silo 1", "silo 2")


@pytest.mark.slow
def test_requests_use_only_the_keys_of_the_plan(three):
    functions, stranger = functions_of(three), federated.SiloKeys.generate("coordinator")
    with refused(InputError, "keys"):
        run(courier_of(functions), functions, three.plan(), keys=stranger)
    assert [ledger.spent for ledger in three.ledgers] == [0] * 3


# A silo's own files


def test_both_sides_of_an_interval_are_answered_from_the_folder_of_the_silo(three, tmp_path):
    plan = federated.plan(three.silos, 0.4, 8.0, by="side", candidates=Candidates.unit(21), method="private-qq")
    functions = {}
    for i, keys in enumerate(three.keys):
        folder = tmp_path / f"silo-{i}"
        folder.mkdir()
        np.savez(folder / "scores.npz", cqr_low=three.scores[i], cqr_high=three.scores[i])
        keys.save(folder / "keys.json")
        three.policy.save(folder / "policy.json")
        functions[i] = partial(serve, setup=partial(SiloSetup.load, folder), log=SILENT)
    found, _ = run(courier_of(functions), functions, plan.sign(three.coordinator), keys=three.coordinator)
    assert list(found) == ["low", "high"]
    assert len(found.sent) == 3


def test_unreadable_files_of_a_silo_are_reported_as_a_code(three, caplog):
    def broken():
        raise RuntimeError("patient records are 0.1, 0.2")

    with caplog.at_level(logging.ERROR, "confide"):
        assert serve({"plan": three.plan()}, broken) == {"refused": "internal"}
    assert "patient" in caplog.text
