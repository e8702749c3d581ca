"""Public choices as they are typed: levels, candidates, shifts, words."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from confide.candidates import AnyCandidates, Candidates, Spread
from confide.errors import ConfideError, InputError
from confide.planning import ClassShift
from confide.releases import Calibration, check_about, load_release
from confide.support import MOST_CANDIDATES, positive_integer
from confide.tables import Regressed, Scored, What


def split(text: str) -> list[str]:
    """Names between commas.

    Examples
    --------
    >>> split("cat, dog")
    ['cat', 'dog']
    """
    return [name.strip() for name in text.split(",")]


def levels_of(alpha: str) -> list[str]:
    """The levels between commas; whole numbers among them are a decimal comma."""
    found = split(alpha)
    if len(found) > 1 and any(one.isdigit() for one in found):
        raise click.UsageError(
            f"--alpha must be levels; found {alpha!r}: a comma separates levels, write 0.1 with a point"
        )
    return found


def one_level(alpha: str) -> str:
    """The level; several are another command's."""
    levels_of(alpha)
    if "," in alpha:
        raise click.UsageError(
            f"--alpha is one level here; found {alpha!r}. `confide calibrate` divides --epsilon evenly among several: "
            "plan each of them with its share"
        )
    return alpha


def stated_words(stated: Sequence[str]) -> Mapping[str, str] | None:
    """What --about says, however often it is given; None if it is not.

    Examples
    --------
    >>> dict(stated_words(["date=2026-11-21", "model = resnet"]))
    {'model': 'resnet', 'date': '2026-11-21'}
    """
    pairs = [text.partition("=")[::2] for text in stated]
    if wrong := [text for text in stated if "=" not in text]:
        raise click.UsageError(f"--about must be KEY=TEXT, as model=NAME; found {wrong[0]!r}")
    if len(dict(pairs)) != len(pairs):
        raise click.UsageError("--about must name every key once")
    return check_about({key.strip(): text.strip() for key, text in pairs}) if pairs else None


# Candidates


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
            "candidates",
            f"file {text!r} holds a release of several thresholds",
            remedy="Give one number, or renew it with confide recalibrate, which spreads candidates around each",
        )
    if not math.isfinite(earlier.threshold):
        raise InputError("candidates", f"the release in file {text!r} has the threshold +inf, which is no guess")
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
        raise InputError("candidates", f"must have one of the forms {SPEC_HELP}", got=repr(spec))
    make, fields = _FORMS[name]
    arguments = {}
    for text, (field, read) in zip(given, fields, strict=False):
        try:
            arguments[field] = read(text)
        except ConfideError:
            raise
        except ValueError:
            kind = {int: "an integer", _hedged: "'hedged', or be left out"}.get(read, "a number")
            raise InputError("candidates", f"{field} must be {kind}", got=f"{text!r} in {spec!r}") from None
    if name in _NEEDED and not arguments:
        raise InputError("candidates", f"{name} needs {_NEEDED[name]}", got=repr(spec))
    try:
        return make(**arguments)
    except InputError as error:
        raise InputError("candidates", f"{error.argument} of {spec!r} {error.requirement}", error.got) from None


def chosen_candidates(spec: str | None, unit: float | None, what: What | None) -> AnyCandidates:
    """The candidates that --candidates or --unit ask for; None for those that suit the score."""
    if unit is None:
        return parsed(spec)
    if not isinstance(what, Regressed | Scored):
        raise click.UsageError("--unit belongs to --prediction or --score-column")
    return what.kind.spread(unit)


def parsed(spec: str | None) -> AnyCandidates:
    """The candidates that --candidates asks for, or how they are spread."""
    return None if spec is None else parse_candidates(spec)


def parsed_list(spec: str | None) -> Candidates | None:
    """The same where only a list will do."""
    found = parsed(spec)
    if isinstance(found, Spread | int):
        raise InputError("candidates", "must be the list that losses belong to, as unit:1000", got=repr(spec))
    return found


# A population that is a known shift away


@dataclass(frozen=True)
class ClassShiftOptions:
    """By how much classes are more or less frequent among new records."""

    class_weights: str | None = None
    source_shares: str | None = None
    target_shares: str | None = None

    @property
    def shift(self) -> ClassShift | None:
        """What they ask for; None if nothing."""
        if self.class_weights is not None:
            return ClassShift.of_weights(named_numbers("--class-weights", self.class_weights))
        if self.source_shares is None or self.target_shares is None:
            return None
        source = named_numbers("--source-shares", self.source_shares)
        return ClassShift.of_shares(source, named_numbers("--target-shares", self.target_shares))


@dataclass(frozen=True)
class ShiftOptions(ClassShiftOptions):
    """The same, or a weight for each record."""

    weight_column: str | None = None
    weight_bound: float | None = None

    def arguments(self) -> dict[str, Any]:
        """What `calibrate_table` takes of them; nothing if no shift is asked for."""
        shift = self.shift
        if shift is None and self.weight_column is None:
            return {}
        return {"class_weights": shift, "weights": self.weight_column, "weight_bound": self.weight_bound}


def named_numbers(option: str, text: str) -> dict[str, str]:
    """Numbers by name.

    Examples
    --------
    >>> named_numbers("--class-weights", "A=0.5, B=2")
    {'A': '0.5', 'B': '2'}
    """
    found: dict[str, str] = {}
    for pair in split(text):
        name, equals, number = pair.rpartition("=")
        if not equals or not name:
            raise click.UsageError(f"{option} must be like A=0.5,B=2; found {pair!r}")
        if name in found:
            raise click.UsageError(f"{option} must have every class once; found {name!r} twice")
        found[name] = number
    return found
