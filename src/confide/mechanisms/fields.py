"""Mechanisms as JSON objects: a name and the fields of the dataclass."""

from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any

from confide.mechanisms.interface import MECHANISMS, Mechanism, MechanismName, SplitConformal
from confide.mechanisms.noisy_histogram import NoisyHistogram
from confide.mechanisms.opendp_quantile import OpenDPQuantile
from confide.mechanisms.pps import PpsOfSecretSize, PrivatePredictionSets
from confide.mechanisms.pps_laplace import LaplaceHistogram
from confide.mechanisms.slopes import Slopes
from confide.support import MOST_CANDIDATES, MOST_RECORDS, MOST_WEIGHT, shapes

_STATEMENTS: dict[MechanismName, type[Any]] = {
    made.name: made
    for made in (
        Slopes,
        PrivatePredictionSets,
        LaplaceHistogram,
        NoisyHistogram,
        OpenDPQuantile,
        SplitConformal,
    )
}


def mechanism_fields(mechanism: Mechanism) -> dict[str, Any]:
    """The mechanism's name and fields, with fractions as str.

    Examples
    --------
    >>> mechanism_fields(NoisyHistogram(Fraction(9, 10), Fraction(14), 1.0))
    {'name': 'noisy-histogram', 'rate': '9/10', 'offset': '14', 'scale': 1.0}
    """
    values = {field.name: getattr(mechanism, field.name) for field in fields(mechanism)}  # type: ignore[arg-type]
    return {"name": mechanism.name, **{k: str(v) if isinstance(v, Fraction) else v for k, v in values.items()}}


def _shape(content: Mapping[str, Any]) -> shapes.Shape:
    """Read the fields of the mechanism with the given name."""
    name: Any = content.get("name")
    named = {"name": shapes.choice(*MECHANISMS)}
    if name not in MECHANISMS:
        return named
    made = _STATEMENTS[name]
    if made is PrivatePredictionSets and "rate" in content:
        made = PpsOfSecretSize
    return {**named, **{field.name: _FIELDS[field.name] for field in fields(made)}}


def _read(values: dict[str, Any]) -> Mechanism:
    made = _STATEMENTS[values.pop("name")]
    if made is PrivatePredictionSets and "rate" in values:
        made = PpsOfSecretSize
    statement: Mechanism = made(**values)
    return statement


_STEPS = shapes.integer(2**62 - 1, 0)
_FIELDS: shapes.Shape = {
    "rate": shapes.fraction("in [0, 1)", lambda rate: 0 <= rate < 1),
    "offset": shapes.fraction(),
    "left": shapes.integer(1000),
    "right": shapes.integer(1000),
    "scale": shapes.number(1e-9, 1e30),
    "head_start": _STEPS,
    "fade": _STEPS,
    "flat": shapes.fraction(
        f"in thousandths, up to {MOST_CANDIDATES}", lambda flat: flat <= MOST_CANDIDATES and flat.denominator <= 1000
    ),
    "rise": _STEPS,
    "weight": shapes.nullable(shapes.integer(MOST_WEIGHT)),
    "level": shapes.fraction("in (0, 1]", lambda level: 0 < level <= 1),
    "gamma": shapes.Field("a number above 0 and below 1", (float,), shapes.reads_if(lambda gamma: 0 < gamma < 1)),
    "size": shapes.nullable(shapes.integer()),
    "rank": shapes.integer(MOST_RECORDS + 1),
}
MECHANISM = shapes.Field("a mechanism", (dict,), _read, mechanism_fields, shape=_shape)
"""A mechanism in a file."""
