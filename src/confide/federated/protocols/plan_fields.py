"""The fields of plans that belong to methods and channels.

Every plan states all fields of `UNUSED_DEFAULTS`, with the value there if neither method nor channel has the field. The
others occur only where they have an effect: `flat` and `rise` in plans with a rise, `weights` in plans for non-IID
silos, and `openers` and `needed` in sums with dropouts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.federated.refusals import Refusal
from confide.federated.sharing import word_of
from confide.federated.terms import Terms
from confide.support import MOST_RECORDS, Fields, positive_number, shapes

UNUSED_DEFAULTS: dict[str, Any] = {
    "targets": [],
    "rate": "0",
    "left": 1,
    "right": 1,
    "scale": 1.0,
    "colluding": 0,
    "bits": 32,
    "n_min": 1,
    "n_typical": 1000,
    "published_k": 0,
}
"""The values of fields that neither method nor channel has."""

MOST_SLOPE = 1000
MOST_RISE = 2**53


@cache
def table(silos: int) -> shapes.Shape:
    """The reading and writing of these fields in a plan with this number of silos."""
    return {
        "targets": shapes.listed(shapes.fraction()),
        "rate": shapes.fraction(),
        "left": shapes.integer(MOST_SLOPE),
        "right": shapes.integer(MOST_SLOPE),
        "scale": shapes.Field("a positive number", (float, int), partial(positive_number, "scale")),
        "colluding": shapes.integer(silos - 1, 0),
        "bits": shapes.Field("32 or 64", (int,), lambda bits: 8 * word_of(bits).itemsize),
        "n_min": shapes.integer(MOST_RECORDS, 0),
        "n_typical": shapes.integer(),
        "published_k": shapes.integer(silos, 0),
        "flat": shapes.fraction(),
        "rise": shapes.integer(MOST_RISE),
        "openers": shapes.listed(shapes.integer(silos - 1, 0)),
        "needed": shapes.integer(silos),
        "weights": shapes.choice("sizes"),
    }


def read_field(fields: Fields, name: str, terms: Terms) -> Any:
    """Read and check one of the fields."""
    return table(len(terms.silos))[name].of(fields.pop(name), fields.at(name))


def write_fields(values: Mapping[str, Any], silos: int) -> dict[str, Any]:
    """The fields of a method or a channel as JSON values."""
    known = table(silos)
    return {name: known[name].json(value) for name, value in values.items()}


def check_unused(fields: Fields, terms: Terms) -> None:
    """Read the remaining fields, which must be those of `UNUSED_DEFAULTS`.

    Raises
    ------
    Refusal, FormatError, InputError
        If one is out of range, or has another value.
    """
    left = {name: read_field(fields, name, terms) for name in UNUSED_DEFAULTS if name in fields}
    refuse_contradiction(write_fields(left, len(terms.silos)) != {name: UNUSED_DEFAULTS[name] for name in left})


def refuse_contradiction(wrong: bool) -> None:
    """Reject a plan whose fields contradict each other, because a silo relies on their consistency."""
    if wrong:
        raise Refusal("malformed", "the plan contradicts itself; request a new one from the coordinator")


Counts: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Options:
    """Options of a method and its channel in addition to the terms; see `confide.federated.plan`."""

    colluding: int | None
    n_min: int
    n_typical: int
