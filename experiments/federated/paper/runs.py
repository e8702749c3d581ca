"""Entry points: the exact figures, the synthetic data and concrete by default, everything on demand; both resume."""

import os
import sys

from experiments.cache import write_tables
from experiments.federated.paper import exact, pages, splits, synthetic
from experiments.federated.paper.data_sets import BY_NAME, DATA_SETS
from experiments.federated.paper.regressors import REGRESSORS

DEFAULT = ("concrete",)
LAST = (("bike", "forest"), ("bike", "network"), ("bio", "forest"), ("bio", "network"))
"""The slowest parts, which are last."""


def todo(names: tuple[str, ...] | None = None) -> list[tuple[str, str, int]]:
    """Data set, regressor and split of everything that is not there yet, cheapest first."""
    sets = [one.name for one in DATA_SETS if one.there and (names is None or one.name in names)]
    pairs = [(data, regressor) for regressor in REGRESSORS for data in sets]
    pairs.sort(key=lambda pair: LAST.index(pair) if pair in LAST else -1)
    every = [(data, regressor, seed) for data, regressor in pairs for seed in range(splits.SPLITS)]
    return [job for job in every if not splits.place(*job).exists()]


def work(names: tuple[str, ...] | None = None) -> None:
    """Make all that is missing."""
    jobs = todo(names)
    for i, job in enumerate(jobs, 1):
        splits.make(*job)
        if os.isatty(2):
            sys.stderr.write(f"\r{i} of {len(jobs)}: {job[0]}, {job[1]}, split {job[2]}   ")


def default() -> None:
    """Figures 1, 2, 3, 5, 6, 7, 16 and 17."""
    work(DEFAULT)
    concrete = BY_NAME["concrete"]
    parts = {
        "Figure 1": exact.figure_1(),
        "Figure 2": exact.figure_2(),
        "Figure 3": synthetic.study("figure3", synthetic.EQUAL),
        "Figure 5": synthetic.study("figure5", synthetic.UNEQUAL),
        "Figure 6": exact.figure_6(),
        "Figure 7": exact.figure_7(),
        "Figures 16 and 17": pages.settings([concrete]),
    }
    write_tables("federated/paper.md", "\n\n".join(f"## {name}\n\n{text}" for name, text in parts.items()))


def full() -> None:
    """Figures 4, 8 to 15 and 18."""
    work()
    write_full()


def write_full() -> None:
    """The tables of the full settings, of the splits that are there."""
    sets = [data for data in DATA_SETS if data.name not in DEFAULT]
    parts = {
        "Figure 4": pages.figure_4(),
        "Figures 8 to 15": pages.settings(sets),
        "Figure 18": pages.figure_18(),
    }
    write_tables("federated/paper.md", "\n\n".join(f"## {name}\n\n{text}" for name, text in parts.items()))
