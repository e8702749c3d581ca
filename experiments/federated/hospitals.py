"""`python -m experiments.federated.hospitals`: four real hospitals, silo by silo."""

import csv
import tempfile
import warnings
from pathlib import Path

import numpy as np

from confide import federated
from confide.candidates import Candidates
from confide.errors import CoverageWarning
from confide.federated.report import coverage_in_silo, own_calibration, shrunk_threshold
from confide.scores import lac_score
from experiments.federated.problems import folder

NAMES = ("cleveland", "hungarian", "switzerland", "va")
ALPHA, EPSILON, NET = 0.2, 4.0, 0.4


def read(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features with NaN for what is missing, and whether disease was found."""
    with (folder() / "uci_heart" / f"{name}.csv").open() as file:
        rows = list(csv.reader(file))[1:]
    table = np.array([[float(v) if v.strip() not in ("?", "") else np.nan for v in row] for row in rows])
    return table[:, :-1], (table[:, -1] > 0).astype(int)


def split(seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Scores of every hospital, to calibrate and to test, of a model trained at the first two."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    rng = np.random.default_rng(seed)
    parts = []
    for name in NAMES:
        x, y = read(name)
        order = rng.permutation(len(y))
        third = len(y) // 3
        parts.append([(x[i], y[i]) for i in (order[:third], order[third : 2 * third], order[2 * third :])])
    x, y = (np.concatenate([part[0][i] for part in parts[:2]]) for i in (0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = HistGradientBoostingClassifier(max_iter=60, max_depth=3, random_state=0).fit(x, y)
        scores = [[lac_score(model.predict_proba(a), b) for a, b in part[1:]] for part in parts]
    return [s[0] for s in scores], [s[1] for s in scores]


def thresholds(calibration: list[np.ndarray], directory: Path) -> dict[str, list[float]]:
    """One threshold per hospital for every way to calibrate."""
    grid = Candidates.unit(41)
    coordinator = federated.SiloKeys.generate("coordinator")
    keys = [federated.SiloKeys.generate(name) for name in NAMES]
    silos = [key.public(len(s)) for key, s in zip(keys, calibration, strict=True)]
    peers = {silo.name: silo.agreement for silo in silos}
    policy = federated.Policy(coordinator.public().signing, 100.0, EPSILON, peers=peers)
    found, released = {}, None
    for method in ("private-qq", "secure-sum"):
        text = federated.plan(silos, ALPHA, EPSILON, method=method, score="lac", candidates=grid).sign(coordinator)
        answers = []
        for key, scores in zip(keys, calibration, strict=True):
            state = federated.SiloState(directory / f"{key.name}.db")
            answers.append(federated.answer(text, scores, key, policy, state))
        released = federated.aggregate(text, answers)
        found[method] = [released.threshold] * 4
    own = [own_calibration(s, ALPHA, EPSILON, score="lac", candidates=grid) for s in calibration]
    nets = [own_calibration(s, NET, EPSILON, score="lac", candidates=grid) for s in calibration]
    found["own"] = [one.threshold for one in own]
    found["secure-sum with a safety net"] = [shrunk_threshold(released, net) for net in nets]
    return found


def main(draws: int = 40) -> None:
    """Write the table."""
    covered: dict[str, list[list[float]]] = {}
    estimates = []
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as name:
        warnings.simplefilter("ignore", CoverageWarning)
        for seed in range(draws):
            calibration, test = split(seed)
            directory = Path(name) / str(seed)
            directory.mkdir()
            for method, values in thresholds(calibration, directory).items():
                rates = [float(np.mean(s <= t)) for s, t in zip(test, values, strict=True)]
                covered.setdefault(method, []).append(rates)
                if method == "secure-sum" and seed == 0:
                    estimates = [coverage_in_silo(n, s, values[0], 1.0) for n, s in zip(NAMES, test, strict=True)]
    lines = [
        "# Four hospitals, silo by silo",
        "",
        "Written by `python -m experiments.federated.hospitals`. A model trained on a third of Cleveland and Hungarian;",
        f"every hospital calibrates on a third of its patients, alpha = {ALPHA}, epsilon = {EPSILON:g}; coverage on the",
        f"rest, mean over {draws} splits. The safety net is an own threshold at alpha = {NET}.",
        "",
        "| threshold | " + " | ".join(NAMES) + " |",
        "|---|" + "---|" * 4,
    ]
    for method, rates in covered.items():
        lines.append(f"| {method} | " + " | ".join(f"{rate:.3f}" for rate in np.mean(rates, axis=0)) + " |")
    lines += [
        "",
        "Private estimates (epsilon = 1 each) of what the secure-sum threshold of the first split covers:",
        "",
    ]
    lines += [f"- {estimate}" for estimate in estimates]
    out = Path("docs/experiments/federated")
    out.mkdir(parents=True, exist_ok=True)
    (out / "hospitals.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
