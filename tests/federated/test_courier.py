"""Rounds over couriers: accepted replies, repeated requests, and the files of a silo."""

import logging
from functools import partial

import numpy as np
import pytest

from confide import federated
from confide.candidates import Candidates
from confide.errors import InputError
from confide.federated.remote import (
    Failure,
    NotReleasedError,
    Round,
    SiloSetup,
    one_round,
    run,
    serve,
)
from tests.federated.helpers import Federation
from tests.federated.test_products import SILENT, courier_of, functions_of
from tests.refused import refused


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
