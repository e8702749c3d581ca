"""Candidate thresholds as they are typed: `unit:1000`, `unit:1000:logit`, `geometric:0.5`, `sinh:2`, `anything`."""

from collections.abc import Callable
from typing import Any

from confide.candidates import Candidates
from confide.errors import InputError

SPEC_HELP = "unit[:SIZE[:uniform|logit]], geometric[:UNIT[:STEP[:DECADES]]], sinh[:UNIT[:STEP[:DECADES]]] or anything"

_Field = tuple[str, Callable[[str], Any]]
_SCALED: tuple[_Field, ...] = (("unit", float), ("step", float), ("decades", int))
_FORMS: dict[str, tuple[Callable[..., Candidates], tuple[_Field, ...]]] = {
    "unit": (Candidates.unit, (("size", int), ("spacing", str))),
    "geometric": (Candidates.geometric, _SCALED),
    "sinh": (Candidates.sinh, _SCALED),
    "anything": (Candidates.anything, ()),
}


def parse_candidates(spec: str) -> Candidates:
    """The candidates that a text stands for.

    Raises
    ------
    InputError
        If the text has no known form, or a number in it cannot be used.

    Examples
    --------
    >>> parse_candidates("unit:500:logit")
    Candidates.unit(size=500, spacing='logit')
    >>> parse_candidates("geometric:0.5")
    Candidates.geometric(unit=0.5, step=0.01, decades=12)
    """
    name, *given = spec.split(":")
    if name not in _FORMS or len(given) > len(_FORMS[name][1]):
        raise InputError(f"candidates must have one of the forms {SPEC_HELP}; found {spec!r}")
    make, fields = _FORMS[name]
    arguments = {}
    for text, (field, read) in zip(given, fields, strict=False):
        try:
            arguments[field] = read(text)
        except ValueError:
            kind = "an integer" if read is int else "a number"
            raise InputError(f"candidates: {field} must be {kind}; found {text!r} in {spec!r}") from None
    return make(**arguments)
