"""A membership game on thresholds and on prediction sets: `python -m examples.membership [ROUNDS]`.

The attacker has the records of all other people and two possible records of one person. A fair coin decides which of
them is in the calibration data: a record that meets the threshold, or one that misses it. The attacker sees a release
and guesses. Without privacy the threshold of split conformal prediction moves from one order statistic to the next,
which identifies the record. With epsilon-differential privacy no attacker is right with a probability above
e^epsilon/(1 + e^epsilon).
"""

import math
import sys
import warnings
from collections import Counter
from functools import partial

import numpy as np

import confide

ALPHA = 0.1
OTHERS = np.concatenate([np.linspace(0.005, 0.8, 90), np.linspace(0.85, 0.99, 9)])
WORLDS = [np.append(OTHERS, 0.1), np.append(OTHERS, 0.99)]
"""The person's score decides whether the 91st smallest of 100 is 0.80 or 0.85, the worst case without privacy."""
QUERIES = np.linspace(0.005, 1.0, 200)
"""Scores of the inputs about which an attacker of the prediction sets asks."""


def split_conformal(scores):
    """The ceil((n+1)(1-alpha))-th smallest score."""
    rank = math.ceil(round((len(scores) + 1) * (1 - ALPHA), 9))
    return float(np.sort(scores)[rank - 1]) if rank <= len(scores) else math.inf


def private(scores, epsilon):
    """A threshold of `confide`."""
    candidates = confide.Candidates.unit(200)
    return confide.calibrate(scores, ALPHA, epsilon, neighbors="replace_one", candidates=candidates).threshold


def play(release, rounds, rng, queries=None):
    """The share of right guesses, after as many simulated rounds in each world; with queries only sets are seen."""

    def see(world):
        threshold = release(WORLDS[world])
        return threshold if queries is None else tuple((queries <= threshold).tolist())

    learned = [Counter(see(world) for _ in range(rounds)) for world in (0, 1)]
    right = 0
    for world in rng.integers(2, size=rounds):
        shown = see(world)
        lean = learned[1][shown] - learned[0][shown]
        right += world == (int(lean > 0) if lean else int(rng.integers(2)))
    return right / rounds


def main():
    """Print the table of docs/audit.md."""
    warnings.simplefilter("ignore", confide.CoverageWarning)  # about +inf, which is a threshold like others here
    rounds, rng = int(sys.argv[1]) if len(sys.argv) > 1 else 2000, np.random.default_rng()
    print("                 threshold  prediction sets  upper bound")
    releases = {"split conformal": (split_conformal, 1.0)}
    for epsilon in (0.5, 1.0, 2.0):
        releases[f"epsilon = {epsilon}"] = (partial(private, epsilon=epsilon), 1 / (1 + math.exp(-epsilon)))
    for name, (release, bound) in releases.items():
        games = [play(release, rounds, rng, queries) for queries in (None, QUERIES)]
        print(f"{name:<15}  {games[0]:9.1%}  {games[1]:15.1%}  {bound:11.1%}")


if __name__ == "__main__":
    main()
