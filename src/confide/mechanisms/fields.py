"""Mechanisms as JSON objects: a name, and the dataclass's own fields, each read by the reader of its name."""

from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from typing import Any

from confide.errors import FormatError
from confide.mechanisms.interface import MECHANISMS, Mechanism, MechanismName
from confide.mechanisms.noisy_histogram import NoisyHistogram
from confide.mechanisms.opendp_quantile import OpenDPQuantile
from confide.mechanisms.pps import PrivatePredictionSets
from confide.mechanisms.pps_laplace import LaplaceHistogram
from confide.mechanisms.slopes import Slopes
from confide.mechanisms.split_conformal import SplitConformal
from confide.selection import SELECTORS
from confide.support import MOST_RECORDS, Fields, one_of, positive_integer, positive_number

_STATEMENTS: dict[MechanismName, type[Any]] = {
    made.name: made
    for made in (Slopes, PrivatePredictionSets, LaplaceHistogram, NoisyHistogram, OpenDPQuantile, SplitConformal)
}


def mechanism_fields(mechanism: Mechanism) -> dict[str, Any]:
    """The mechanism's name and fields; fractions as text.

    Examples
    --------
    >>> mechanism_fields(NoisyHistogram(Fraction(9, 10), Fraction(14), 1.0))
    {'name': 'noisy-histogram', 'rate': '9/10', 'offset': '14', 'scale': 1.0}
    """
    values = ((field.name, getattr(mechanism, field.name)) for field in fields(mechanism))  # type: ignore[arg-type]
    return {"name": mechanism.name, **{k: str(v) if isinstance(v, Fraction) else v for k, v in values}}


def read_mechanism(content: Fields) -> Mechanism:
    """The mechanism that `mechanism_fields` wrote."""
    made = _STATEMENTS[one_of("mechanism.name", content.take("name", str), MECHANISMS)]
    statement: Mechanism = made(**{field.name: _READERS[field.name](content) for field in fields(made)})
    return statement


def _rate(content: Fields) -> Fraction:
    rate = content.fraction("rate")
    if not 0 <= rate < 1:
        raise FormatError(f"the {content.document}'s mechanism has a rate outside [0, 1)")
    return rate


def _level(content: Fields) -> Fraction:
    level = content.fraction("level")
    if not 0 < level <= 1:
        raise FormatError(f"the {content.document}'s mechanism has a level outside (0, 1]")
    return level


def _gamma(content: Fields) -> float:
    gamma = positive_number("mechanism.gamma", content.take("gamma", float))
    if gamma >= 1:
        raise FormatError(f"the {content.document}'s mechanism has a gamma outside (0, 1)")
    return gamma


def _scale(content: Fields) -> float:
    scale = float(content.take("scale", (float, int)))
    if not 1e-9 <= scale <= 1e30:
        raise FormatError(f"the {content.document}'s mechanism.scale is out of range")
    return scale


def _head_start(content: Fields) -> int:
    head_start: int = content.take("head_start", int)
    if not 0 <= head_start < 2**62:
        raise FormatError(f"the {content.document}'s mechanism.head_start is out of range")
    return head_start


_READERS: dict[str, Callable[[Fields], Any]] = {
    "rate": _rate,
    "offset": lambda content: content.fraction("offset"),
    "left": lambda content: positive_integer("mechanism.left", content.take("left", int), most=1000),
    "right": lambda content: positive_integer("mechanism.right", content.take("right", int), most=1000),
    "scale": _scale,
    "selector": lambda content: one_of("mechanism.selector", content.take("selector", str), SELECTORS),
    "head_start": _head_start,
    "level": _level,
    "gamma": _gamma,
    "size": lambda content: content.optional(
        "size", (int,), lambda size: positive_integer("mechanism.size", size, most=MOST_RECORDS)
    ),
    "rank": lambda content: positive_integer("mechanism.rank", content.take("rank", int), most=MOST_RECORDS),
}
