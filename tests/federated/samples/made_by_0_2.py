"""How one sample for each other method and form of a plan was made: with 0.2.0 installed, `python made_by_0_2.py`.

Keys, noise and signatures cannot be drawn again: it is never run again. Each folder below `0.2` has the signed plan,
the answers and the release made from them. The keys below `0.2/keys` protect nothing else.
"""

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from confide import federated
from confide.candidates import Candidates

FOLDER = Path(__file__).parent / "0.2"
NAMES = ("north", "south", "east", "west")
SIZES = (100, 80, 90, 120)
NOW = datetime(2026, 11, 22, tzinfo=UTC)
LINE = Candidates.unit(11)
CASES: dict[str, dict[str, Any]] = {
    "secure-sum": {"method": "secure-sum", "population": "common", "delta": 0.1},
    "fedcp2-qq": {"method": "fedcp2-qq", "epsilon": 20.0, "sizes": (100,) * 4},
    "private-qq-secret": {
        "method": "private-qq",
        "sizes": (None,) * 4,
        "selector": "exponential",
        "n_min": 60,
        "n_typical": 80,
        "closes": datetime(2026, 11, 23, tzinfo=UTC),
    },
    "private-qq-left-out": {
        "method": "private-qq",
        "epsilon": 8.0,
        "delta": 0.2,
        "dropouts": 1,
        "candidates": Candidates.spread("residual", 20),
        "score": "absolute_residual",
        "spoiled": 3,
    },
}


def make(name: str, *, sizes: tuple[int | None, ...] = SIZES, spoiled: int = 0, **options: Any) -> None:
    """One round; of the answers the first `spoiled` ones are altered, and left out."""
    silos = [federated.SiloKeys.load(FOLDER / "keys" / f"{silo}.json") for silo in NAMES]
    coordinator = federated.SiloKeys.load(FOLDER / "keys" / "coordinator.json")
    public = [keys.public(n, now=NOW) for keys, n in zip(silos, sizes, strict=True)]
    plan = federated.plan(public, **{"alpha": 0.2, "epsilon": 6.0, "candidates": LINE, **options}).sign(coordinator)
    peers = {silo.name: silo.identity for silo in public}
    policy = federated.Policy(coordinator.public().identity, 50.0, 50.0, methods=federated.METHODS, peers=peers)
    rng, answers = np.random.default_rng(len(name)), []
    with tempfile.TemporaryDirectory() as ledgers:
        for keys, n in zip(silos, sizes, strict=True):
            ledger = federated.SiloLedger(Path(ledgers) / f"{keys.name}.db")
            answers.append(federated.answer(plan, rng.random(n or 85), keys, policy, ledger, now=NOW))
    for place in range(spoiled):
        answers[place] = answers[place].replace('"candidate": ', '"candidate": 1')
    released = federated.aggregate(plan, answers, drop_refused=spoiled > 0)
    (FOLDER / name).mkdir()
    for part, text in {"plan": plan, "answers": json.dumps(answers, indent=1) + "\n"}.items():
        (FOLDER / name / f"{part}.json").write_text(text, encoding="utf-8")
    released.save(FOLDER / name / "released.json")


if __name__ == "__main__":
    for case, options in CASES.items():
        make(case, **options)
    for sessions in (FOLDER / "keys").glob("*.sessions"):
        sessions.unlink()
