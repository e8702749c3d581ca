"""Mechanisms as JSON objects: a name and the fields of the dataclass."""

import math
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any

from confide.errors import InputError
from confide.mechanisms.interface import Mechanism, SplitConformal
from confide.mechanisms.noisy_histogram import NoisyHistogram
from confide.mechanisms.opendp_quantile import OpenDPQuantile
from confide.mechanisms.pps import PpsOfSecretSize, PrivatePredictionSets
from confide.mechanisms.pps_laplace import LaplaceHistogram
from confide.mechanisms.published_counts import PublishedHistogram
from confide.mechanisms.slopes import Slopes
from confide.mechanisms.stated_noise import Noise
from confide.support import MAX_DENOMINATOR, MOST_CANDIDATES, MOST_RECORDS, MOST_WEIGHT

_STATEMENTS: Mapping[str, type[Any]] = {
    statement.name: statement
    for statement in (
        Slopes,
        PrivatePredictionSets,
        LaplaceHistogram,
        NoisyHistogram,
        OpenDPQuantile,
        SplitConformal,
        PublishedHistogram,
    )
}

_STEPS = (0, 2**62 - 1)
_BELOW_1, _ABOVE_0 = math.nextafter(1, 0), math.nextafter(0, 1)

# The numbers that a design can have: with others a certificate would take long.
_RANGES: Mapping[str, tuple[float, float]] = {
    "rate": (0, _BELOW_1),
    "offset": (0, 2**63),  # it moves with a noisy number of records
    "beyond": (0, 2**63),
    "left": (1, 1000),
    "right": (1, 1000),
    "scale": (1e-9, 1e30),
    "head_start": _STEPS,
    "fade": _STEPS,
    "flat": (0, MOST_CANDIDATES),
    "rise": _STEPS,
    "weight": (1, MOST_WEIGHT),
    "level": (_ABOVE_0, 1),
    "gamma": (_ABOVE_0, _BELOW_1),
    "size": (1, MOST_RECORDS),
    "rank": (1, MOST_RECORDS + 1),
}


def mechanism_fields(mechanism: Mechanism) -> dict[str, Any]:
    """The mechanism's name and fields, with fractions as str; without a law of noise, which a request states."""
    values = {field.name: getattr(mechanism, field.name) for field in fields(mechanism)}  # type: ignore[arg-type]
    plain = {name: str(value) if isinstance(value, Fraction) else value for name, value in values.items()}
    return {"name": mechanism.name, **{name: value for name, value in plain.items() if name != "noise"}}


def read_mechanism(content: Mapping[str, Any], noise: Noise | None = None) -> Mechanism:
    """The mechanism of such fields; an error for missing or unknown fields, and numbers that no design has."""
    import msgspec

    stated = dict(content)
    statement = _STATEMENTS[stated.pop("name")]
    if statement is PrivatePredictionSets and "rate" in stated:
        statement = PpsOfSecretSize

    # Exactly its fields, of their types.
    names = {field.name for field in fields(statement)} - {"noise"}
    if set(stated) != names:
        raise InputError("mechanism", f"must have the fields {', '.join(sorted(names))}")
    mechanism: Mechanism
    if statement is PublishedHistogram and noise is not None:
        mechanism = PublishedHistogram(noise, msgspec.convert(stated["beyond"], int, strict=True))
    else:
        mechanism = msgspec.convert(stated, statement, strict=True, dec_hook=decoded)

    # Numbers that a design can have.
    for name, (low, high) in _RANGES.items():
        value = getattr(mechanism, name, None)
        most = 1000 if name == "flat" else 64 * MAX_DENOMINATOR
        exact = not isinstance(value, Fraction) or value.denominator <= most
        if name in names and value is not None and not (exact and low <= value <= high):
            raise InputError(f"mechanism.{name}", "must be a number that a design can have")
    return mechanism


def decoded(kind: type, text: Any) -> Any:
    """A fraction of non-negative integers from its text, for msgspec; raises `ValueError` for all else."""
    if kind is not Fraction or not isinstance(text, str) or len(text) > 60 or not set(text) <= set("0123456789/"):
        raise ValueError
    return Fraction(text)
