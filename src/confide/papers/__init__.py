"""Statements of the published papers, each as a function that names the number of its statement.

Each module names its paper. Functions take the quantities of a statement (n, alpha, epsilon, bins) and return
bounds, levels and tail probabilities. docs/papers.md lists every numbered item of every paper with its function, its
test and its figure.

private_prediction_sets.py     Angelopoulos, Bates, Zrnic and Jordan, versions 2 and 3 (exponential mechanism)
private_prediction_sets_v1.py  the same, version 1 (noisy histogram)
opendp_quantile.py             Shoemate, Covington and Globus-Harris: the note on OpenDP's quantile scores
fedcp_qq.py                    FedCP-QQ and FedCP-Avg of the next, as functions of arrays
one_shot_federated.py          Humbert, Le Bars, Bellet and Arlot, ICML 2023
different_silos.py             Section 3.5 of the same, silos with different distributions
shuffling.py                   Feldman, McMillan and Talwar, FOCS 2021: amplification by shuffling
checked.py                     checks of numeric arguments
"""

from confide.papers import (
    different_silos,
    fedcp_qq,
    one_shot_federated,
    opendp_quantile,
    private_prediction_sets,
    private_prediction_sets_v1,
    shuffling,
)

__all__ = [
    "different_silos", "fedcp_qq", "one_shot_federated", "opendp_quantile", "private_prediction_sets",
    "private_prediction_sets_v1", "shuffling",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
