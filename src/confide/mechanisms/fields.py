"""Mechanisms as JSON objects: a name, and the dataclass's own fields, each read by the reader of its name."""

from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from typing import Any

from confide.errors import FormatError
from confide.mechanisms.interface import MECHANISMS, Mechanism, MechanismName
from confide.mechanisms.noisy_histogram import NoisyHistogram
from confide.mechanisms.opendp_quantile import OpenDPQuantile
from confide.mechanisms.pcoqs import NoisySearch, PublishedNoisySearch
from confide.mechanisms.pps import PrivatePredictionSets
from confide.mechanisms.pps_laplace import LaplaceHistogram
from confide.mechanisms.pps_removal import PpsOfSecretSize
from confide.mechanisms.slopes import Slopes
from confide.mechanisms.split_conformal import SplitConformal
from confide.selection import SELECTORS
from confide.support import (
    MOST_CANDIDATES,
    MOST_RECORDS,
    MOST_WEIGHT,
    Fields,
    one_of,
    positive_integer,
    positive_number,
)

_SINCE_02 = frozenset({"fade", "flat", "rise"})
"""What version 0.1 did not write: all of it, or none if all is 0."""

_WHERE_THERE = frozenset({"weight"})
"""What is written only where there is one."""

_STATEMENTS: dict[MechanismName, type[Any]] = {
    made.name: made
    for made in (
        Slopes,
        PrivatePredictionSets,
        LaplaceHistogram,
        NoisyHistogram,
        OpenDPQuantile,
        NoisySearch,
        PublishedNoisySearch,
        SplitConformal,
    )
}


def mechanism_fields(mechanism: Mechanism) -> dict[str, Any]:
    """The mechanism's name and fields; fractions as text.

    Examples
    --------
    >>> mechanism_fields(NoisyHistogram(Fraction(9, 10), Fraction(14), 1.0))
    {'name': 'noisy-histogram', 'rate': '9/10', 'offset': '14', 'scale': 1.0}
    """
    values = {field.name: getattr(mechanism, field.name) for field in fields(mechanism)}  # type: ignore[arg-type]
    rises = any(values.get(name) for name in _SINCE_02)
    stated = {name: value for name, value in values.items() if rises or name not in _SINCE_02}
    stated = {name: value for name, value in stated.items() if value is not None or name not in _WHERE_THERE}
    return {"name": mechanism.name, **{k: str(v) if isinstance(v, Fraction) else v for k, v in stated.items()}}


def read_mechanism(content: Fields) -> Mechanism:
    """The mechanism that `mechanism_fields` wrote."""
    made = _STATEMENTS[one_of("mechanism.name", content.take("name", str), MECHANISMS)]
    if made is PrivatePredictionSets and "rate" in content:
        made = PpsOfSecretSize
    rises = any(name in content for name in _SINCE_02)
    known = [field.name for field in fields(made) if rises or field.name not in _SINCE_02]
    stated = [name for name in known if name in content or name not in _WHERE_THERE]
    statement: Mechanism = made(**{name: _READERS[name](content) for name in stated})
    return statement


def _within(read: Callable[[Fields], Any], holds: Callable[[Any], bool], otherwise: str) -> Callable[[Fields], Any]:
    """A reader of a field that is refused where it does not hold."""

    def reader(content: Fields) -> Any:
        value = read(content)
        if not holds(value):
            raise FormatError(f"the {content.document}'s mechanism{otherwise}")
        return value

    return reader


_READERS: dict[str, Callable[[Fields], Any]] = {
    "rate": _within(lambda c: c.fraction("rate"), lambda rate: 0 <= rate < 1, " has a rate outside [0, 1)"),
    "offset": lambda content: content.fraction("offset"),
    "left": lambda content: positive_integer("mechanism.left", content.take("left", int), most=1000),
    "right": lambda content: positive_integer("mechanism.right", content.take("right", int), most=1000),
    "scale": _within(
        lambda c: float(c.take("scale", (float, int))), lambda scale: 1e-9 <= scale <= 1e30, ".scale is out of range"
    ),
    "selector": lambda content: one_of("mechanism.selector", content.take("selector", str), SELECTORS),
    "head_start": _within(
        lambda c: c.take("head_start", int), lambda start: 0 <= start < 2**62, ".head_start is out of range"
    ),
    "fade": _within(lambda c: c.take("fade", int), lambda fade: 0 <= fade < 2**62, ".fade is out of range"),
    "flat": _within(
        lambda c: c.fraction("flat"),
        lambda flat: 0 <= flat <= MOST_CANDIDATES and flat.denominator <= 1000,
        ".flat is out of range",
    ),
    "rise": _within(lambda c: c.take("rise", int), lambda rise: 0 <= rise < 2**62, ".rise is out of range"),
    "weight": lambda content: positive_integer("mechanism.weight", content.take("weight", int), most=MOST_WEIGHT),
    "level": _within(lambda c: c.fraction("level"), lambda level: 0 < level <= 1, " has a level outside (0, 1]"),
    "gamma": _within(
        lambda c: positive_number("mechanism.gamma", c.take("gamma", float)),
        lambda gamma: gamma < 1,
        " has a gamma outside (0, 1)",
    ),
    "size": lambda content: content.optional(
        "size", (int,), lambda size: positive_integer("mechanism.size", size, most=MOST_RECORDS)
    ),
    "rank": lambda content: positive_integer("mechanism.rank", content.take("rank", int), most=MOST_RECORDS + 1),
    "halvings": lambda content: positive_integer("mechanism.halvings", content.take("halvings", int), most=64),
}
