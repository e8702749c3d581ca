"""Speed of `confide.calibrate` against numpy's quantiles in the same run, and of `import confide` against numpy's.

    python -m benchmarks.calibrate

Times are the best of several runs. Limits: 10**7 scores cost at most 8 times numpy's partition quantile; `import
confide` costs at most 1.5 times `import numpy`. The exit code is 1 if one is missed.
"""

import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import confide
from benchmarks.small import SMALL, small

ALPHA, EPSILON = 0.1, 1.0
IMPORT_LIMIT = 1.5
LIMIT = 8.0


def best_of(repeats: int, *calls: Callable[[], object]) -> list[float]:
    """The least time of each call in seconds; the calls alternate, so that all have the same conditions."""
    times = [math.inf] * len(calls)
    for _ in range(repeats):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call()
            times[i] = min(times[i], time.perf_counter() - start)
    return times


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
        times = best_of(
            repeats,
            release,
            lambda scores=scores: partition_quantile(scores),
            lambda scores=scores: np.quantile(scores, 1 - ALPHA, method="higher"),
        )
        ratio = times[0] / times[1]
        missed = n >= 10**7 and ratio > LIMIT
        kept &= not missed
        cells = [name, str(candidates.size), *(f"{1e3 * t:.1f}" for t in times), f"{ratio:.2f}"]
        print(f"| {' | '.join(cells)} |{f' MISSED the limit {LIMIT:g}' if missed else ''}")
    return kept


def import_seconds(module: str, compiled: str) -> float:
    """Processor time of one import, in a fresh interpreter, of modules already compiled into the folder `compiled`."""
    program = f"import time; start = time.process_time(); import {module}; print(time.process_time() - start)"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = compiled
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def compare_imports(repeats: int) -> bool:
    """Print the cost of `import confide`; return whether the limit holds."""
    numpy, ours = math.inf, math.inf
    with tempfile.TemporaryDirectory() as compiled:
        import_seconds("confide", compiled)
        for _ in range(repeats):
            numpy = min(numpy, import_seconds("numpy", compiled))
            ours = min(ours, import_seconds("confide", compiled))
    ratio = ours / numpy
    missed = ratio > IMPORT_LIMIT
    print(f"import numpy {1e3 * numpy:.0f} ms, import confide {1e3 * ours:.0f} ms (best of {repeats})", end="")
    print(f": ratio {ratio:.2f}, limit {IMPORT_LIMIT:g}{'  MISSED' if missed else ''}")
    return not missed


def main() -> int:
    """Run everything."""
    kept = compare_imports(small(15, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", confide.CoverageWarning)
        for n in small((10**6, 10**7), (10**4,)):
            for dtype in (np.float64, np.float32):
                kept &= compare(n, dtype, repeats=small(5, 1))
    return 0 if kept or SMALL else 1  # times of the small form mean nothing


if __name__ == "__main__":
    sys.exit(main())
