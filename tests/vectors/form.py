"""The form of a test vector: its fields, the format of its numbers, and the comparison with a computed value."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import mpmath

DIGITS = 30
"""Significant digits of numbers that are written as decimal strings."""

mp = mpmath.mp.clone()
mp.dps = 60


def case(
    name: str,
    operation: str,
    description: str,
    source: str,
    given: Mapping[str, Any],
    expected: Any,
    tolerance: Any = 0,
) -> dict[str, Any]:
    """A case with its expected answer; `name` is unique in its file."""
    head = {"id": name, "operation": operation, "description": description, "source": source}
    return {**head, "input": dict(given), "expected": written(expected), "tolerance": tolerance}


def refused(name: str, operation: str, description: str, source: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """A case that must raise an error."""
    head = {"id": name, "operation": operation, "description": description, "source": source}
    return {**head, "input": dict(given), "refused": True}


def written(value: Any) -> Any:
    """A value as JSON: infinities as strings, fractions exactly, numbers of high precision with 30 digits."""
    match value:
        case Mapping():
            return {key: written(one) for key, one in value.items()}
        case list() | tuple():
            return [written(one) for one in value]
        case Fraction():
            return str(value)
        case float() if math.isinf(value):
            return "+inf" if value > 0 else "-inf"
    return mp.nstr(value, DIGITS) if isinstance(value, mp.mpf) else value


def agrees(found: Any, expected: Any, tolerance: Any) -> bool:
    """Return whether a computed value equals the expected one, within the case's tolerance, in all its numbers."""
    if isinstance(expected, dict):
        same = isinstance(found, dict) and found.keys() == expected.keys()
        return same and all(agrees(found[key], one, tolerance) for key, one in expected.items())
    if isinstance(expected, list):
        same = isinstance(found, list) and len(found) == len(expected)
        return same and all(agrees(one, other, tolerance) for one, other in zip(found, expected, strict=True))
    if tolerance == 0 or isinstance(found, str | bool) or found is None or expected is None:
        return type(found) is type(expected) and found == expected
    (kind, by), value = next(iter(tolerance.items())), Fraction(expected)
    distance = Fraction(found) - value
    return {
        "absolute": abs(distance) <= by,
        "relative": abs(distance) <= by * abs(value),
        "above": 0 <= distance <= by,
        "below": 0 <= -distance <= by,
    }[kind]


def real(value: Fraction | float | str) -> Any:
    """A number of high precision."""
    exact = Fraction(value)
    return mp.mpf(exact.numerator) / exact.denominator
