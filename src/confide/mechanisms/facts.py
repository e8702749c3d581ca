"""The statement of a mechanism: as a JSON object, in words, and with the theorem that proves its guarantee."""

import math
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any

from confide.errors import InputError
from confide.guarantee import Guarantee
from confide.mechanisms.interface import INT64_ROOM, Mechanism, SplitConformal
from confide.mechanisms.noisy_histogram import NoisyHistogram, PublishedHistogram
from confide.mechanisms.opendp_quantile import OpenDPQuantile
from confide.mechanisms.pps import PpsOfSecretSize, PrivatePredictionSets
from confide.mechanisms.pps_laplace import LaplaceHistogram
from confide.mechanisms.slopes import Slopes
from confide.mechanisms.stated_noise import Noise
from confide.support import MAX_DENOMINATOR, MOST_CANDIDATES, MOST_RECORDS, MOST_WEIGHT, Facts

# As a JSON object: its name and the fields of its dataclass.

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


def mechanism_fields(mechanism: Mechanism) -> dict[str, Any]:
    """The mechanism's name and fields, with fractions as str; without a law of noise, which a request states."""
    content: dict[str, Any] = {"name": mechanism.name}
    for field in fields(mechanism):  # type: ignore[arg-type]
        value = getattr(mechanism, field.name)
        if field.name != "noise":
            content[field.name] = str(value) if isinstance(value, Fraction) else value
    return content


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
    if set(stated) != names:
        raise InputError("mechanism", f"must have the fields {', '.join(sorted(names))}")
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


# In words.


def mechanism_facts(mechanism: Mechanism | None, m: int) -> Facts:
    """The mechanism and its parameters, for m candidates; None stands for +inf without reading the data."""
    if mechanism is None:
        return (("mechanism", "none: +inf was returned without reading the data"),)
    # The default and a noisy histogram in words; others by the names of their fields.
    if isinstance(mechanism, Slopes):
        return _slope_facts(mechanism, m)
    if isinstance(mechanism, NoisyHistogram):
        rule = "a noisy histogram, and the first candidate from which on few enough records lie beyond each"
        return (
            ("mechanism", rule),
            ("noise in each bin", f"discrete Laplace of scale {mechanism.scale:.17g} (OpenDP)"),
            ("noisy records beyond the threshold", f"at most {mechanism.beyond:,}"),
        )
    stated = {name: str(value) for name, value in mechanism_fields(mechanism).items()}
    noise = (("noise", str(mechanism.noise)),) if isinstance(mechanism, PublishedHistogram) else ()
    return (("mechanism", stated.pop("name")), *noise, *stated.items())


def _slope_facts(mechanism: Slopes, m: int) -> Facts:
    # The largest weight, and the target rank that grows with the number of records.
    weight: Facts = ()
    if mechanism.weight is not None:
        weight = (("largest weight", f"{mechanism.weight:,} steps; ranks and n are weights, divided by it"),)
    growing = "" if mechanism.rate == 0 else f"{mechanism.rate} (n + 1) + "
    decimal = f"{float(mechanism.offset):.15g}"
    offset = decimal if Fraction(decimal) == mechanism.offset else str(mechanism.offset)
    return (
        ("mechanism", "slopes on both sides of a target rank"),
        *weight,
        ("target rank", f"{growing}{offset}"),
        ("slopes per rank, below and above it", f"{mechanism.slope_left:.6g} and {mechanism.slope_right:.6g}"),
        ("rise of the prior weights", _rise_text(mechanism, m)),
        *((("prior bonus of +inf", _bonus_text(mechanism)),) if mechanism.head_start else ()),
        ("drawn by", f"the exponential mechanism, noise scale {mechanism.scale:.17g} (OpenDP)"),
    )


def _rise_text(mechanism: Slopes, m: int) -> str:
    if not mechanism.rise:
        return "none: all candidates have equal prior odds"
    return (
        f"the first {float(mechanism.flat):,.6g} of {m:,} candidates have equal prior odds; from there on the prior "
        f"log-odds increase evenly, by {mechanism.total_rise:.4g} in all. So the many candidates below the target have "
        "a small total weight, and the promise costs few ranks"
    )


def _bonus_text(mechanism: Slopes) -> str:
    if not mechanism.fade:
        return f"{mechanism.head_start_ranks:.6g} ranks"
    return (
        f"{mechanism.head_start_ranks:.6g} ranks without records; it decreases by {mechanism.fade_ranks:.4g} with each "
        f"record{' of the largest weight' if mechanism.weight else ''}, because only few records need it"
    )


# With the theorem that proves its guarantee.


def proof_of(mechanism: Mechanism | None, guarantee: Guarantee, *, shifted: bool) -> str:
    """The page of the documentation that proves a guarantee, and its theorem; `shifted` for another population."""
    if guarantee.kind == "none":
        return "no theorem: this mechanism has no certificate"
    if mechanism is None:
        return "+inf covers everything"
    if isinstance(mechanism, PublishedHistogram):
        return "docs/theory-published-counts.md, Theorem E1"
    if isinstance(mechanism, NoisyHistogram):
        return f"docs/theory-one-number.md, Theorem W3{'b' if guarantee.sized else ''}; privacy by docs/methods.md"
    if not isinstance(mechanism, Slopes):
        return "docs/methods.md"

    # Slopes by the type of guarantee.
    if guarantee.delta is not None:
        return "docs/theory.md, Theorem C3" if guarantee.n is None else "docs/theory.md, Theorem C1b"
    if shifted:
        return "docs/theory-after-release.md, Theorem A6; privacy by docs/theory.md, Theorem P1, and group privacy"
    if guarantee.sized:
        return "docs/theory-one-number.md, Theorem H1; privacy by docs/theory.md, Theorem P1"
    either = "docs/theory.md, Theorem C2a or docs/theory-one-number.md, Theorem T1a"
    return f"{either}; privacy by docs/theory.md, Theorem P1"
