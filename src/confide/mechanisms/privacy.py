"""Privacy statements of releases: adjacency, the privacy loss in every unit, and composition."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeAlias

from confide.errors import InputError
from confide.mechanisms.interface import Mechanism
from confide.mechanisms.noisy_size import size_zcdp
from confide.selection import zcdp_of_range
from confide.support import decimal_text, float_above, float_below

# `add_remove`: one record more or less, n stays secret. `replace_one`: one record changed, n is public.
Neighbors: TypeAlias = Literal["add_remove", "replace_one"]

# An epsilon above this is reported as practically no protection.
WEAK = 10.0

NEIGHBORS: tuple[Neighbors, ...] = ("add_remove", "replace_one")


@dataclass(frozen=True)
class PrivacyStatement:
    """The privacy loss of one release, in all units.

    Parameters
    ----------
    neighbors
        The adjacency under which `epsilon` is stated.
    epsilon
        Loss for one person who owns up to `records_per_person` records. 0 if the data were not used. Infinite if the
        release has no pure epsilon: it is not private at all, or, with a `rho`, it has zCDP only.
    records_per_person
        Public bound on the number of records that one person owns.
    add_remove
        Loss when one record is added or removed; None if n is public, because then n itself reveals it.
    replace_one
        Loss when one record is replaced by another.
    rho
        zCDP loss per person under `neighbors`; None if no such loss is known. It follows from the range of the
        logarithms of the ratios of probabilities (`zcdp_of_range`).
    claimed
        Loss per person that a published analysis states, if it differs from the proven `epsilon`; else None.

    Examples
    --------
    >>> PrivacyStatement("replace_one", 1.0, 1, None, 1.0, None).loss("replace_one", records=3)
    3.0
    """

    neighbors: Neighbors
    epsilon: float
    records_per_person: int
    add_remove: float | None
    replace_one: float
    rho: float | None
    claimed: float | None = None

    def loss(self, neighbors: Neighbors | None = None, records: int = 1) -> float:
        """Loss when up to `records` records change at once (group privacy: `records` times the loss of one).

        Infinite for `add_remove` when n is public.
        """
        per_record = self.add_remove if (neighbors or self.neighbors) == "add_remove" else self.replace_one
        return float("inf") if per_record is None else records * per_record

    @property
    def concentrated_only(self) -> bool:
        """Whether the release has a zCDP loss but no pure epsilon."""
        return math.isinf(self.epsilon) and self.rho is not None and not math.isinf(self.rho)

    @property
    def is_private(self) -> bool:
        """Whether the privacy loss is bounded, at least in the sense of zCDP."""
        return not math.isinf(self.epsilon) or self.concentrated_only

    @property
    def weak(self) -> str:
        """The meaning of an epsilon above 10, in a sentence; empty if it is smaller."""
        return weak_privacy_text(self.epsilon)

    @property
    def brief(self) -> str:
        """The loss in a few words.

        Examples
        --------
        >>> PrivacyStatement("replace_one", 1.0, 2, None, 0.5, None).brief
        'epsilon 1 (replace_one, 2 records per person)'
        """
        if not self.is_private:
            return "NOT PRIVATE"
        several = f", {self.records_per_person} records per person" if self.records_per_person > 1 else ""
        loss = f"epsilon {decimal_text(self.epsilon)}"
        if self.concentrated_only and self.rho is not None:
            loss = f"rho {decimal_text(self.rho)}, no epsilon"
        return f"{loss} ({self.neighbors}{several})"

    def __str__(self) -> str:
        if not self.is_private:
            return "NOT PRIVATE: the threshold is a function of the records without any noise"
        unit = "one record" if self.records_per_person == 1 else f"up to {self.records_per_person} records of a person"
        verb = "adding or removing" if self.neighbors == "add_remove" else "replacing"
        if self.concentrated_only and self.rho is not None:
            return f"{decimal_text(self.rho)}-zCDP for {verb} {unit}; NO PURE EPSILON"
        zcdp = "" if self.rho is None else f" and {decimal_text(self.rho)}-zCDP"
        paper = "" if self.claimed is None else f" (the published analysis states {decimal_text(self.claimed)})"
        weak = f"; {self.weak}" if self.weak else ""
        return f"{decimal_text(self.epsilon)}-differential privacy{zcdp} for {verb} {unit}{paper}{weak}"


def weak_privacy_text(epsilon: float) -> str:
    """The meaning of a privacy loss above 10, in a sentence without full stop; empty for other losses.

    Examples
    --------
    >>> weak_privacy_text(12.0)
    'practically no protection: what is released may change the odds of a statement about a person e^12 = 162,755 fold'
    >>> weak_privacy_text(10.0), weak_privacy_text(float("inf"))
    ('', '')
    """
    if not WEAK < epsilon < math.inf:
        return ""
    known = f" = {math.exp(epsilon):,.0f}" if epsilon <= 20 else ""
    return (
        "practically no protection: what is released may change the odds of a statement about a person "
        f"e^{decimal_text(epsilon)}{known} fold"
    )


def privacy_statement(
    mechanism: Mechanism | None,
    neighbors: Neighbors,
    records_per_person: int,
    size: float | None = None,
) -> PrivacyStatement:
    """The statement for one run of a mechanism, from its privacy map. Without a mechanism the loss is 0.

    `size` is the scale of the noise of a noisy number of records that was released first; its privacy loss is added.
    """
    alone = _statement(mechanism, neighbors, records_per_person)
    if size is None:
        return alone
    of_number = 1 / Fraction(size)
    both = Fraction(alone.add_remove or 0.0) + of_number
    epsilon, added = float_above(records_per_person * both), float_above(both)
    rho = None if alone.rho is None else float_above(Fraction(alone.rho) + size_zcdp(size, records_per_person))
    return replace(alone, epsilon=epsilon, add_remove=added, rho=rho)


def _statement(mechanism: Mechanism | None, neighbors: Neighbors, records_per_person: int) -> PrivacyStatement:
    if mechanism is None:
        return PrivacyStatement(neighbors, 0.0, records_per_person, None, 0.0, 0.0)
    # The privacy map for one record, and group privacy for all records of a person.
    per_record = mechanism.add_remove if neighbors == "add_remove" else mechanism.replace_one
    if per_record is None:
        raise InputError(
            "neighbors", f"must be 'replace_one' for mechanism={mechanism.name!r}, which uses the public n"
        )
    if math.isinf(per_record):
        return PrivacyStatement(neighbors, math.inf, records_per_person, None, math.inf, None)
    epsilon = float_above(records_per_person * Fraction(per_record))
    return PrivacyStatement(
        neighbors=neighbors,
        epsilon=epsilon,
        records_per_person=records_per_person,
        add_remove=mechanism.add_remove if neighbors == "add_remove" else None,
        replace_one=mechanism.replace_one,
        rho=zcdp_of_range(mechanism.range_factor * Fraction(epsilon)),
        claimed=None if mechanism.claimed is None else records_per_person * mechanism.claimed,
    )


def with_choice(alone: PrivacyStatement, per_record: float | None) -> PrivacyStatement:
    """The loss of a threshold together with a choice on other records, whose loss is `per_record` (Theorem S1).

    A record is in one of the two shares, so that the larger loss counts. To replace one is to remove and to add one.
    """
    if per_record is None:
        return alone
    chosen = alone.records_per_person * Fraction(per_record)
    added = max(alone.add_remove or 0.0, per_record)
    return replace(
        alone,
        epsilon=max(alone.epsilon, float_above(chosen)),
        add_remove=added,
        replace_one=max(alone.replace_one, float_above(2 * Fraction(added))),
        rho=None if alone.rho is None else max(alone.rho, zcdp_of_range(chosen)),
    )


# Composition of several releases: sequential on the same records, or parallel on disjoint groups.


def sequential_composition(parts: Sequence[PrivacyStatement]) -> PrivacyStatement:
    """The loss of releases on the same records: epsilons add up (basic composition), and so do zCDP losses."""
    first = _alike(parts)
    rhos, added = [p.rho for p in parts], [p.add_remove for p in parts]
    return replace(
        first,
        epsilon=sum_rounded_up([p.epsilon for p in parts]),
        add_remove=None if None in added else sum_rounded_up([a for a in added if a is not None]),
        replace_one=sum_rounded_up([p.replace_one for p in parts]),
        rho=None if None in rhos else sum_rounded_up([r for r in rhos if r is not None]),
        claimed=sum_rounded_up(_claimed(parts)) if _claimed(parts) else None,
    )


def parallel_composition(
    parts: Sequence[PrivacyStatement], neighbors: Neighbors, *, sized: bool = False
) -> PrivacyStatement:
    """The loss of releases on disjoint groups whose sizes are secret (docs/theory.md, Proposition P5).

    Adding or removing a record affects one group, so the largest loss counts. Replacing a record can move it from one
    group to another. Then the two largest losses add up; if the record stays, the group's own `replace_one` counts. For
    zCDP, which is convex in the range, the worst case is also that all records of a person act in the same way. `parts`
    are under `add_remove`, one per group. `neighbors` is the adjacency of the total. `sized` states that they include
    noisy numbers of records, whose zCDP losses do not follow from a range.
    """
    first = _alike(parts)
    records = first.records_per_person

    # The pure loss, of one record and of all records of a person.
    losses = sorted((math.inf if p.add_remove is None else p.add_remove for p in parts), reverse=True)
    moved = sum_rounded_up(losses[:2])
    replaced = max(moved, *(p.replace_one for p in parts))
    per_record = losses[0] if neighbors == "add_remove" else replaced
    epsilon = sum_rounded_up([per_record] * records)

    # The zCDP loss: from the ranges of all groups that a change affects, or as the sum of the stated losses.
    rho = None
    if all(p.rho is not None for p in parts):
        alone = max(p.replace_one for p in parts)
        changes = [losses[:1]] if neighbors == "add_remove" else [losses[:2], [alone]]
        rho = max(
            zcdp_of_range(*(loss if math.isinf(loss) else records * Fraction(loss) for loss in change))
            for change in changes
        )
        if sized:
            stated = sorted((p.rho for p in parts if p.rho is not None), reverse=True)
            stays = [] if neighbors == "add_remove" else [zcdp_of_range(records * Fraction(alone))]
            rho = max([sum_rounded_up(stated[: 1 if neighbors == "add_remove" else 2]), *stays])
    published = sorted(_claimed(parts), reverse=True)[: 1 if neighbors == "add_remove" else 2]
    return replace(
        first,
        neighbors=neighbors,
        epsilon=epsilon,
        add_remove=losses[0],
        replace_one=replaced,
        rho=rho,
        claimed=sum_rounded_up(published) if published else None,
    )


def split_epsilon(epsilon: float, shares: Sequence[Fraction]) -> list[float]:
    """Floats in proportion to `shares`, which sum to one. The exact sum of the floats is at most epsilon."""
    return [float_below(Fraction(epsilon) * share) for share in shares]


def sum_rounded_up(values: Sequence[float]) -> float:
    """The sum, never below the exact one."""
    if any(math.isinf(value) for value in values):
        return math.inf
    return float_above(sum(map(Fraction, values), Fraction(0)))


def _claimed(parts: Sequence[PrivacyStatement]) -> list[float]:
    """The published loss of each part, or its proven one; empty if no part has a published loss."""
    if all(p.claimed is None for p in parts):
        return []
    return [p.epsilon if p.claimed is None else p.claimed for p in parts]


def _alike(parts: Sequence[PrivacyStatement]) -> PrivacyStatement:
    if not parts:
        raise InputError("parts", "must not be empty")
    if len({(p.neighbors, p.records_per_person) for p in parts}) != 1:
        raise InputError("parts", "must state the same neighbors and records_per_person", got="different ones")
    return parts[0]
