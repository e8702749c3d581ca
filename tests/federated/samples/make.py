"""How the samples were made: `python make.py FOLDER`, run with confide 0.1 and never again.

One folder per plan, with the signed plan, the silos' answers and the calibration that was aggregated from them; `keys`
holds the keys that signed them, which protect nothing but these samples.
"""

import json
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from confide import Candidates, federated

NAMES = ("north", "south", "east", "west")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
LINE = Candidates.unit(11)
CASES = {
    "private-qq": {},
    "private-qq-closes": {"closes": datetime(2026, 1, 2, tzinfo=UTC), "score": "lac"},
    "private-qq-secret": {"secret": True, "epsilon": 4.0, "n_min": 50, "n_typical": 80},
    "private-qq-secret-exponential": {"secret": True, "epsilon": 4.0, "selector": "exponential", "n_min": 60},
    "private-qq-delta": {"delta": 0.2, "epsilon": 8.0},
    "private-qq-liars": {"liars": 1},
    "private-qq-exponential": {"selector": "exponential", "dropouts": 1, "missing": "arbitrary"},
    "private-qq-too-few-answered": {"answered": 2},
    "private-qq-left-out": {"dropouts": 1, "spoiled": True},
    "private-qq-geometric": {"candidates": Candidates.geometric(1.0, 0.5, 2), "score": "absolute_residual"},
    "secure-sum": {"method": "secure-sum"},
    "secure-sum-common-delta": {"method": "secure-sum", "population": "common", "delta": 0.1, "colluding": 0},
    "secure-sum-64-bits": {"method": "secure-sum", "huge": True},
    "secure-sum-selector-stated": {"method": "secure-sum", "selector": "exponential", "n_min": 7},
    "fedcp-qq": {"method": "fedcp-qq", "epsilon": None, "equal": True},
    "fedcp-qq-unequal": {"method": "fedcp-qq", "epsilon": None, "candidates": Candidates.of([0.2, 0.5, 0.8, 0.9])},
    "fedcp-qq-delta-liars": {"method": "fedcp-qq", "epsilon": None, "delta": 0.1, "liars": 1, "missing": "arbitrary"},
    "fedcp-qq-sizes-stated": {"method": "fedcp-qq", "epsilon": None, "n_min": 3, "n_typical": 5},
    "fedcp2-qq": {"method": "fedcp2-qq", "epsilon": 20.0, "equal": True},
    "fedcp2-qq-dropouts": {"method": "fedcp2-qq", "epsilon": 20.0, "equal": True, "answered": 3},
    "fedcp-avg": {"method": "fedcp-avg", "epsilon": None},
}


def make(folder, keys, *, secret=False, equal=False, huge=False, answered=4, spoiled=False, **options):
    sizes = [100] * 4 if equal else [100, 80, 90, 120]
    rng, coordinator = np.random.default_rng(len(str(folder))), keys["coordinator"]
    options = {"alpha": 0.2, "epsilon": 6.0, "candidates": LINE, **options}
    stated = [None if secret else 3 * 10**8 if huge else n for n in sizes]
    public = [keys[name].public(n) for name, n in zip(NAMES, stated, strict=True)]
    plan = federated.plan(public, **options).sign(coordinator)
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(plan)
    if huge:
        return
    peers = {silo.name: silo.agreement for silo in public}
    policy = federated.Policy(coordinator.public().signing, 50.0, 50.0, methods=federated.METHODS, peers=peers)
    answers = []
    with tempfile.TemporaryDirectory() as ledgers:
        for name, n in list(zip(NAMES, sizes, strict=True))[:answered]:
            state = federated.SiloState(Path(ledgers) / name)
            answers.append(federated.answer(plan, rng.random(n), keys[name], policy, state, now=NOW))
    if spoiled:
        answers[0] = answers[0].replace('"candidate": ', '"candidate": 1')
        answers.append(answers[1])
    (folder / "answers.json").write_text(json.dumps(answers, indent=1) + "\n")
    federated.aggregate(plan, answers, drop_refused=spoiled).save(folder / "released.json")


if __name__ == "__main__":
    target = Path(sys.argv[1])
    (target / "keys").mkdir()
    keys = {name: federated.SiloKeys.generate(name) for name in ("coordinator", *NAMES)}
    for name, key in keys.items():
        key.save(target / "keys" / f"{name}.json")
    for name, options in CASES.items():
        make(target / name, keys, **options)
        print(name)
