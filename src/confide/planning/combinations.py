"""What goes with what in a request, as data: the one place where it is said, for every way to ask.

Whoever asks, by arguments, by options of a command line or by a plan, has its combinations refused by these tables; the
documentation prints them (docs/inside.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from confide.errors import InputError
from confide.mechanisms import MECHANISMS, MechanismName

CONCENTRATED: tuple[MechanismName, ...] = ("pcoqs", "pcoqs-published")
"""Methods that have zCDP and no pure epsilon: they are asked for by rho."""

DEFAULTS: Mapping[str, Any] = {
    "neighbors": "add_remove", "n_min": 1, "records_per_person": 1, "mechanism": "slopes", "bound": 1.0,
}  # fmt: skip
"""What an argument is if it is left out, where that is not None."""

_PUBLISHED = tuple(name for name in MECHANISMS if name != "slopes")
_OF_PUBLIC_SIZE = ("none", "pps-laplace", *CONCENTRATED)
_DISJOINT = ("group", "class")


@dataclass(frozen=True)
class Combination:
    """Where one argument is given, or has one of some values, others must be left out, or be one of some values.

    Parameters
    ----------
    given
        The argument that it depends on.
    values
        Its values that matter; none: whatever is given.
    others
        The arguments that do not go with it.
    allowed
        What they may be, besides left out.
    because
        Why, with `{value}` for the value of `given`, and `{found}` for what is refused.
    said
        What the others must be, where it is told shorter than by a list.
    """

    given: str
    values: tuple[Any, ...]
    others: tuple[str, ...]
    because: str
    allowed: tuple[Any, ...] = ()
    said: str = ""

    @property
    def must(self) -> str:
        """What the others must be, in words."""
        return self.said or " or ".join(map(repr, self.allowed)) or "left out"

    def as_row(self) -> str:
        """A row of the table of the documentation."""
        with_value = f"`{self.given}`" + (f" {', '.join(map(repr, self.values))}" if self.values else "")
        others = ", ".join(f"`{name}`" for name in self.others)
        because = self.because.format(value="...", found="...")
        return f"| {others} | with {with_value} | {self.must} | {because} |"

    def clash(self, asked: Mapping[str, Any]) -> str | None:
        """The first of the others that does not go with what is given."""
        value = asked.get(self.given)
        if not _is_given(self.given, value) or (self.values and value not in self.values):
            return None
        for name in self.others:
            other = asked.get(name, DEFAULTS.get(name))
            if self.allowed:
                if other is not None and other not in self.allowed:
                    return name
            elif _is_given(name, other):
                return name
        return None


COMBINATIONS = (
    Combination("mechanism", tuple(n for n in _PUBLISHED if n not in CONCENTRATED), ("rho",),
                "with mechanism={value!r}; it belongs to mechanism='slopes'"),
    Combination("mechanism", _PUBLISHED, ("delta", "selector", "slopes", "rise", "shift"),
                "with mechanism={value!r}; it belongs to mechanism='slopes'"),
    Combination("mechanism", _OF_PUBLIC_SIZE[1:], ("neighbors",),
                "for mechanism={value!r}: the rank that it aims at depends on n, which must be public",
                ("replace_one",)),
    Combination("mechanism", ("none",), ("epsilon",), "with mechanism='none', which is not private"),
    Combination("population", (), ("mechanism",), "with weights: {found!r} counts all records alike",
                ("slopes",)),
    Combination("population", (), ("neighbors",),
                "with weights: a replaced record changes the total weight, which stays secret; the release states the "
                "loss of replacing one besides, twice that of adding one",
                ("add_remove",)),
    Combination("population", (), ("n_min",),
                "with weights: they may make any number of records count for nothing, and the promise holds for every "
                "number"),
    Combination("population", (), ("delta",),
                "with weights: the promise about a shifted population is one on average"),
    Combination("population", (), ("shift",),
                "with weights: of a target that was not computed, nothing is promised about a shifted population"),
    Combination("rho", (), ("selector",),
                "with rho: permute-and-flip has no better zCDP bound", ("exponential",)),
    Combination("n_typical", ("noisy",), ("shift",), "with n_typical={value!r}, which decides the target"),
    Combination("n_typical", ("noisy",), ("population",),
                "with n_typical={value!r}: of records with weights a guess is needed"),
    Combination("n_typical", ("noisy",), ("mechanism",),
                "with n_typical={value!r}: no other mechanism is designed for a noisy number of records",
                ("slopes",)),
    Combination("delta", (), ("shift",), "with delta: a training-conditional target is computed"),
    Combination("by", _DISJOINT, ("population",),
                "with groups or classes of their own, which keep their promise under every shift of shares"),
    Combination("by", ("level",), ("population",),
                "with several levels: weights belong to one threshold for one population"),
    Combination("by", ("side",), ("population",),
                "with two sides: weights belong to one threshold for one population"),
    Combination("by", _DISJOINT, ("mechanism",),
                "with groups or classes: their sizes stay secret, and {found!r} needs them",
                tuple(name for name in MECHANISMS if name not in _OF_PUBLIC_SIZE),
                "one for a secret number of records"),
    Combination("by", _DISJOINT, ("shares",),
                "with groups or classes: each record is in one of them, which has all of the loss"),
    Combination("by", _DISJOINT, ("n",), "with groups or classes: their sizes stay secret"),
    Combination("by", ("level", "side", *_DISJOINT), ("loss",),
                "with several thresholds: a loss is bounded at one"),
    Combination("loss", (), ("unit",), "with a loss: its thresholds have a scale of their own"),
    Combination("renews", (), ("alpha", "by", "names", "shares", "loss", "bound", "population", "score", "classes",
                               "unit", "neighbors", "records_per_person", "n_min", "delta", "selector", "mechanism"),
                "with an earlier release, which states it"),
)  # fmt: skip
"""Which arguments do not go together, and why."""

ALONE = (
    ("shares", "by", "for one threshold, which has all of the loss"),
    ("names", "by", "without by: they are the names of groups or classes"),
    ("bound", "loss", "without loss: it is the largest value of one"),
    ("cold", "renews", "without an earlier release"),
)
"""Arguments that mean nothing without another, and why."""

TOGETHER = (
    ("ledger", "dataset", "whose budget is charged, and where"),
    ("by", "groups", "a column, and the public list of its values"),
    ("groups", "group_names", "each record's group, and all there are"),
    ("class_weights", "labels", "a weight per class, and each record's class"),
    ("weights", "weight_bound", "a weight per record, and a public bound of all"),
)
"""Arguments of which both are given, or none, and what they are."""


def refuse_combinations(asked: Mapping[str, Any]) -> None:
    """Refuse arguments that do not go together.

    Raises
    ------
    InputError
        Naming the one that has to go or to change, and why.

    Examples
    --------
    >>> refuse_combinations({"delta": 0.1, "shift": 3.0})
    Traceback (most recent call last):
        ...
    confide.errors.InputError: shift: must be left out with delta: a training-conditional target is computed
    """
    for one in COMBINATIONS:
        if (name := one.clash(asked)) is not None:
            found = asked.get(name, DEFAULTS.get(name))
            raise InputError(name, f"must be {one.must} {one.because.format(value=asked[one.given], found=found)}")
    for name, other, why in ALONE:
        if _is_given(name, asked.get(name)) and not _is_given(other, asked.get(other)):
            raise InputError(name, f"must be left out {why}")


def refuse_halves(**given: object) -> None:
    """Refuse one of two arguments that belong together without the other; those not named here are not looked at.

    Examples
    --------
    >>> refuse_halves(by="ward", groups=None)
    Traceback (most recent call last):
        ...
    confide.errors.InputError: by: by and groups must be given together: a column, and the public list of its values
    """
    for one, other, what in TOGETHER:
        if one in given and other in given and (given[one] is None) != (given[other] is None):
            raise InputError(one, f"{one} and {other} must be given together: {what}")


def _is_given(name: str, value: Any) -> bool:
    if value is None or (isinstance(value, tuple | list | bool) and not value):
        return False
    return np.ndim(value) > 0 or value != DEFAULTS.get(name)


# Numbers that are allowed, and that are mostly typed by mistake: what a reader of another library would mean by them.
#
# Every front says the same of them, before anything is drawn: they are read off the request, never off the records.

_SMALL_DELTA = 0.001


def unusual(alpha: Fraction | None, delta: float | None = None) -> tuple[str, ...]:
    """What is to be said of a level (None where it is of no coverage) and a failure probability; empty if nothing is.

    Examples
    --------
    >>> unusual(Fraction(1, 10), 0.05)
    ()
    >>> unusual(Fraction(9, 10))
    ('alpha=0.9 is the share of new records that may be missed: coverage of only 0.1 is promised. For coverage of ...',)
    """
    found = []
    if alpha is not None and alpha > Fraction(1, 2):
        kept = 1 - alpha
        found.append(
            f"alpha={float(alpha):g} is the share of new records that may be missed: coverage of only "
            f"{float(kept):g} is promised. For coverage of {float(alpha):g} write alpha={float(kept):g}"
        )
    if delta is not None and delta < _SMALL_DELTA:
        found.append(
            f"delta={delta:g} is the chance that this calibration covers less than promised. It is not the delta of "
            "differential privacy, which is 0 here. Common values are 0.05 and 0.1; smaller ones make sets larger"
        )
    return tuple(found)
