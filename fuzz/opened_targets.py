"""The second round of a secure sum: what openers, the coordinator and readers of the release are told."""

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

import confide
from confide import federated
from confide.errors import ConfideError
from confide.federated.answers import read_answer
from confide.federated.envelope import seal
from confide.federated.openings import read_opening, read_part
from confide.federated.plan import FederatedPlan
from fuzz.source import Source, change, one_line, with_checksum


class Round(NamedTuple):
    """Valid messages of both rounds, and the keys that sign them."""

    coordinator: federated.SiloKeys
    silos: list[federated.SiloKeys]
    plan: str
    replied: str
    answer: str
    opening: str
    part: str
    released: str


@cache
def both_rounds() -> Round:
    """Five silos, all of whom answer and help to open."""
    keys, boss = [federated.SiloKeys.generate(f"s{i}") for i in range(5)], federated.SiloKeys.generate("coordinator")
    public, few = [k.public(size=60) for k in keys], confide.Candidates.unit(6)
    plan = federated.plan(public, 0.2, 4.0, candidates=few, method="secure-sum", dropouts=1).sign(boss)
    peers = {silo.name: silo.identity for silo in public}
    policy = federated.Policy(boss.public().signing, budget=10.0, per_plan=10.0, peers=peers)
    scores = np.random.default_rng(0).random(60)
    with tempfile.TemporaryDirectory() as folder:
        ledgers = [federated.SiloLedger(Path(folder) / f"{k.name}.db") for k in keys]
        answers = [federated.answer(plan, scores, k, policy, one) for k, one in zip(keys, ledgers, strict=True)]
        asked = federated.openings(plan, answers, boss)
        helping = zip(keys, ledgers, strict=True)
        parts = [federated.open_part(plan, asked[k.name], k, policy, one) for k, one in helping]
    released = federated.aggregate(plan, answers, parts=parts).to_json()
    replied = federated.plan(public, 0.2, 10.0, candidates=few, method="fedcp2-qq-sum", dp_delta=1e-6).sign(boss)
    return Round(boss, keys, plan, replied, answers[0], asked["s0"], parts[0], released)


def opened_plan(data: bytes) -> None:
    """`FederatedPlan.read` on a plan with openers, or a sum of replies, some fields changed, signed again."""
    team, source = both_rounds(), Source(data)
    plan = team.replied if source.byte() % 2 else team.plan
    text = seal("plan", change(json.loads(plan)["content"], source), team.coordinator.signing)
    try:
        read, _ = FederatedPlan.read(text)
    except ConfideError as error:
        one_line(error)
        return
    assert FederatedPlan.from_fields(read.fields()).digest == read.digest
    if isinstance(read.channel, federated.Shared):
        assert 3 * read.channel.needed > 2 * len(read.channel.openers) + read.channel.colluding


def sealed_answer(data: bytes) -> None:
    """`read_answer` on sealed shares with changed fields, signed again."""
    team = both_rounds()
    plan, _ = FederatedPlan.read(team.plan)
    text = seal("answer", change(json.loads(team.answer)["content"], Source(data)), team.silos[0].signing)
    try:
        answer = read_answer(plan, text)
    except ConfideError as error:
        one_line(error)
        return
    assert len(answer.reply.shares) == 5


def opening_for_a_silo(data: bytes) -> None:
    """`read_opening` on what the coordinator asks, with changed fields, signed again by it or by a silo."""
    team, source = both_rounds(), Source(data)
    plan, _ = FederatedPlan.read(team.plan)
    signer = team.silos[1] if source.byte() % 16 == 0 else team.coordinator
    text = seal("opening", change(json.loads(team.opening)["content"], source), signer.signing)
    try:
        asked = read_opening(plan, text, team.coordinator.public().signing)
    except federated.Refusal as error:
        one_line(error)
        return
    assert signer is team.coordinator
    assert 4 <= len(asked.counted) == len(asked.shares)


def part_of_an_opener(data: bytes) -> None:
    """`read_part` on a part with changed fields, signed again by its opener or by another."""
    team, source = both_rounds(), Source(data)
    plan, _ = FederatedPlan.read(team.plan)
    signer = team.silos[source.byte() % 16 == 0]
    text = seal("part", change(json.loads(team.part)["content"], source), signer.signing)
    try:
        part = read_part(plan, text)
    except federated.Refusal as error:
        one_line(error)
        return
    assert plan.silos[part.opener].name == signer.name
    assert part.total.shape == (6,)


def opened_calibration(data: bytes) -> None:
    """`FederatedCalibration.from_json` on a release with its list and parts, changed, with a right checksum."""
    text = with_checksum(change(json.loads(both_rounds().released), Source(data)))
    if text is None:
        return
    try:
        read = federated.FederatedCalibration.from_json(text)
    except ConfideError as error:
        one_line(error)
        return
    assert federated.FederatedCalibration.from_json(read.to_json()) == read
    assert read.threshold == federated.FederatedCalibration.from_json(both_rounds().released).threshold
