"""Parsing of public choices: levels, candidates, metadata."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from confide.candidates import AnyCandidates, Candidates, Spread
from confide.core import check_about
from confide.errors import InputError
from confide.support import MOST_CANDIDATES, positive_integer


def split(text: str) -> list[str]:
    """Names between commas.

    Examples
    --------
    >>> split("cat, dog")
    ['cat', 'dog']
    """
    return [name.strip() for name in text.split(",")]


def levels_of(alpha: str) -> list[str]:
    """Split levels at commas; whole numbers among them indicate a decimal comma."""
    levels = split(alpha)
    if len(levels) > 1 and any(level.isdigit() for level in levels):
        raise click.UsageError(
            f"--alpha must be levels; got {alpha!r}: a comma separates levels, write 0.1 with a point"
        )
    return levels


def one_level(alpha: str) -> str:
    """Check that there is one level, and return it."""
    levels_of(alpha)
    if "," in alpha:
        raise click.UsageError(f"--alpha must be one level here; got {alpha!r}. State one of them")
    return alpha


def parse_metadata(stated: Sequence[str]) -> Mapping[str, str] | None:
    """The metadata of all --about options; None if there are none.

    Examples
    --------
    >>> dict(parse_metadata(["date=2026-11-21", "model = resnet"]))
    {'model': 'resnet', 'date': '2026-11-21'}
    """
    pairs = [text.partition("=")[::2] for text in stated]
    if wrong := [text for text in stated if "=" not in text]:
        raise click.UsageError(f"--about must be KEY=TEXT, such as model=NAME; got {wrong[0]!r}")
    if len(dict(pairs)) != len(pairs):
        raise click.UsageError("--about must name every key once")
    return check_about({key.strip(): text.strip() for key, text in pairs}) if pairs else None


# Candidates


SPEC_HELP = "unit[:SIZE[:uniform|logit]], published:SIZE, around:THRESHOLD, or a number of them"
_Field = tuple[str, Callable[[str], Any]]


_FORMS: dict[str, tuple[Callable[..., Candidates | Spread], tuple[_Field, ...]]] = {
    "unit": (Candidates.unit, (("size", int), ("spacing", str))),
    "published": (Candidates.published, (("size", int),)),
    "around": (Candidates.around, (("guess", float),)),
}


_NEEDED = {
    "around": "a guess, such as around:0.93",
    "published": "a number, such as published:212",
}


def parse_candidates(spec: str) -> Candidates | Spread | int:
    """Parse candidates: a list, a spread, or a number of candidates.

    Raises
    ------
    InputError
        If the text has no known form, or a number in it is invalid.

    Examples
    --------
    >>> parse_candidates("unit:500:logit")
    Candidates.unit(size=500, spacing='logit')
    >>> parse_candidates("around:0.93")
    Spread(kind=None, unit=None, around=0.93, most=None)
    """
    if spec.isascii() and spec.isdecimal() and len(spec) < 10:
        return positive_integer("candidates", int(spec), most=MOST_CANDIDATES)
    name, *given = spec.split(":")
    if name not in _FORMS or len(given) > len(_FORMS[name][1]):
        raise InputError("candidates", f"must have one of the forms {SPEC_HELP}", got=repr(spec))
    make, fields = _FORMS[name]
    arguments = {}
    for text, (field, read) in zip(given, fields, strict=False):
        try:
            arguments[field] = read(text)
        except ValueError:
            kind = "an integer" if read is int else "a number"
            raise InputError("candidates", f"{field} must be {kind}", got=f"{text!r} in {spec!r}") from None
    if name in _NEEDED and not arguments:
        raise InputError("candidates", f"{name} needs {_NEEDED[name]}", got=repr(spec))
    try:
        return make(**arguments)
    except InputError as error:
        raise InputError("candidates", f"{error.argument} of {spec!r} {error.requirement}", error.got) from None


def optional_candidates(spec: str | None) -> AnyCandidates:
    """The candidates of --candidates: a list, a spread, or a number."""
    return None if spec is None else parse_candidates(spec)


def candidate_list(spec: str | None) -> Candidates | None:
    """The candidates of --candidates, which must be a list."""
    candidates = optional_candidates(spec)
    if isinstance(candidates, Spread | int):
        raise InputError("candidates", "must be the list of the losses, such as unit:1000", got=repr(spec))
    return candidates
