"""`python -m experiments.federated.hospitals`: four real hospitals, silo by silo."""

import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

from benchmarks.small import small
from confide import calibrate, federated
from confide.candidates import Candidates
from confide.errors import CoverageWarning
from experiments.federated.heart import NAMES, split

ALPHA, EPSILON, NET = 0.2, 4.0, 0.4


def thresholds(calibration: list[np.ndarray], directory: Path) -> dict[str, list[float]]:
    """One threshold per hospital for every way to calibrate."""
    grid = Candidates.unit(41)
    coordinator = federated.SiloKeys.generate("coordinator")
    keys = [federated.SiloKeys.generate(name) for name in NAMES]
    silos = [key.public(len(s)) for key, s in zip(keys, calibration, strict=True)]
    peers = {silo.name: silo.identity for silo in silos}
    policy = federated.Policy(coordinator.public().signing, 100.0, EPSILON, peers=peers)
    found, released = {}, None
    for method in ("private-qq", "secure-sum"):
        text = federated.plan(silos, ALPHA, EPSILON, method=method, score="lac", candidates=grid).sign(coordinator)
        answers = []
        for key, scores in zip(keys, calibration, strict=True):
            state = federated.SiloLedger(directory / f"{key.name}.db")
            answers.append(federated.answer(text, scores, key, policy, state))
        released = federated.aggregate(text, answers)
        found[method] = [released.threshold] * 4
    request = {"score": "lac", "candidates": grid, "neighbors": "replace_one"}
    own = [calibrate(s, ALPHA, EPSILON, **request) for s in calibration]
    nets = [calibrate(s, NET, EPSILON, **request) for s in calibration]
    found["own"] = [one.threshold for one in own]
    found["secure-sum with a safety net"] = [max(released.threshold, net.threshold) for net in nets]
    return found


def main(draws: int = small(40, 1)) -> None:
    """Print the table of docs/experiments/federated/README.md: coverage by hospital, mean over the splits."""
    covered: dict[str, list[list[float]]] = {}
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as name:
        warnings.simplefilter("ignore", CoverageWarning)
        for seed in range(draws):
            calibration, test = split(seed)
            directory = Path(name) / str(seed)
            directory.mkdir()
            for method, values in thresholds(calibration, directory).items():
                rates = [float(np.mean(s <= t)) for s, t in zip(test, values, strict=True)]
                covered.setdefault(method, []).append(rates)
    sys.stdout.write(f"| threshold | {' | '.join(NAMES)} |\n|---|{'---|' * 4}\n")
    for method, rates in covered.items():
        sys.stdout.write(f"| {method} | " + " | ".join(f"{rate:.3f}" for rate in np.mean(rates, axis=0)) + " |\n")


if __name__ == "__main__":
    main()
