"""Mechanisms as JSON objects: their names and fields, read and checked."""

import math
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any

from confide.errors import InputError
from confide.mechanisms.interface import Mechanism
from confide.mechanisms.noisy_histogram import NoisyHistogram, PublishedHistogram
from confide.mechanisms.opendp_quantile import OpenDPQuantile
from confide.mechanisms.pps import PpsOfSecretSize, PrivatePredictionSets
from confide.mechanisms.pps_laplace import LaplaceHistogram
from confide.mechanisms.slopes import Slopes
from confide.mechanisms.split_conformal import SplitConformal
from confide.mechanisms.stated_noise import Noise
from confide.mechanisms.utilities import INT64_ROOM
from confide.support import MAX_DENOMINATOR, MOST_CANDIDATES, MOST_RECORDS, MOST_WEIGHT, require

# The mechanisms by name.
_CLASSES: Mapping[str, type[Any]] = {
    mechanism.name: mechanism
    for mechanism in (
        Slopes,
        PrivatePredictionSets,
        LaplaceHistogram,
        NoisyHistogram,
        OpenDPQuantile,
        SplitConformal,
        PublishedHistogram,
    )
}

_INT64_STEPS = (0, INT64_ROOM - 1)
_BELOW_1 = math.nextafter(1, 0)
_ABOVE_0 = math.nextafter(0, 1)

# The numbers that a design can have: with others a certificate would take long.
_RANGES: Mapping[str, tuple[float, float]] = {
    "rate": (0, _BELOW_1),
    "offset": (0, 2**63),  # it moves with a noisy number of records
    "beyond": (0, 2**63),
    "left": (1, 1000),
    "right": (1, 1000),
    "scale": (1e-9, 1e30),
    "head_start": _INT64_STEPS,
    "fade": _INT64_STEPS,
    "flat": (0, MOST_CANDIDATES),
    "rise": _INT64_STEPS,
    "weight": (1, MOST_WEIGHT),
    "level": (_ABOVE_0, 1),
    "gamma": (_ABOVE_0, _BELOW_1),
    "size": (1, MOST_RECORDS),
    "rank": (1, MOST_RECORDS + 1),
}


_MOST_DENOMINATOR = 64 * MAX_DENOMINATOR
"""Largest denominator of all other fractions. That of a target rank is a multiple of the denominator of its level."""

_MOST_FLAT_DENOMINATOR = 1000
"""Largest denominator of `flat`, which designs state in sixteenths."""


def read_mechanism(content: Mapping[str, Any], noise: Noise | None = None) -> Mechanism:
    """The mechanism of such fields; an error for missing or unknown fields, and numbers that no design has.

    Raises
    ------
    KeyError
        If there is no name, or no mechanism of this name.
    InputError, ValueError
        If the fields are not those of the mechanism, or a value is not one of a design.
    """
    import msgspec

    # Its class: `pps` with a rate is for a secret number of records.
    stated = dict(content)
    kind = _CLASSES[stated.pop("name")]
    if kind is PrivatePredictionSets and "rate" in stated:
        kind = PpsOfSecretSize

    # Exactly its fields, of their types.
    names = {field.name for field in fields(kind)} - {"noise"}
    require("mechanism", set(stated) == names, f"must have the fields {', '.join(sorted(names))}")
    mechanism: Mechanism
    if kind is PublishedHistogram and noise is not None:
        mechanism = PublishedHistogram(noise, msgspec.convert(stated["beyond"], int, strict=True))
    else:
        mechanism = msgspec.convert(stated, kind, strict=True, dec_hook=decoded)

    # Numbers that a design can have.
    for name, (low, high) in _RANGES.items():
        value = getattr(mechanism, name) if name in names else None
        most_denominator = _MOST_FLAT_DENOMINATOR if name == "flat" else _MOST_DENOMINATOR
        too_fine = isinstance(value, Fraction) and value.denominator > most_denominator
        if value is not None and (too_fine or not low <= value <= high):
            raise InputError(f"mechanism.{name}", "must be a number that a calibration can give this field")
    return mechanism


def decoded(kind: type, text: Any) -> Any:
    """A fraction of non-negative integers from its text, for msgspec; raises `ValueError` for all else."""
    if kind is not Fraction or not isinstance(text, str) or len(text) > 60 or not set(text) <= set("0123456789/"):
        raise ValueError
    return Fraction(text)
