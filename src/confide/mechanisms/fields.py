"""Mechanisms as JSON objects: each has its name and its own fields, and is read by the reader of that name."""

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
from confide.selection.selector import SELECTORS
from confide.support.checks import one_of, positive_integer, positive_number
from confide.support.limits import MOST_RECORDS
from confide.support.strict_json import Fields


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
    return _READERS[one_of("mechanism.name", content.take("name", str), MECHANISMS)](content)


def _slopes(content: Fields) -> Slopes:
    return Slopes(
        rate=_rate(content),
        offset=content.fraction("offset"),
        left=positive_integer("mechanism.left", content.take("left", int), most=1000),
        right=positive_integer("mechanism.right", content.take("right", int), most=1000),
        scale=_scale(content),
        selector=one_of("mechanism.selector", content.take("selector", str), SELECTORS),
        head_start=_count(content.take("head_start", int)),
    )


def _pps(content: Fields) -> PrivatePredictionSets:
    return PrivatePredictionSets(_level(content), _gamma(content), _scale(content))


def _pps_laplace(content: Fields) -> LaplaceHistogram:
    return LaplaceHistogram(_level(content), _gamma(content), _scale(content))


def _noisy_histogram(content: Fields) -> NoisyHistogram:
    return NoisyHistogram(_rate(content), content.fraction("offset"), _scale(content))


def _opendp_quantile(content: Fields) -> OpenDPQuantile:
    size = content.optional("size", (int,), lambda v: positive_integer("mechanism.size", v, most=MOST_RECORDS))
    return OpenDPQuantile(_level(content), size, _scale(content))


def _split_conformal(content: Fields) -> SplitConformal:
    return SplitConformal(positive_integer("mechanism.rank", content.take("rank", int), most=MOST_RECORDS))


_READERS: dict[MechanismName, Callable[[Fields], Mechanism]] = {
    "slopes": _slopes,
    "pps": _pps,
    "pps-laplace": _pps_laplace,
    "noisy-histogram": _noisy_histogram,
    "opendp-quantile": _opendp_quantile,
    "none": _split_conformal,
}


def _rate(content: Fields) -> Fraction:
    rate = content.fraction("rate")
    if not 0 <= rate < 1:
        raise FormatError("the calibration's mechanism has a rate outside [0, 1)")
    return rate


def _level(content: Fields) -> Fraction:
    level = content.fraction("level")
    if not 0 < level <= 1:
        raise FormatError("the calibration's mechanism has a level outside (0, 1]")
    return level


def _gamma(content: Fields) -> float:
    gamma = positive_number("mechanism.gamma", content.take("gamma", float))
    if gamma >= 1:
        raise FormatError("the calibration's mechanism has a gamma outside (0, 1)")
    return gamma


def _scale(content: Fields) -> float:
    scale = float(content.take("scale", (float, int)))
    if not 1e-9 <= scale <= 1e30:
        raise FormatError("the calibration's mechanism.scale is out of range")
    return scale


def _count(value: int) -> int:
    if not 0 <= value < 2**62:
        raise FormatError("the calibration's mechanism.head_start is out of range")
    return value
