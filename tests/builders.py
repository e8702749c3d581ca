"""Builders of scores, records and releases, and marks of cases, for tests."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def slow(cases: Iterable[Any], everyday: Sequence[Any] = ()) -> list[Any]:
    """Parametrised cases, slow except those in `everyday`; a tuple is the values of several arguments."""
    listed = list(cases)
    unknown = [case for case in everyday if case not in listed]
    assert not unknown, f"everyday cases that are not listed: {unknown}"
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)), marks=() if case in everyday else pytest.mark.slow
        )
        for case in listed
    ]


def grid(*axes: Sequence[Any]) -> list[Any]:
    """All combinations of the values of several arguments; everyday ones meet each value once, the others are slow."""
    everyday = {tuple(i % len(axis) for axis in axes) for i in range(max(map(len, axes)))}
    places = itertools.product(*(range(len(axis)) for axis in axes))
    return [
        pytest.param(
            *(axis[i] for axis, i in zip(axes, place, strict=True)),
            marks=() if place in everyday else pytest.mark.slow,
        )
        for place in places
    ]
