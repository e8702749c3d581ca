"""The fields of plans that belong to methods and channels: each has some, and every plan states all of schema 1.

What they leave out is written as `VOID` has it and means nothing, but it is signed with the rest. Of schema 2 are
`flat` and `rise`, which only a plan with a rise has, `weights`, which only one for unlike silos has, `openers` and
`needed`, which only a sum with silos that may be missing has, and `opened_epsilon` and `dp_delta`, which only a sum of
replies has whose own loss was asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.federated.refusals import Refusal
from confide.federated.sharing import word_of
from confide.federated.shuffling import check_dp_delta
from confide.federated.terms import Terms, check_count
from confide.selection import SELECTORS, Selector
from confide.support import MOST_RECORDS, Fields, one_of, positive_integer, positive_number, privacy_loss, read_fraction

VOID: dict[str, Any] = {
    "targets": [],
    "rate": "0",
    "left": 1,
    "right": 1,
    "scale": 1.0,
    "selector": "permute_and_flip",
    "colluding": 0,
    "bits": 32,
    "n_min": 1,
    "n_typical": 1000,
    "published_k": 0,
}
"""How a field is written that neither method nor channel has."""

MOST_SLOPE = 1000
MOST_RISE = 2**53

_READERS: dict[str, tuple[type | tuple[type, ...], Callable[[Any, Terms], Any]]] = {
    "targets": (list, lambda texts, terms: tuple(read_fraction(text, "the plan's target") for text in texts)),
    "rate": (str, lambda text, terms: read_fraction(text, "the plan's rate")),
    "left": (int, lambda value, terms: positive_integer("left", value, most=MOST_SLOPE)),
    "right": (int, lambda value, terms: positive_integer("right", value, most=MOST_SLOPE)),
    "scale": ((float, int), lambda value, terms: positive_number("scale", value)),
    "selector": (str, lambda text, terms: one_of("selector", text, SELECTORS)),
    "colluding": (int, lambda value, terms: check_count("colluding", value, len(terms.silos) - 1)),
    "bits": (int, lambda value, terms: 8 * word_of(value).itemsize),
    "n_min": (int, lambda value, terms: check_count("n_min", value, MOST_RECORDS)),
    "n_typical": (int, lambda value, terms: positive_integer("n_typical", value, most=MOST_RECORDS)),
    "published_k": (int, lambda value, terms: check_count("published_k", value, len(terms.silos))),
    "flat": (str, lambda text, terms: read_fraction(text, "the plan's flat")),
    "rise": (int, lambda value, terms: positive_integer("rise", value, most=MOST_RISE)),
    "openers": (list, lambda places, terms: tuple(check_count("openers", i, len(terms.silos) - 1) for i in places)),
    "needed": (int, lambda value, terms: positive_integer("needed", value, most=len(terms.silos))),
    "opened_epsilon": ((float, int), lambda value, terms: privacy_loss("opened_epsilon", value)),
    "dp_delta": (float, lambda value, terms: check_dp_delta(value)),
    "weights": (str, lambda text, terms: one_of("weights", text, ("sizes",))),
}


def read_field(fields: Fields, name: str, terms: Terms) -> Any:
    """Take and check one of the fields."""
    kinds, read = _READERS[name]
    return read(fields.take(name, kinds), terms)


def read_unused(fields: Fields, terms: Terms) -> tuple[tuple[str, Any], ...]:
    """Take the fields that are left, checked like the others; those that differ from `VOID`, as JSON values.

    Raises
    ------
    Refusal, FormatError, InputError
        If one is out of range, or would change what is promised if it meant anything.
    """
    values = {name: read_field(fields, name, terms) for name in VOID if name in fields}
    refuse_contradiction(any(values.pop(name, None) for name in ("targets", "rate", "published_k")))
    return tuple((name, value) for name, value in values.items() if value != VOID[name])


def refuse_contradiction(wrong: bool) -> None:
    """Refuse a plan whose fields do not fit together: a silo relies on these relations."""
    if wrong:
        raise Refusal("malformed", "the plan contradicts itself; ask the coordinator for a new one")


Counts: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Options:
    """What may be asked of a method and its channel beyond the terms; see `confide.federated.plan`."""

    selector: Selector
    colluding: int | None
    n_min: int
    n_typical: int
    opened_epsilon: float | None = None
    dp_delta: float | None = None
