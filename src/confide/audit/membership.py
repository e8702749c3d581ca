"""What an attacker learns about one person: a membership-inference game on thresholds and on prediction sets.

The attacker knows the records of everybody else and both things that the person's record might be. A fair coin decides
whether the calibration data hold the one or the other (a record that misses the threshold, or one that meets it); the
attacker sees what is released and guesses. Without privacy the threshold of split conformal prediction moves from one
order statistic to the next, which gives the person away; with epsilon-differential privacy no attacker, however
clever, is right with probability more than e^epsilon/(1 + e^epsilon).
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
    """The result of a membership-inference game.

    Parameters
    ----------
    release
        What was released: `"threshold"` or `"prediction sets"`.
    accuracy
        Share of right guesses; 0.5 is guessing.
    interval
        Clopper-Pearson interval of the accuracy at 99 %.
    bound
        What differential privacy allows at most; 1 without it.
    """

    release: str
    accuracy: float
    interval: tuple[float, float]
    bound: float


def split_conformal(alpha: float) -> Release:
    """The threshold of split conformal prediction, without privacy: the ceil((n+1)(1-alpha))-th smallest score."""

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
    """Play the game: half of the rounds teach the attacker what each world looks like, half are guessed.

    Parameters
    ----------
    release
        Scores to a threshold.
    others
        The scores that the attacker knows.
    low, high
        The two scores that the person may have.
    rounds
        Rounds that are guessed; as many are simulated by the attacker before, in each world.
    rng
        Tosses the coin.
    queries
        If given, only memberships of these scores in prediction sets are seen, not the threshold.
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
    """The game at n = 100 and alpha = 0.1, without and with privacy, on thresholds and on prediction sets.

    The person's record decides whether the 91st smallest score is 0.80 or 0.85: the worst case for split conformal
    prediction. The attacker of the prediction sets asks about 200 inputs.

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
        for asked in (None, queries):
            game = play(release, others, 0.1, 0.99, rounds=rounds, rng=rng, queries=asked, epsilon=loss)
            games.append((who, game))
    return games
