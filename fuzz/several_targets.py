"""Several plans under one signature: what silos, the coordinator and readers of the release are told."""

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import confide
from confide import federated
from confide.errors import ConfideError
from confide.federated.answers import read_answer
from confide.federated.envelope import seal
from fuzz.source import Source, change, one_line, read_again, with_checksum


class Team(NamedTuple):
    """Valid messages about two levels and about two groups, and the keys that sign them."""

    coordinator: federated.SiloKeys
    silo: federated.SiloKeys
    plans: tuple[str, ...]
    answers: tuple[str, ...]
    released: tuple[str, ...]


@cache
def team() -> Team:
    """Two silos that answer two levels of a sum, and two groups."""
    keys, boss = [federated.SiloKeys.generate(f"s{i}") for i in range(2)], federated.SiloKeys.generate("coordinator")
    few, scores = confide.Candidates.unit(6), np.random.default_rng(0).random(60)
    public, secret = [k.public(60) for k in keys], [k.public() for k in keys]
    levels = federated.plan_levels(public, [0.4, 0.3], 8.0, candidates=few, method="secure-sum")
    groups = federated.plan_groups(secret, ["a", "b"], 0.4, 8.0, candidates=few, n_typical=30)
    plans = (levels.sign(boss), groups.sign(boss))
    peers = {silo.name: silo.identity for silo in public}
    policy = federated.Policy(boss.public().identity, budget=40.0, per_plan=20.0, peers=peers)
    answers = []
    with tempfile.TemporaryDirectory() as folder:
        for text, names in zip(plans, (None, ["a", "b"] * 30), strict=True):
            ledgers = [federated.SiloLedger(Path(folder) / f"{k.name}.db") for k in keys]
            answers.append(
                [
                    federated.answer(text, scores, k, policy, ledger, groups=names)
                    for k, ledger in zip(keys, ledgers, strict=True)
                ]
            )
    released = tuple(federated.aggregate(text, sent).to_json() for text, sent in zip(plans, answers, strict=True))
    return Team(boss, keys[0], plans, tuple(sent[0] for sent in answers), released)


def several_plans(data: bytes) -> None:
    """`read_plan` on several plans, or on one of them, with changed fields; all signed again."""
    source = Source(data)
    content: Any = json.loads(team().plans[source.byte() % 2])["content"]
    signing = team().coordinator.signing
    if source.byte() % 2:
        inner = change(content["plans"][0]["content"], source)
        content["plans"][0] = json.loads(seal("plan", inner, signing))
    else:
        content = change(content, source)
    try:
        read, _ = federated.read_plan(seal("plans", content, signing))
    except ConfideError as error:
        one_line(error)
        return
    assert isinstance(read, federated.SeveralPlans)
    losses = [part.loss(0) for part in read.parts.values()]
    assert read.loss(0) >= max(losses)


def answer_to_several(data: bytes) -> None:
    """`read_answer` on an answer to several plans with changed fields, signed again."""
    source = Source(data)
    place = source.byte() % 2
    plans, _ = federated.read_plan(team().plans[place])
    text = seal("answer", change(json.loads(team().answers[place])["content"], source), team().silo.signing)
    try:
        answer = read_answer(plans, text)
    except ConfideError as error:
        one_line(error)
        return
    assert len(answer.reply) == (2 if plans.channel.each else plans.width)


def several_released(data: bytes) -> None:
    """`Release.from_json` on several thresholds, changed, with a right checksum."""
    source = Source(data)
    text = with_checksum(change(json.loads(team().released[source.byte() % 2]), source))
    read_again(text)
