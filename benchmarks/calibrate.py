"""Speed of `confide.calibrate` against numpy's quantiles in the same run.

    python -m benchmarks.calibrate

Times are the best of several runs. 10**7 scores cost at most 8 times numpy's partition quantile; the exit code is 1 if
this limit is missed.
"""

import math
import sys
import warnings

import numpy as np
from numpy.typing import NDArray

import confide
from benchmarks.small import SMALL, small
from benchmarks.timing import shortest

ALPHA, EPSILON = 0.1, 1.0
LIMIT = 8.0


def partition_quantile(scores: NDArray[np.floating]) -> np.floating:
    """The threshold of split conformal prediction without privacy: the score of rank ceil((n+1)(1-alpha))."""
    rank = math.ceil((len(scores) + 1) * (1 - ALPHA))
    quantile: np.floating = np.partition(scores, rank - 1)[rank - 1]
    return quantile


def families() -> dict[str, tuple[confide.Candidates, str]]:
    """Candidates, and the law of suitable scores."""
    own = np.sort(np.random.default_rng(1).random(1000))
    return {
        "unit uniform": (confide.Candidates.unit(1000), "uniform"),
        "unit, in order": (confide.Candidates.unit(1000), "uniform, in order"),
        "unit logit": (confide.Candidates.unit(1000, "logit"), "uniform"),
        "residual": (confide.Candidates.spread("residual", 200), "exponential"),
        "signed": (confide.Candidates.spread("signed", 200), "normal"),
        "anything": (confide.Candidates.spread("any", 200), "normal"),
        "of (own values)": (confide.Candidates.of(own), "uniform"),
    }


def draw(law: str, n: int, dtype: type) -> NDArray[np.floating]:
    """Draw scores of a law."""
    rng = np.random.default_rng(0)
    laws = {"uniform": rng.random, "exponential": rng.standard_exponential, "normal": rng.standard_normal}
    name, *ordered = law.split(", ")
    scores = np.sort(laws[name](n)) if ordered else laws[name](n)
    converted: NDArray[np.floating] = scores.astype(dtype)
    return converted


def compare(n: int, dtype: type, repeats: int) -> bool:
    """Print one table; return whether all limits hold (they are stated for 10**7 scores)."""
    print(f"\n{n:,} scores, {np.dtype(dtype).name} (best of {repeats}):\n")
    names = ("confide ms", "partition ms", "quantile ms", "confide / partition")
    print(f"| candidates | m | {' | '.join(names)} |\n|{'---|' * (2 + len(names))}")
    kept = True
    drawn: dict[str, NDArray[np.floating]] = {}
    for name, (candidates, law) in families().items():
        scores = drawn.setdefault(law, draw(law, n, dtype))

        def release(scores: NDArray[np.floating] = scores, candidates: confide.Candidates = candidates) -> None:
            confide.calibrate(scores, ALPHA, EPSILON, candidates=candidates)

        confide.calibrate(scores[:1000], ALPHA, EPSILON, candidates=candidates)  # loads OpenDP, makes the plan
        calls = {
            "confide": release,
            "partition": lambda scores=scores: partition_quantile(scores),
            "quantile": lambda scores=scores: np.quantile(scores, 1 - ALPHA, method="higher"),
        }
        times = shortest(calls, repeats)
        ratio = times["confide"] / times["partition"]
        missed = n >= 10**7 and ratio > LIMIT
        kept &= not missed
        cells = [name, str(candidates.size), *(f"{1e3 * t:.1f}" for t in times.values()), f"{ratio:.2f}"]
        print(f"| {' | '.join(cells)} |{f' MISSED the limit {LIMIT:g}' if missed else ''}")
    return kept


def main() -> int:
    """Run everything."""
    kept = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", confide.CoverageWarning)
        for n in small((10**6, 10**7), (10**4,)):
            for dtype in (np.float64, np.float32):
                kept &= compare(n, dtype, repeats=small(5, 1))
    return 0 if kept or SMALL else 1  # times of the small form mean nothing


if __name__ == "__main__":
    sys.exit(main())
