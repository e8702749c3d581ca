"""What a release costs: neighbouring relations, the loss in every unit, and the statement that goes with a release."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from confide.errors import InputError
from confide.mechanisms.interface import Mechanism
from confide.selection import Selector, zcdp_of_range
from confide.support import decimal_text, float_above

Neighbors: TypeAlias = Literal["add_remove", "replace_one"]
"""`add_remove`: one record more or less, n stays secret. `replace_one`: one record changed, n is public."""

WEAK = 10.0
"""A loss above this is called what it is."""

NEIGHBORS: tuple[Neighbors, ...] = ("add_remove", "replace_one")


@dataclass(frozen=True)
class PrivacyStatement:
    """The privacy loss of one release, in all units.

    Parameters
    ----------
    neighbors
        The relation under which `epsilon` is stated.
    epsilon
        Loss for one person who owns up to `records_per_person` records; 0 if the data were not touched, infinite if
        the release has no pure epsilon: not private at all, or, with a `rho`, zero-concentrated privacy only.
    records_per_person
        Public bound on the number of records that one person owns.
    add_remove
        Loss when one record is added or removed; None if n is public, for then n itself tells.
    replace_one
        Loss when one record is replaced by another.
    rho
        zCDP loss per person under `neighbors`: of the exponential mechanism (`zcdp_of_range`), and of one that has
        nothing else; else None.
    claimed
        Loss per person that a published analysis states, where it differs from the proven `epsilon`; else None.

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

        Returns infinity for `add_remove` when n is public.
        """
        one = self.add_remove if (neighbors or self.neighbors) == "add_remove" else self.replace_one
        return float("inf") if one is None else records * one

    @property
    def concentrated_only(self) -> bool:
        """Whether the release is private in the sense of zCDP alone: no pure epsilon bounds its loss.

        Examples
        --------
        >>> PrivacyStatement("replace_one", float("inf"), 1, None, float("inf"), 0.5).concentrated_only
        True
        """
        return math.isinf(self.epsilon) and self.rho is not None and not math.isinf(self.rho)

    @property
    def weak(self) -> str:
        """What an epsilon above 10 means, in a sentence; empty if it is smaller."""
        return practically_none(self.epsilon)

    @property
    def brief(self) -> str:
        """The loss in a few words.

        Examples
        --------
        >>> PrivacyStatement("replace_one", 1.0, 2, None, 0.5, None).brief
        'epsilon 1 (replace_one, 2 records per person)'
        """
        if math.isinf(self.epsilon) and not self.concentrated_only:
            return "NOT PRIVATE"
        several = f", {self.records_per_person} records per person" if self.records_per_person > 1 else ""
        loss = f"epsilon {decimal_text(self.epsilon)}"
        if self.concentrated_only and self.rho is not None:
            loss = f"rho {decimal_text(self.rho)}, no epsilon"
        return f"{loss} ({self.neighbors}{several})"

    def __str__(self) -> str:
        if math.isinf(self.epsilon) and not self.concentrated_only:
            return "NOT PRIVATE: the threshold is a function of the records without any noise"
        unit = "one record" if self.records_per_person == 1 else f"up to {self.records_per_person} records of a person"
        verb = "adding or removing" if self.neighbors == "add_remove" else "replacing"
        if self.concentrated_only and self.rho is not None:
            return f"{decimal_text(self.rho)}-zCDP for {verb} {unit}; NO PURE EPSILON"
        zcdp = "" if self.rho is None else f" and {decimal_text(self.rho)}-zCDP"
        paper = "" if self.claimed is None else f" (the published analysis states {decimal_text(self.claimed)})"
        weak = f"; {self.weak}" if self.weak else ""
        return f"{decimal_text(self.epsilon)}-differential privacy{zcdp} for {verb} {unit}{paper}{weak}"


def practically_none(epsilon: float) -> str:
    """What it means that a loss is above 10, in a sentence without its full stop; empty for other losses.

    Examples
    --------
    >>> practically_none(12.0)
    'practically no protection: what is released may change the odds of a statement about a person e^12 = 162,755 fold'
    >>> practically_none(10.0), practically_none(float("inf"))
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
    mechanism: Mechanism | None, neighbors: Neighbors, records_per_person: int, selector: Selector = "permute_and_flip"
) -> PrivacyStatement:
    """The statement for one run of a mechanism, from its own privacy map; without one nothing is spent."""
    if mechanism is None:
        rho = 0.0 if selector == "exponential" else None
        return PrivacyStatement(neighbors, 0.0, records_per_person, None, 0.0, rho)
    per_record = mechanism.add_remove if neighbors == "add_remove" else mechanism.replace_one
    if per_record is None:
        raise InputError(
            f"neighbors must be 'replace_one' for mechanism={mechanism.name!r}: it uses n, which is public"
        )
    if math.isinf(per_record):
        # Records that change together change a count by as many: zCDP grows with their square.
        rho = None if mechanism.zcdp is None else float_above(records_per_person**2 * Fraction(mechanism.zcdp))
        return PrivacyStatement(neighbors, math.inf, records_per_person, None, math.inf, rho)
    epsilon = float_above(records_per_person * Fraction(per_record))
    return PrivacyStatement(
        neighbors=neighbors,
        epsilon=epsilon,
        records_per_person=records_per_person,
        add_remove=mechanism.add_remove if neighbors == "add_remove" else None,
        replace_one=mechanism.replace_one,
        rho=zcdp_of_range(epsilon) if mechanism.bounded_range else None,
        claimed=None if mechanism.claimed is None else records_per_person * mechanism.claimed,
    )
