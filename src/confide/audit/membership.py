"""A membership-inference game on thresholds and on prediction sets, which shows what they reveal about one person.

The attacker has the records of all other people and two possible records of the person. A fair coin decides which of
them is in the calibration data: a record that misses the threshold, or one that meets it. The attacker sees the release
and guesses. Without privacy the threshold of split conformal prediction moves from one order statistic to the next,
which identifies the record. With epsilon-differential privacy no attacker is right with a probability above
e^epsilon/(1 + e^epsilon).
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from confide.audit.library import threshold
from confide.audit.subject import Scores
from confide.candidates import Candidates
from confide.planning import plan

Release = Callable[[Scores], float]


@dataclass(frozen=True)
class Game:
    """Result of a membership-inference game.

    Parameters
    ----------
    release
        The released object: `"threshold"` or `"prediction sets"`.
    accuracy
        Share of right guesses; 0.5 means guessing.
    interval
        Clopper-Pearson interval of the accuracy at 99 %.
    bound
        Largest probability of a right guess that differential privacy allows; 1 without it.
    """

    release: str
    accuracy: float
    interval: tuple[float, float]
    bound: float


def split_conformal(alpha: float) -> Release:
    """Return a release function: the ceil((n+1)(1-alpha))-th smallest score, as in split conformal prediction."""

    def release(scores: Scores) -> float:
        rank = math.ceil(round((len(scores) + 1) * (1 - alpha), 9))
        return float(np.sort(scores)[rank - 1]) if rank <= len(scores) else math.inf

    return release


def play(
    release: Release,
    others: Scores,
    low: float,
    high: float,
    *,
    rounds: int,
    rng: np.random.Generator,
    queries: Scores | None = None,
    epsilon: float | None = None,
) -> Game:
    """Play the game. Before the guesses, the attacker simulates both worlds.

    Parameters
    ----------
    release
        Function from scores to a threshold.
    others
        Known scores of the other people.
    low, high
        The two possible scores of the person.
    rounds
        Number of guesses; the attacker simulates as many rounds in each world before.
    rng
        Random generator of the coin.
    queries
        If given, the attacker sees only which of these scores are in prediction sets, and not the threshold.
    epsilon
        Claimed loss under replace-one, for the bound.
    """
    from scipy.stats import binomtest

    worlds = [np.append(others, low), np.append(others, high)]

    def see(world: int) -> object:
        threshold = release(worlds[world])
        return threshold if queries is None else tuple((queries <= threshold).tolist())

    learned = [Counter(see(world) for _ in range(rounds)) for world in (0, 1)]
    right = 0
    for _ in range(rounds):
        world = int(rng.integers(2))
        shown = see(world)
        lean = learned[1][shown] - learned[0][shown]
        right += world == (int(lean > 0) if lean else int(rng.integers(2)))
    interval = binomtest(right, rounds).proportion_ci(0.99)
    bound = 1.0 if epsilon is None else 1 / (1 + math.exp(-epsilon))
    name = "threshold" if queries is None else "prediction sets"
    return Game(name, right / rounds, (float(interval.low), float(interval.high)), bound)


def demonstrate(epsilon: float, rounds: int, rng: np.random.Generator) -> list[tuple[str, Game]]:
    """Play the game at n = 100 and alpha = 0.1, without and with privacy, on thresholds and on prediction sets.

    The person's record decides whether the 91st smallest score is 0.80 or 0.85. This is the worst case for split
    conformal prediction. The attacker of the prediction sets asks about 200 inputs.

    Examples
    --------
    >>> games = demonstrate(1.0, 50, np.random.default_rng(0))
    >>> [(who, game.release, game.accuracy) for who, game in games[:2]]
    [('split conformal', 'threshold', 1.0), ('split conformal', 'prediction sets', 1.0)]
    """
    others = np.concatenate([np.linspace(0.005, 0.8, 90), np.linspace(0.85, 0.99, 9)])
    candidates = Candidates.unit(200)
    mechanism = plan("0.1", epsilon, 100, neighbors="replace_one", candidates=200, shift=0.0).mechanism
    assert mechanism is not None
    private = partial(threshold, mechanism, candidates)
    queries = np.linspace(0.005, 1.0, 200)
    games = []
    for who, release, loss in (("split conformal", split_conformal(0.1), None), ("confide", private, epsilon)):
        for visible in (None, queries):
            game = play(release, others, 0.1, 0.99, rounds=rounds, rng=rng, queries=visible, epsilon=loss)
            games.append((who, game))
    return games
