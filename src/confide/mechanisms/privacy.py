"""Privacy statements of releases: the privacy loss in every unit, that of a mechanism, composition, and words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import Literal, TypeAlias

from confide.errors import InputError
from confide.mechanisms.interface import Mechanism
from confide.mechanisms.noisy_size import size_zcdp
from confide.selection import zcdp_of_range
from confide.support import Facts, decimal_text, float_above, float_below, require

# `add_remove`: one record more or less, n stays secret. `replace_one`: one record changed, n is public.
Neighbors: TypeAlias = Literal["add_remove", "replace_one"]
NEIGHBORS: tuple[Neighbors, ...] = ("add_remove", "replace_one")

# An epsilon above this is reported as practically no protection.
_WEAK = 10.0


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
    >>> PrivacyStatement("replace_one", 1.0, 1, add_remove=None, replace_one=1.0, rho=None).loss(records=3)
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
        >>> PrivacyStatement("replace_one", 1.0, 2, add_remove=None, replace_one=0.5, rho=None).brief
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
    """The meaning of a privacy loss above 10, in a sentence without full stop; empty for other losses."""
    if not _WEAK < epsilon < math.inf:
        return ""
    factor = f" = {math.exp(epsilon):,.0f}" if epsilon <= 20 else ""
    return (
        "practically no protection: what is released may change the odds of a statement about a person "
        f"e^{decimal_text(epsilon)}{factor} fold"
    )


def privacy_statement(
    mechanism: Mechanism | None, neighbors: Neighbors, records_per_person: int, size: float | None = None
) -> PrivacyStatement:
    """The statement for one run of a mechanism, from its privacy map. Without a mechanism the loss is 0.

    `size` is the scale of the noise of a noisy number of records that was released first; its privacy loss is added.
    """
    draw = _statement_of_draw(mechanism, neighbors, records_per_person)
    if size is None:
        return draw
    added = Fraction(draw.add_remove or 0.0) + 1 / Fraction(size)
    return replace(
        draw,
        epsilon=float_above(records_per_person * added),
        add_remove=float_above(added),
        rho=None if draw.rho is None else float_above(Fraction(draw.rho) + size_zcdp(size, records_per_person)),
    )


def _statement_of_draw(mechanism: Mechanism | None, neighbors: Neighbors, records: int) -> PrivacyStatement:
    # Without a mechanism the data are not used.
    if mechanism is None:
        return PrivacyStatement(neighbors, 0.0, records, add_remove=None, replace_one=0.0, rho=0.0)

    # The privacy map for one record, and group privacy for all records of a person.
    per_record = mechanism.add_remove if neighbors == "add_remove" else mechanism.replace_one
    if per_record is None:
        must = f"must be 'replace_one' for mechanism={mechanism.name!r}, which uses the public n"
        raise InputError("neighbors", must)
    if math.isinf(per_record):
        return PrivacyStatement(neighbors, math.inf, records, add_remove=None, replace_one=math.inf, rho=None)
    epsilon = float_above(records * Fraction(per_record))
    return PrivacyStatement(
        neighbors=neighbors,
        epsilon=epsilon,
        records_per_person=records,
        add_remove=mechanism.add_remove if neighbors == "add_remove" else None,
        replace_one=mechanism.replace_one,
        rho=zcdp_of_range(mechanism.range_factor * Fraction(epsilon)),
        claimed=None if mechanism.claimed is None else records * mechanism.claimed,
    )


def with_choice(threshold: PrivacyStatement, per_record: float | None) -> PrivacyStatement:
    """The loss of a threshold together with a choice on other records, whose loss is `per_record` (Theorem S1).

    A record is in one of the two shares, so that the larger loss counts. Replacing a record means removing one and
    adding another.
    """
    if per_record is None:
        return threshold
    chosen = threshold.records_per_person * Fraction(per_record)
    added = max(threshold.add_remove or 0.0, per_record)
    return replace(
        threshold,
        epsilon=max(threshold.epsilon, float_above(chosen)),
        add_remove=added,
        replace_one=max(threshold.replace_one, float_above(2 * Fraction(added))),
        rho=None if threshold.rho is None else max(threshold.rho, zcdp_of_range(chosen)),
    )


# Composition of several releases: sequential on the same records, or parallel on disjoint groups.


def sequential_composition(parts: Sequence[PrivacyStatement]) -> PrivacyStatement:
    """The loss of releases on the same records: epsilons add up (basic composition), and so do zCDP losses."""
    return replace(
        _comparable(parts),
        epsilon=sum_rounded_up([p.epsilon for p in parts]),
        add_remove=_known_sum([p.add_remove for p in parts]),
        replace_one=sum_rounded_up([p.replace_one for p in parts]),
        rho=_known_sum([p.rho for p in parts]),
        claimed=_known_sum(_claimed(parts)),
    )


def parallel_composition(
    parts: Sequence[PrivacyStatement], neighbors: Neighbors, *, sized: bool = False
) -> PrivacyStatement:
    """The loss of releases on disjoint groups whose sizes are secret (docs/theory.md, Proposition P5).

    Adding or removing a record affects one group, so the largest loss counts. Replacing a record can move it from one
    group to another. Then the two largest losses add up; if the record stays, the group's own `replace_one` counts. The
    zCDP loss is convex in the range, so its worst case is also that all records of a person act in the same way.
    `parts` are under `add_remove`, one per group. `neighbors` is the adjacency of the total. `sized` states that they
    include noisy numbers of records, whose zCDP losses do not follow from a range.
    """
    first = _comparable(parts)
    is_replaced = neighbors == "replace_one"
    affected = 2 if is_replaced else 1  # the number of groups that one record can change

    # The pure loss of one record, of all records of a person, and the published one.
    losses = sorted((math.inf if p.add_remove is None else p.add_remove for p in parts), reverse=True)
    replaced = max(sum_rounded_up(losses[:2]), *(p.replace_one for p in parts))
    per_record = replaced if is_replaced else losses[0]
    published = sorted(_claimed(parts), reverse=True)[:affected]

    # The zCDP loss: of the groups that a change affects, or of one in which a replaced record stays.
    rho = _zcdp_of_groups(parts, losses[:affected], sized)
    if rho is not None and is_replaced:
        stays = max(p.replace_one for p in parts)
        rho = max(rho, zcdp_of_range(_times(first.records_per_person, stays)))
    return replace(
        first,
        neighbors=neighbors,
        epsilon=sum_rounded_up([per_record] * first.records_per_person),
        add_remove=losses[0],
        replace_one=replaced,
        rho=rho,
        claimed=_known_sum(published),
    )


def _zcdp_of_groups(parts: Sequence[PrivacyStatement], losses: Sequence[float], sized: bool) -> float | None:
    """The zCDP loss of as many groups as there are losses, from their ranges, or as the sum of the stated ones."""
    stated = sorted((p.rho for p in parts if p.rho is not None), reverse=True)
    if len(stated) < len(parts):
        return None
    if sized:
        return sum_rounded_up(stated[: len(losses)])
    return zcdp_of_range(*(_times(parts[0].records_per_person, loss) for loss in losses))


def _comparable(parts: Sequence[PrivacyStatement]) -> PrivacyStatement:
    """The first of several statements, which all have its adjacency and its number of records per person."""
    require("parts", parts, "must not be empty")
    if len({(p.neighbors, p.records_per_person) for p in parts}) != 1:
        raise InputError("parts", "must state the same neighbors and records_per_person", got="different ones")
    return parts[0]


def _claimed(parts: Sequence[PrivacyStatement]) -> list[float]:
    """The published loss of each part, or its proven one; empty if no part has a published loss."""
    if all(p.claimed is None for p in parts):
        return []
    return [p.epsilon if p.claimed is None else p.claimed for p in parts]


def _times(records: int, loss: float) -> Fraction | float:
    return loss if math.isinf(loss) else records * Fraction(loss)


def sum_rounded_up(values: Sequence[float]) -> float:
    """The sum, never below the exact one."""
    if any(math.isinf(value) for value in values):
        return math.inf
    return float_above(sum(map(Fraction, values), Fraction(0)))


def _known_sum(values: Sequence[float | None]) -> float | None:
    """The sum; None if there are no values, or one is unknown."""
    known = [value for value in values if value is not None]
    return sum_rounded_up(known) if known and len(known) == len(values) else None


def split_epsilon(epsilon: float, shares: Sequence[Fraction]) -> list[float]:
    """Floats in proportion to `shares`, which sum to one. The exact sum of the floats is at most epsilon."""
    return [float_below(Fraction(epsilon) * share) for share in shares]


# In words, by the unit of change.


def losses(privacy: PrivacyStatement, records: int = 1) -> dict[str, float]:
    """The privacy loss if up to so many records change at once, by the change."""
    return {relation: privacy.loss(relation, records) for relation in NEIGHBORS}


def loss_facts(privacy: PrivacyStatement, *numbers: int) -> Facts:
    """The privacy loss by unit, rounded up: for each of these numbers of records, and for one."""
    rows = []
    for k in sorted({1, *numbers}):
        records = "one record" if k == 1 else f"{k} records"
        by_change = losses(privacy, k)
        for change, unit in (("add_remove", "added or removed"), ("replace_one", "replaced")):
            loss = by_change[change]
            text = _unlimited(privacy, change) if math.isinf(loss) else _rounded_up(loss)
            rows.append((f"{records} {unit}", text))
    if privacy.rho is not None and math.isfinite(privacy.rho):
        rows.append(("one person, as zCDP (rho)", _rounded_up(privacy.rho)))
    return tuple(rows)


def _unlimited(privacy: PrivacyStatement, change: str) -> str:
    if change == "add_remove" and privacy.neighbors == "replace_one":
        return "unlimited: the number is public"
    return "unlimited: zCDP alone, no epsilon" if privacy.concentrated_only else "unlimited: not private"


def _rounded_up(loss: float) -> str:
    """Format a loss with six significant digits, rounded up except for noise in its tenth digit."""
    exact = Decimal(f"{loss:.10g}")
    digits = Decimal(1).scaleb(exact.adjusted() - 5)
    return decimal_text(float((exact / digits).to_integral_value(ROUND_CEILING) * digits), 6)
