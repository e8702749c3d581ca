"""How much the running time of the sampler tells about the data; `confide.selection.padding` hides it.

Permute-and-flip rejects candidates until one is accepted: counts that leave one good candidate take longer than counts
that leave many. Whoever can time a release learns something that the privacy guarantee does not cover.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from confide.mechanisms import Slopes


@dataclass(frozen=True)
class Timing:
    """Median seconds of the sampler on two kinds of data, and how well one run tells them apart.

    Parameters
    ----------
    fast, slow
        Median seconds on the faster and on the slower data.
    told_apart
        Area under the ROC curve of a single running time: 0.5 tells nothing, 1 everything.
    """

    fast: float
    slow: float
    told_apart: float


def measure(
    mechanism: Slopes,
    one: np.ndarray,
    other: np.ndarray,
    runs: int,
    wrap: Callable[[Callable[[], int]], int] | None = None,
) -> Timing:
    """Time the mechanism on two vectors of counts in turn.

    Parameters
    ----------
    mechanism
        What is timed.
    one, other
        Counts per bin.
    runs
        Runs on each.
    wrap
        Runs the draw, for example within `padded`; by default directly.
    """
    from scipy.stats import mannwhitneyu

    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(runs):
        for which, counts in enumerate((one, other)):
            begin = time.perf_counter()
            if wrap is None:
                mechanism.choose(counts)
            else:
                wrap(lambda counts=counts: mechanism.choose(counts))  # type: ignore[misc]
            times[which].append(time.perf_counter() - begin)
    medians = sorted(float(np.median(t)) for t in times)
    area = float(mannwhitneyu(times[0], times[1]).statistic) / runs**2
    return Timing(medians[0], medians[1], max(area, 1 - area))
