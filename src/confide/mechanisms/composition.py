"""What several releases cost together: one after the other on the same records, or side by side on disjoint groups."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from confide.errors import InputError
from confide.mechanisms.privacy import Neighbors, PrivacyStatement
from confide.selection import zcdp_by_square, zcdp_of_range
from confide.support import float_above, float_below


def in_sequence(parts: Sequence[PrivacyStatement]) -> PrivacyStatement:
    """The loss of releases on the same records: everything adds up (basic composition; for rho, that of zCDP).

    Examples
    --------
    >>> one = PrivacyStatement("replace_one", 0.5, 1, None, 0.5, None)
    >>> in_sequence([one, one]).epsilon
    1.0
    """
    first = _alike(parts)
    rhos, added = [p.rho for p in parts], [p.add_remove for p in parts]
    return replace(
        first,
        epsilon=sum_up([p.epsilon for p in parts]),
        add_remove=None if None in added else sum_up([a for a in added if a is not None]),
        replace_one=sum_up([p.replace_one for p in parts]),
        rho=None if None in rhos else sum_up([r for r in rhos if r is not None]),
        claimed=sum_up(_claimed(parts)) if _claimed(parts) else None,
    )


def side_by_side(parts: Sequence[PrivacyStatement], neighbors: Neighbors) -> PrivacyStatement:
    """The loss of releases on disjoint groups whose sizes are secret (docs/theory-groups.md, Proposition 1).

    Adding or removing a record touches one group: the largest loss counts. Replacing a record can take it out of one
    group and put it into another: the two largest add up, or the record stays and the group's own `replace_one` counts.
    A person's records all doing the same is the worst case for zCDP, too, which is convex in the range.
    Statements are under `add_remove`, one per group; `neighbors` is the relation to state the total under.

    Examples
    --------
    >>> one = PrivacyStatement("add_remove", 0.5, 1, 0.5, 0.75, None)
    >>> side_by_side([one, one], "replace_one").epsilon
    1.0
    """
    first = _alike(parts)
    records = first.records_per_person
    losses = sorted((math.inf if p.add_remove is None else p.add_remove for p in parts), reverse=True)
    moved = sum_up(losses[:2])
    replaced = max(moved, *(p.replace_one for p in parts))
    one = losses[0] if neighbors == "add_remove" else replaced
    epsilon = sum_up([one] * records)
    rho = None
    if all(p.rho is not None for p in parts):
        alone = max(p.replace_one for p in parts)
        changes = [losses[:1]] if neighbors == "add_remove" else [losses[:2], [alone]]
        by_square = all(p.rho == zcdp_by_square(p.epsilon) for p in parts)  # as releases of 0.1 state it
        zcdp = zcdp_by_square if by_square else zcdp_of_range
        rho = max(zcdp(*(loss if math.isinf(loss) else records * Fraction(loss) for loss in one)) for one in changes)
    published = sorted(_claimed(parts), reverse=True)[: 1 if neighbors == "add_remove" else 2]
    return replace(
        first,
        neighbors=neighbors,
        epsilon=epsilon,
        add_remove=losses[0],
        replace_one=replaced,
        rho=rho,
        claimed=sum_up(published) if published else None,
    )


def shares_of(epsilon: float, shares: Sequence[Fraction]) -> list[float]:
    """Floats that are in proportion to `shares`, which sum to one, and whose exact sum is at most epsilon.

    Examples
    --------
    >>> shares_of(1.0, [Fraction(1, 4), Fraction(3, 4)])
    [0.25, 0.75]
    """
    return [float_below(Fraction(epsilon) * share) for share in shares]


def sum_up(values: Sequence[float]) -> float:
    """The sum, never below the exact one.

    Examples
    --------
    >>> sum_up([0.25, 0.5])
    0.75
    """
    if any(math.isinf(value) for value in values):
        return math.inf
    return float_above(sum(map(Fraction, values), Fraction(0)))


def _claimed(parts: Sequence[PrivacyStatement]) -> list[float]:
    """What published analyses state of each part, or its own loss; empty if none states another one."""
    if all(p.claimed is None for p in parts):
        return []
    return [p.epsilon if p.claimed is None else p.claimed for p in parts]


def _alike(parts: Sequence[PrivacyStatement]) -> PrivacyStatement:
    if not parts:
        raise InputError("parts must not be empty; found no release to compose")
    if len({(p.neighbors, p.records_per_person) for p in parts}) != 1:
        raise InputError("parts must state the same neighbours and records_per_person; found different ones")
    return parts[0]
