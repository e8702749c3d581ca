"""Valid combinations of parameters, as data, for functions, options of the command line and plans."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from confide.errors import InputError
from confide.mechanisms import MECHANISMS

# Values of omitted arguments, where they are not None.
DEFAULTS: Mapping[str, Any] = {
    "neighbors": "add_remove", "n_min": 1, "records_per_person": 1, "mechanism": "slopes", "bound": 1.0,
}  # fmt: skip

_PUBLISHED = tuple(name for name in MECHANISMS if name != "slopes")
_DISJOINT = ("group", "class")

# The mechanisms that may be requested where the number of records is secret.
_WITHOUT_N = tuple(name for name in MECHANISMS if name not in ("none", "pps-laplace"))
_ONE_WITHOUT_N = "one for a secret number of records"


@dataclass(frozen=True)
class Combination:
    """A rule: if one argument is given, or has certain values, others must be left out, or have certain values.

    Parameters
    ----------
    given, values
        The argument that the rule depends on, and the values for which the rule applies; empty: all values.
    others, allowed
        The arguments that the rule restricts, and their permitted values. One that is left out has its default.
    because
        The reason, with `{value}` for the value of `given`, and `{rejected}` for the rejected value.
    requirement
        A description of the permitted values that is shorter than a list.
    """

    given: str
    values: tuple[Any, ...]
    others: tuple[str, ...]
    because: str
    allowed: tuple[Any, ...] = ()
    requirement: str = ""

    @property
    def must(self) -> str:
        """The requirement on the others, in words."""
        return self.requirement or " or ".join(map(repr, self.allowed)) or "left out"

    def clash(self, arguments: Mapping[str, Any]) -> str | None:
        """The first of the others that violates the rule."""
        value = arguments.get(self.given)
        if not _is_given(self.given, value) or (self.values and value not in self.values):
            return None
        for name in self.others:
            other = arguments.get(name, DEFAULTS.get(name))
            if self.allowed:
                if other is not None and other not in self.allowed:
                    return name
            elif _is_given(name, other):
                return name
        return None


def _is_given(name: str, value: Any) -> bool:
    """Whether an argument has another value than its default; an array always has."""
    if isinstance(value, tuple | list):
        return bool(value)
    return value is not None and value is not False and (np.ndim(value) > 0 or value != DEFAULTS.get(name))


# Arguments that exclude each other: an argument and its values, the others, the reason, and what the others may be.
COMBINATIONS = (
    Combination("mechanism", _PUBLISHED, ("rho", "delta"),
                "with mechanism={value!r}: only mechanism='slopes' accepts it"),
    Combination("mechanism", ("noisy-histogram",), ("n_min",),
                "with mechanism={value!r}: a noisy number of records is released first, and the guarantee holds for "
                "every number"),
    Combination("mechanism", ("pps-laplace",), ("neighbors",),
                "for mechanism={value!r}: its target rank depends on n, which must be public",
                allowed=("replace_one",)),
    Combination("mechanism", ("none",), ("epsilon",), "with mechanism='none', which is not private"),
    Combination("population", (), ("mechanism",), "with weights: {rejected!r} gives all records the same weight",
                allowed=("slopes",)),
    Combination("population", (), ("neighbors",),
                "with weights: a replaced record changes the total weight, which stays secret; the release also states "
                "the privacy loss of replacing one record, twice that of adding one",
                allowed=("add_remove",)),
    Combination("population", (), ("n_min",),
                "with weights: any number of records may have weight 0, and the guarantee holds for every number"),
    Combination("population", (), ("delta",),
                "with weights: the guarantee for a shifted population is marginal"),
    Combination("by", _DISJOINT, ("population",),
                "with groups or classes: their thresholds keep their guarantee under every shift of shares"),
    Combination("by", ("level",), ("population",),
                "with several levels: weights belong to one threshold for one population"),
    Combination("by", ("side",), ("population",),
                "with two sides: weights belong to one threshold for one population"),
    Combination("by", _DISJOINT, ("mechanism",),
                "with groups or classes: their sizes stay secret, and the mechanism {rejected!r} needs them",
                allowed=_WITHOUT_N, requirement=_ONE_WITHOUT_N),
    Combination("by", _DISJOINT, ("shares",),
                "with groups or classes: each record is in one of them, which has the whole privacy budget"),
    Combination("by", _DISJOINT, ("n",), "with groups or classes: their sizes stay secret"),
    Combination("by", ("level", "side", *_DISJOINT), ("loss",),
                "with several thresholds: a loss is bounded at one threshold"),
    Combination("chosen", (), ("neighbors",),
                "with a score chosen by choose_score: a replaced record may move to the share that made the choice, "
                "and the sizes of both shares stay secret",
                allowed=("add_remove",)),
    Combination("chosen", (), ("mechanism",),
                "with a score chosen by choose_score: the number of records is secret, and the mechanism {rejected!r} "
                "needs it",
                allowed=_WITHOUT_N, requirement=_ONE_WITHOUT_N),
    Combination("chosen", (), ("by",),
                "with a score chosen by choose_score: the release states the larger loss of choice and threshold",
                allowed=_DISJOINT),
    Combination("loss", (), ("unit",), "with a bound on a loss: its candidates have a scale of their own"),
    Combination("noise", (), ("rho", "by", "loss", "population", "chosen", "unit", "n_min", "delta",
                              "records_per_person"), "with counts that another engine made"),
    Combination("noise", (), ("mechanism",), "with counts that another engine made: their noise is already drawn",
                allowed=("slopes",), requirement="left out"),
)  # fmt: skip

# Arguments that require another one, and the reasons.
REQUIREMENTS = (
    ("shares", "by", "for one threshold, which has the whole privacy budget"),
    ("names", "by", "without by: they are the names of groups or classes"),
    ("bound", "loss", "without loss: it is the largest value of the loss"),
    ("n_noise", "noise", "without noise: it belongs to counts that another engine made"),
)

# Arguments that must be given together or not at all, and their meaning.
TOGETHER = (
    ("ledger", "dataset", "the ledger, and the name of the budget that is charged"),
    ("by", "groups", "a column, and the public list of its values"),
    ("groups", "group_names", "the group of each record, and the list of all groups"),
    ("groups", "names", "the group of each record, and the public list of all groups"),
    ("class_weights", "labels", "a weight per class, and the class of each record"),
    ("weights", "weight_bound", "a weight per record, and a public bound on all weights"),
)


def check_combinations(arguments: Mapping[str, Any]) -> None:
    """Reject arguments that exclude each other; the error names the one to leave out or to change, and the reason."""
    for rule in COMBINATIONS:
        if (name := rule.clash(arguments)) is not None:
            why = rule.because.format(value=arguments[rule.given], rejected=arguments.get(name, DEFAULTS.get(name)))
            raise InputError(name, f"must be {rule.must} {why}")
    for name, other, why in REQUIREMENTS:
        if _is_given(name, arguments.get(name)) and not _is_given(other, arguments.get(other)):
            raise InputError(name, f"must be left out {why}")


def reason_against(name: str, by: str | None) -> str | None:
    """The reason for which an argument must be left out where thresholds differ by this; None if it may be given."""
    rules = (rule for rule in COMBINATIONS if rule.given == "by" and by in rule.values and not rule.allowed)
    return next((rule.because for rule in rules if name in rule.others), None)


def check_together(**given: object) -> None:
    """Raise an error if only one of two arguments is given that belong together; arguments not named are ignored."""
    for name, other, what in TOGETHER:
        if name in given and other in given and (given[name] is None) != (given[other] is None):
            raise InputError(name, f"{name} and {other} must be given together: {what}")


# Permitted numbers that are usually mistakes, because other libraries give them another meaning. All entry points
# report the same, before anything is drawn: it depends on the request, never on the records.

# A failure probability below this is reported.
_SMALL_DELTA = 0.001


def unusual(alpha: Fraction | None, delta: float | None = None) -> tuple[str, ...]:
    """Warnings about a level (None if there is no coverage) and a failure probability; empty if there are none."""
    warnings = []
    if alpha is not None and alpha > Fraction(1, 2):
        promised = 1 - alpha
        warnings.append(
            f"alpha={float(alpha):g} is the share of new records that may be missed: coverage of only "
            f"{float(promised):g} is promised. For coverage of {float(alpha):g} write alpha={float(promised):g}"
        )
    if delta is not None and delta < _SMALL_DELTA:
        warnings.append(
            f"delta={delta:g} is the chance that this calibration covers less than promised. It is not the delta of "
            "differential privacy, which is 0 here. Common values are 0.05 and 0.1; smaller ones make sets larger"
        )
    return tuple(warnings)
