"""A sum of replies, and a silo's own share: what the coordinator and readers of releases are told."""

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
from confide.federated.plan import FederatedPlan
from confide.releases import Release
from fuzz.source import Source, change, one_line, read_again, with_checksum


class Replied(NamedTuple):
    """Valid messages of a sum of replies and of replies that open, and the keys that sign them."""

    silo: federated.SiloKeys
    plan: FederatedPlan
    answer: str
    released: str
    share: str


@cache
def replied() -> Replied:
    """Three silos that add their replies up, and send them openly to another plan."""
    keys, boss = [federated.SiloKeys.generate(f"s{i}") for i in range(3)], federated.SiloKeys.generate("coordinator")
    public, few = [k.public(size=60) for k in keys], confide.Candidates.unit(6)
    hidden = federated.plan(public, 0.4, 10.0, candidates=few, method="fedcp2-qq-sum", dp_delta=1e-6).sign(boss)
    opened = federated.plan(public, 0.2, 4.0, candidates=few, method="private-qq").sign(boss)
    peers = {silo.name: silo.identity for silo in public}
    policy = federated.Policy(
        boss.public().identity, budget=40.0, per_plan=20.0, methods=("fedcp2-qq-sum", "private-qq"), peers=peers
    )
    scores, sent = np.random.default_rng(0).random(60), {}
    with tempfile.TemporaryDirectory() as folder:
        ledgers = [federated.SiloLedger(Path(folder) / f"{k.name}.db") for k in keys]
        for plan in (hidden, opened):
            sent[plan] = [federated.answer(plan, scores, k, policy, one) for k, one in zip(keys, ledgers, strict=True)]
    share = federated.own_share(federated.aggregate(opened, sent[opened]), sent[opened][0]).to_json()
    plan, _ = FederatedPlan.read(hidden)
    return Replied(keys[0], plan, sent[hidden][0], federated.aggregate(hidden, sent[hidden]).to_json(), share)


def replied_answer(data: bytes) -> None:
    """`read_answer` on a masked reply with changed fields, signed again."""
    team = replied()
    text = seal("answer", change(json.loads(team.answer)["content"], Source(data)), team.silo.signing)
    try:
        answer = read_answer(team.plan, text)
    except ConfideError as error:
        one_line(error)
        return
    assert answer.silo == 0


def replied_calibration(data: bytes) -> None:
    """`Release.from_json` on what came of a sum of replies, changed, with a right checksum.

    Masked answers are not in it, so its threshold is stated: any of the candidates, and nothing else, is read.
    """
    read = _read(replied().released, data)
    assert read is None or read.threshold in replied().plan.candidates.values


def own_share_fields(data: bytes) -> None:
    """`Release.from_json` on a silo's own share, changed, with right checksums."""
    read = _read(replied().share, data)
    assert read is None or read.threshold == Release.from_json(replied().share).threshold


def _read(valid: str, data: bytes) -> Release | None:
    source = Source(data)
    document = change(json.loads(valid), source)
    if isinstance(document.get("calibration"), dict) and source.byte() % 2:
        inner = with_checksum(document["calibration"])
        document["calibration"] = None if inner is None else json.loads(inner)
    return read_again(with_checksum(document))
