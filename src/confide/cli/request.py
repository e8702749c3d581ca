"""Arguments as they are typed: options, a TOML file and NAME=VALUE pairs, under the names of the Python API.

An argument that two of them state raises an error: a file that was reviewed is never overridden. A `take_` function
removes arguments from those of a command, which hands the others on to a function of the API.
"""

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields
from datetime import date, time
from typing import Any

import click

from confide.candidates import AnyCandidates, Candidates
from confide.cli.command import stated_arguments
from confide.cli.commands import Predicted, Recalibrate, RequestOptions
from confide.cli.options import COLUMN_NAMES, NAMES, PEOPLE, PEOPLE_NAMES
from confide.cli.values import place_of, read_fingerprint
from confide.core import ClassShift, Release
from confide.errors import ConfideError, InputError, InputTypeError
from confide.support import FileLocation, check_unknown_arguments, read_text, require
from confide.tables import ClassColumns, ColumnSpec, ContributionBound, LossColumns, ScoreColumn, TargetColumns

# Arguments, each stated once

# Advice about arguments that are stated in another way
_ELSEWHERE = dict.fromkeys(
    ("ledger", "dataset", "again"), "A request states no ledger; give --ledger and --dataset"
) | dict.fromkeys(PEOPLE_NAMES, "State it as people.person, people.most, people.order")


def arguments_of(
    function: str, known: Collection[str], options: Predicted, file: FileLocation | None = None
) -> dict[str, Any]:
    """The arguments of a function of the API, each stated once: by an option, by NAME=VALUE, or in a file.

    Examples
    --------
    >>> arguments_of("calibrate", NAMES, RequestOptions(alpha="0.1", settings=("delta=0.05", "groups=a,b")))
    {'delta': 0.05, 'groups': ('a', 'b'), 'alpha': '0.1'}
    """
    # A file, pairs and options, each argument once.
    arguments: dict[str, Any] = {} if file is None else _read_file(file)
    for pair in options.settings:
        _add(arguments, _parse(pair), "--set")
    typed = {name: value for name, value in vars(options).items() if name in known and value not in (None, ())}
    stated = {name: value for name, value in typed.items() if value is not False}
    stated_arguments().elsewhere = set(arguments) - set(stated)
    _add(arguments, stated, "an option")
    check_unknown_arguments(function, arguments, known, _ELSEWHERE)

    # Texts become lists, bounds and candidates.
    checked = {name: _listed(name, value) for name, value in arguments.items()}
    named = {column: name for name in _OF_COLUMNS for column in texts_of(checked.get(name))}
    if PEOPLE in checked:
        people = checked[PEOPLE] = _contribution_bound(checked[PEOPLE])
        named |= {**dict.fromkeys(people.order, f"{PEOPLE}.order"), people.person: f"{PEOPLE}.person"}
    stated_arguments().of_column = named
    if isinstance(checked.get("candidates"), str):
        checked["candidates"] = parse_candidates(checked["candidates"])
    return checked


def texts_of(value: Any) -> tuple[str, ...]:
    """The texts of an argument that is one text, a list of them, or not stated."""
    return (value,) if isinstance(value, str) else tuple(value or ())


def _read_file(file: FileLocation) -> dict[str, Any]:
    try:
        document: dict[str, Any] = _plain(tomllib.loads(read_text(file)))
    except tomllib.TOMLDecodeError as error:
        raise InputError("request", f"{str(file)!r} must be TOML: {error}") from None
    return document


def _parse(pair: str) -> dict[str, Any]:
    name, equals, text = map(str.strip, pair.partition("="))
    is_named = equals and re.fullmatch(r"[A-Za-z_]\w*(\.[\w-]+)*", name)
    require("set", is_named, "must be NAME=VALUE, such as delta=0.05", got=repr(pair))
    nested: Any = _value(text)
    for key in reversed(name.split(".")):
        nested = {key: nested}
    return dict(nested)


def _value(text: str) -> Any:
    """A TOML value, such as 0.05, true or ["a", "b"], or else the text itself."""
    try:
        document = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return _plain(document["value"]) if len(document) == 1 else text


def _plain(value: Any) -> Any:
    """A TOML value with dates and times as texts."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, date | time) else value


def _add(arguments: dict[str, Any], further: Mapping[str, Any], source: str) -> None:
    """Add arguments, each of which must be new; tables with different names are joined."""
    for name, value in further.items():
        if isinstance(value, Mapping) and isinstance(arguments.get(name), dict):
            _add(arguments[name], value, source)
        elif name in arguments:
            raise InputError(name, f"must be stated once; {source} states it again")
        else:
            arguments[name] = dict(value) if isinstance(value, Mapping) else value


# Values

# Arguments whose text is always split at commas, except lists of several columns, which have semicolons
_NAMES = ("classes", "groups", "group_names", "order", "choose", "parts", "width_bins")

# Arguments that name columns of the table
_OF_COLUMNS = ("label", "target", "column", "by", "weights", "prediction", "probabilities", "losses", "truth", "keep")

# Arguments whose text may also be a single name, or a pattern
_NAME_OR_NAMES = ("alpha", "by", "probabilities", "prediction", "truth", "losses")


def _listed(name: str, value: Any) -> Any:
    """The value with lists as tuples; a text of names between commas is a list."""
    if name == PEOPLE and isinstance(value, Mapping):
        return {key: _listed(key, item) for key, item in value.items()}
    if type(value) is int and name in (*_OF_COLUMNS, "groups", "group_names"):  # the name 3 of a column or a group
        value = str(value)
    if isinstance(value, str) and name in _NAME_OR_NAMES:
        value = split(value) if "," in value and "*" not in value else value
    elif isinstance(value, str) and name in _NAMES:
        value = value if ";" in value else split(value)
    if name == "width_bins" and isinstance(value, list):
        value = [_value(item) if isinstance(item, str) else item for item in value]
    return tuple(value) if isinstance(value, list) else value


def split(text: str) -> list[str]:
    """Names between commas."""
    return [name.strip() for name in text.split(",")]


def _contribution_bound(people: Any) -> ContributionBound:
    names = [field.name for field in fields(ContributionBound)]
    if not isinstance(people, Mapping):
        raise InputTypeError(PEOPLE, f"must be stated as {', '.join(f'{PEOPLE}.{name}' for name in names)}")
    check_unknown_arguments(PEOPLE, people, names)
    for name in ("person", "most", "order"):
        require(f"{PEOPLE}.{name}", name in people, "must be stated: people needs person, most and order")
    return ContributionBound(**people)


_CANDIDATES: Mapping[str, Callable[..., AnyCandidates]] = {
    "unit": Candidates.unit,
    "published": Candidates.published,
    "around": Candidates.around,
}


def parse_candidates(text: str) -> AnyCandidates:
    """A list of candidates, or a spread, by the name of its function and the values of its arguments.

    Examples
    --------
    >>> parse_candidates("unit:500:logit")
    Candidates.unit(size=500, spacing='logit')
    >>> parse_candidates("around:0.93")
    Spread(kind=None, unit=None, around=0.93, most=None)
    """
    name, *values = text.split(":")
    try:
        return _CANDIDATES[name](*(_value(value) for value in values))
    except (KeyError, TypeError, ConfideError):
        forms = "unit[:SIZE[:uniform|logit]], published:SIZE, around:THRESHOLD, or a number of them"
        raise InputError("candidates", f"must have one of the forms {forms}", got=repr(text)) from None


# Requests


def read_request(options: RequestOptions | Recalibrate, known: Collection[str] = NAMES) -> dict[str, Any]:
    """The request that options, a file and NAME=VALUE state, under the names of the API."""
    arguments = arguments_of("calibrate", known, options, options.request_file)
    if "alpha" not in arguments:
        raise click.UsageError("Missing option '--alpha'.")
    if isinstance(text := arguments.get("groups"), str):
        arguments["groups"] = _groups(text, arguments.get("by"))
    shares = arguments.get("class_weights")
    if isinstance(shares, Mapping) and set(shares) == {"source", "target"} and isinstance(shares["source"], Mapping):
        arguments["class_weights"] = ClassShift.of_shares(shares["source"], shares["target"])
    return arguments


def _groups(text: str, by: Any) -> dict[str, tuple[str, ...]]:
    lists = [tuple(split(names)) for names in text.split(";")]
    columns = texts_of(by)
    must = f"must be the values of each of the {len(columns)} columns of by, with ; between columns"
    example = "For example --by sex,site --groups 'f,m;north,south'"
    require("groups", len(lists) == len(columns), must, got=f"{len(lists)} of them", remedy=example)
    return dict(zip(columns, lists, strict=True))


# Arguments that a command interprets itself


def take(arguments: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Take these arguments out of those of a command."""
    return {name: arguments.pop(name) for name in names if name in arguments}


# The columns of a score, by the first of these arguments that is stated
_KINDS = {
    "column": ScoreColumn,
    "prediction": TargetColumns,
    "losses": LossColumns,
    "truth": LossColumns,
    "probabilities": ClassColumns,
}


def take_columns(arguments: dict[str, Any], release: Release | None = None) -> ColumnSpec | None:
    """Take the columns of the score out of the arguments, for the score of a release; None if they name none."""
    # The kind of columns; a release of a loss takes losses.
    first = next((name for name in _KINDS if name in arguments), None)
    if first is None:
        return None
    kind: Any = _KINDS[first]
    is_named = first != "losses" or release is not None or "loss" in arguments
    require("loss", is_named, "must be given with losses: the name of the loss")
    of_loss = None if release is None or release.loss is None else release
    if of_loss is not None and kind in (ClassColumns, LossColumns):
        kind = LossColumns
        if first == "losses":
            arguments.setdefault("loss", of_loss.loss)
            arguments.setdefault("bound", of_loss.bound)

    # The columns of this kind, and no others.
    of_kind = {field.name for field in fields(kind)}
    named = take(arguments, [name for name in COLUMN_NAMES if name in of_kind])
    if kind is LossColumns and isinstance(arguments.get("candidates"), Candidates):
        named["candidates"] = arguments["candidates"]
    if others := [name for name in COLUMN_NAMES if name in arguments]:
        why = f"with {first}, which names the columns of another score"
        if of_loss is not None:
            why = f"for a release that bounds the loss {of_loss.loss!r}: state truth or losses"
        raise InputError(others[0], f"must be left out {why}")
    stated_arguments().of_score = first
    columns: ColumnSpec = kind(**named)
    return columns


def take_metadata(arguments: dict[str, Any], *records: FileLocation) -> dict[str, Any]:
    """Take the public metadata out of the arguments; a fingerprint's file is none of `records`."""
    metadata = take(arguments, ("about", "fingerprint"))
    if "fingerprint" in metadata:
        metadata["fingerprint"] = read_fingerprint(place_of("fingerprint", metadata["fingerprint"]), records)
    return metadata
