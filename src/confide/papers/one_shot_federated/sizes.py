"""Appendix A.1: agents of unequal sizes. `confide.federated.best_qq_unequal` chooses k, by the Poisson-binomial law."""

from collections.abc import Sequence
from fractions import Fraction

from confide.errors import InputError
from confide.federated import coverage_fraction, published_ranks
from confide.papers.one_shot_federated.split_conformal import refuse_pair
from confide.support import Level, exact_level, positive_integer


def unequal_coverage_sum(sizes: Sequence[int], ranks: Sequence[int], k: int) -> Fraction:
    """Appendix A.1: M(l_1, ..., l_m, k) by the sum over subsets of agents, as a rational number.

    For up to a few hundred scores in all. `confide.federated.order_statistic_coverage` is the same as an integral.

    Raises
    ------
    InputError
        If a rank is not in 1..n_j + 1, which stands for +inf, or k not in 1..m.

    Examples
    --------
    >>> unequal_coverage_sum([2, 3], [2, 2], 1)
    Fraction(13, 30)
    """
    if len(sizes) != len(ranks):
        raise InputError(f"there must be one rank per size; found {len(ranks)} for {len(sizes)}")
    for n, l in zip(sizes, ranks, strict=True):
        refuse_pair(l, k, len(sizes), n + 1)
    return coverage_fraction(sizes, ranks, k)


def unequal_ranks(sizes: Sequence[int], alpha: Level) -> tuple[int, ...]:
    """Appendix A.1: l_j = ceil((1-alpha)(n_j+1)), of which only k is then searched; n_j + 1 stands for +inf.

    Examples
    --------
    >>> unequal_ranks([9, 99, 200], 0.1)
    (9, 90, 181)
    """
    return published_ranks([positive_integer("sizes", n) for n in sizes], 1 - exact_level("alpha", alpha))
