"""The papers by number: every statement with content to compute, as a function that says its number.

One module a paper; in comes what a statement speaks of (n, alpha, epsilon, bins), out go bounds, levels and tails.
docs/papers.md lists every numbered item of every paper with its function, its test and its figure.

private_prediction_sets.py     Angelopoulos, Bates, Zrnic and Jordan, versions 2 and 3 (exponential mechanism)
private_prediction_sets_v1.py  the same, version 1 (noisy histogram)
opendp_quantile.py             Shoemate, Covington and Globus-Harris: the note on OpenDP's quantile scores
one_shot_federated.py          Humbert, Le Bars, Bellet and Arlot, ICML 2023
pcoqs.py                       Romanus and Molinari, TMLR: the law of its program's answer
rob_fcp.py                     Kang, Lin, Sun, Xiao and Li, ICML 2024: the certificate of its program
checked.py                     checks of the numbers that all of them take
"""

from confide.papers import (
    one_shot_federated,
    opendp_quantile,
    pcoqs,
    private_prediction_sets,
    private_prediction_sets_v1,
    rob_fcp,
)

__all__ = [
    "one_shot_federated",
    "opendp_quantile",
    "pcoqs",
    "private_prediction_sets",
    "private_prediction_sets_v1",
    "rob_fcp",
]


def __dir__() -> list[str]:
    return sorted(__all__)
