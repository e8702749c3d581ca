"""Candidate thresholds as they are typed: `unit:1000`, `geometric:0.5`, `around:0.93`, `around:released.json`, ..."""

import math
from collections.abc import Callable
from typing import Any

from confide.candidates import Candidates, Spread
from confide.errors import ConfideError, InputError
from confide.releases import Calibration, load_release
from confide.support import MOST_CANDIDATES, positive_integer

SPEC_HELP = (
    "unit[:SIZE[:uniform|logit]], published:SIZE, geometric[:UNIT[:STEP[:DECADES]]], sinh[:UNIT[:STEP[:DECADES]]], "
    "around:THRESHOLD[:hedged], around:RELEASE[:hedged], anything, or a number of them"
)

_Field = tuple[str, Callable[[str], Any]]
_SCALED: tuple[_Field, ...] = (("unit", float), ("step", float), ("decades", int))


def _hedged(text: str) -> bool:
    if text != "hedged":
        raise ValueError
    return True


def _guess(text: str) -> float:
    """A number, or the threshold of an earlier release in a file."""
    try:
        return float(text)
    except ValueError:
        earlier = load_release(text)
    if not isinstance(earlier, Calibration):
        raise InputError(
            f"candidates: file {text!r} holds a release of several thresholds; give one number, or renew it with "
            "confide recalibrate, which spreads candidates around each"
        )
    if not math.isfinite(earlier.threshold):
        raise InputError(f"candidates: the release in file {text!r} has the threshold +inf, which is no guess")
    return earlier.threshold


_FORMS: dict[str, tuple[Callable[..., Candidates | Spread], tuple[_Field, ...]]] = {
    "unit": (Candidates.unit, (("size", int), ("spacing", str))),
    "published": (Candidates.published, (("size", int),)),
    "geometric": (Candidates.geometric, _SCALED),
    "sinh": (Candidates.sinh, _SCALED),
    "around": (Candidates.around, (("guess", _guess), ("hedged", _hedged))),
    "anything": (Candidates.anything, ()),
}


_NEEDED = {"around": "the guess, as around:0.93 or around:released.json", "published": "a number, as published:212"}


def parse_candidates(spec: str) -> Candidates | Spread | int:
    """The candidates that a text stands for, how they are spread, or their number.

    Raises
    ------
    InputError
        If the text has no known form, a number in it cannot be used, or a file in it holds no release of one threshold.

    Examples
    --------
    >>> parse_candidates("unit:500:logit")
    Candidates.unit(size=500, spacing='logit')
    >>> parse_candidates("geometric:0.5")
    Candidates.geometric(unit=0.5, step=0.01, decades=12)
    >>> parse_candidates("around:0.93:hedged")
    Spread(kind=None, unit=None, around=0.93, hedged=True)
    """
    if spec.isascii() and spec.isdecimal() and len(spec) < 10:
        return positive_integer("candidates", int(spec), most=MOST_CANDIDATES)
    name, *given = spec.split(":")
    if name == "around" and given:  # a path, or the address of an object, may have colons
        *before, last = given
        given = [":".join(before), last] if before and last == "hedged" else [":".join(given)]
    if name not in _FORMS or len(given) > len(_FORMS[name][1]):
        raise InputError(f"candidates must have one of the forms {SPEC_HELP}; found {spec!r}")
    make, fields = _FORMS[name]
    arguments = {}
    for text, (field, read) in zip(given, fields, strict=False):
        try:
            arguments[field] = read(text)
        except ConfideError:
            raise
        except ValueError:
            kind = {int: "an integer", _hedged: "'hedged', or be left out"}.get(read, "a number")
            raise InputError(f"candidates: {field} must be {kind}; found {text!r} in {spec!r}") from None
    if name in _NEEDED and not arguments:
        raise InputError(f"candidates: {name} needs {_NEEDED[name]}; found {spec!r}")
    return make(**arguments)
