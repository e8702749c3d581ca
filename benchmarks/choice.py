"""A private choice among models and scores: mean set size and coverage, relative to the best one in hindsight.

python -m benchmarks.choice      the table of docs/benchmarks.md, in about two minutes; needs scikit-learn
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

import confide
from benchmarks.small import small

ALPHA, NOISE, TRAINED = 0.1, 6.0, 500
DRAWS = small(300, 3)
SIZES, EPSILONS = small((250, 500, 1000), (250,)), small((0.5, 1.0, 2.0, 4.0), (1.0,))


@dataclass(frozen=True)
class Offer:
    """A model with a score: the scores of all records, of their own class and of all classes."""

    own: NDArray[np.float64]
    every: NDArray[np.float64]


def offers() -> dict[str, Offer]:
    """Four models with two scores each, of the digits that did not train them, with noise in the images."""
    x, y = load_digits(return_X_y=True)
    x = x + np.random.default_rng(0).normal(0, NOISE, x.shape)
    models = {
        "bayes": GaussianNB(),
        "neighbours": KNeighborsClassifier(20),
        "forest": RandomForestClassifier(200, random_state=0),
        "logistic": LogisticRegression(C=0.001, max_iter=500),
    }
    made = {}
    for name, model in models.items():
        p = model.fit(x[:TRAINED], y[:TRAINED]).predict_proba(x[TRAINED:])
        for score in ("lac", "aps_deterministic"):
            own = np.asarray(confide.class_score(p, y[TRAINED:], score))
            made[f"{name} {score}"] = Offer(own, confide.all_scores(p, score))
    return made


def rows() -> Iterator[str]:
    """Sizes relative to the best of each draw; every threshold is private except in the choice without noise."""
    every, rng = offers(), np.random.default_rng(1)
    names = list(every)
    total = len(every[names[0]].own)
    heads = ["n", "epsilon", "chosen", "no noise", "first", "at random", "worst", "coverage, chosen", "coverage, first"]
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    for n in SIZES:
        for epsilon in EPSILONS:
            found = []
            for _ in range(DRAWS):
                order = rng.permutation(total)
                held, new = order[:n], order[n:]
                found.append(measured(every, names, held, new, epsilon))
            cells = np.mean(found, axis=0)
            sizes, covered = [f"{value:.3f}" for value in cells[:5]], [f"{value:.4f}" for value in cells[5:]]
            yield f"| {n} | {epsilon:g} | {' | '.join([*sizes, *covered])} |"


def measured(every: dict[str, Offer], names: list[str], held: NDArray, new: NDArray, epsilon: float) -> list[float]:
    """Ratios of mean sizes, and coverages, for one draw."""

    def released(name: str, rows: NDArray[np.int64], loss: float) -> tuple[float, float]:
        score = name.rsplit(" ", 1)[1]
        threshold = confide.calibrate(every[name].own[rows], ALPHA, loss, score=score, n_typical=1000).threshold
        return (every[name].every[new] <= threshold).sum(axis=1).mean(), (every[name].own[new] <= threshold).mean()

    def chosen(loss: float) -> tuple[float, float]:
        scores = {name: confide.scores.NamedScores.of(every[name].own[held], name.rsplit(" ", 1)[1]) for name in names}
        sizes = {name: every[name].every[held] for name in names}
        choice = confide.choose_score(scores, ALPHA, loss, sizes=sizes)
        return released(choice.name, held[choice.rest], epsilon)

    whole = [released(name, held, epsilon) for name in names]
    every_size = [size for size, _ in whole]
    best = min(every_size)
    private, plain = chosen(epsilon), chosen(1e5)
    compared = [private[0], plain[0], every_size[0], float(np.mean(every_size)), max(every_size)]
    return [*(size / best for size in compared), private[1], whole[0][1]]


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore", confide.CoverageWarning)
    for row in rows():
        print(row, flush=True)


if __name__ == "__main__":
    main()
