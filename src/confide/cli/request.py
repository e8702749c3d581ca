"""Requests: typed options, a TOML file and NAME=VALUE pairs, under the names of the Python API.

What two of them state is refused: a file that was reviewed is never overridden.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from datetime import date, time
from inspect import Parameter, cleandoc, signature
from pathlib import Path
from typing import Any

import click

from confide.cli.choices import levels_of, parse_candidates, split
from confide.cli.command import command
from confide.cli.values import GroupOptions, Output, read_fingerprint
from confide.core import Choices, ClassShift, Options, calibrate, choose_score
from confide.errors import InputError, InputTypeError
from confide.support import FileKind, FileLocation, as_place, check_unknown_arguments, read_text
from confide.tables import (
    ClassColumns,
    Columns,
    ColumnSpec,
    ContributionBound,
    LossColumns,
    ScoreColumn,
    TargetColumns,
    calibrate_table,
    open_table,
)
from confide.warehouse import read_published_counts

# The arguments of a request


PEOPLE = "people"

_KINDS = {
    "column": ScoreColumn,
    "prediction": TargetColumns,
    "losses": LossColumns,
    "truth": LossColumns,
    "probabilities": ClassColumns,
}
"""The columns of a score, by the first of these arguments that is stated."""

_NAMES = ("classes", "groups", "order", "choose")
_LISTS = ("alpha", "by", "probabilities", "prediction", "truth", "losses")
"""The arguments whose text is split at commas; those of `_LISTS` may also be a single name."""

_TYPES: tuple[tuple[tuple[str, ...], tuple[type, ...], str], ...] = (
    (("skip_incomplete", "by_class", "logits", "label_positions"), (bool,), "true or false"),
    (("label", "target", "column", "score", "loss", "weights", "partition", "fingerprint", "noise", "n_noise", "person",
      "sample"), (str,), "a text"),
    (("classes", "order", "choose"), (tuple,), "a list, such as a,b"),
    (("groups",), (tuple, dict), "a list, such as a,b"),
    ((PEOPLE,), (dict,), "stated as people.person, people.most and people.order"),
)  # fmt: skip
"""The types of arguments that the API does not check."""

_SECTIONS = {
    "Columns": (ClassColumns, TargetColumns, ScoreColumn, LossColumns),
    "Request": (Columns, calibrate_table, calibrate, Choices, Options),
    "People with several records": (ContributionBound,),
    "A private choice among scores": (choose_score,),
    "Noisy counts that another engine made": (read_published_counts,),
    "The table": (open_table,),
}
"""Whose docstrings describe the arguments, in the order of a written request."""

_OF_REQUEST = (
    "alpha", "epsilon", "rho", "neighbors", "n", "n_min", "delta", "records_per_person", "mechanism", "candidates",
    "unit", "by", "groups", "by_class", "partition", "shares", "share_low", "class_weights", "weights", "weight_bound",
    "skip_incomplete", "about", "fingerprint",
)  # fmt: skip
_OF_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "Columns": ("probabilities", "label", "classes", "score", "label_positions", "logits", "prediction", "target",
                "column", "losses", "loss", "bound", "truth"),
    "Request": _OF_REQUEST,
    "People with several records": ("person", "most", "order", "sample"),
    "A private choice among scores": ("choose", "choice_share", "largest_size"),
    "Noisy counts that another engine made": ("noise", "n_noisy", "n_noise"),
    "The table": ("decimal",),
}  # fmt: skip
"""The arguments of a written request, by its section."""

COLUMN_NAMES = _OF_SECTIONS["Columns"]
"""The arguments that name the columns of a score, and the score."""

NAMES = frozenset(name for title, names in _OF_SECTIONS.items() if not title.startswith("People") for name in names) | {
    PEOPLE
}
"""The names that a request may state."""


# Reading


def read_request(file: FileLocation | None, pairs: tuple[str, ...], typed: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a request, each stated once: in a file, by NAME=VALUE, or by an option that is not None.

    Raises
    ------
    InputError, InputTypeError
        If the file or a pair cannot be read, a name is unknown, or an argument is stated twice.

    Examples
    --------
    >>> read_request(None, ("delta=0.05", "people.person=patient", "groups=a,b"), {"alpha": "0.1", "n": None})
    {'delta': 0.05, 'people': {'person': 'patient'}, 'groups': ('a', 'b'), 'alpha': '0.1'}
    """
    found: dict[str, Any] = {}
    if file is not None:
        try:
            found = _plain(tomllib.loads(read_text(file)))
        except tomllib.TOMLDecodeError as error:
            raise InputError("request", f"{str(file)!r} must be TOML: {error}") from None
    for pair in pairs:
        _add(found, _parse(pair), "--set")
    for name, value in typed.items():
        if value is not None:
            _add(found, {name: value}, "an option")
    check_unknown_arguments("calibrate", found, NAMES, _ELSEWHERE)
    checked = {name: _checked(name, value) for name, value in found.items()}
    check_unknown_arguments(PEOPLE, checked.get(PEOPLE, {}), [one.name for one in fields(ContributionBound)])
    return checked


_ELSEWHERE = dict.fromkeys(
    ("ledger", "dataset", "again"), "A request states no ledger; give --ledger and --dataset"
) | dict.fromkeys(("person", "most", "order", "sample"), "State it as people.person, people.most, people.order")


def _parse(pair: str) -> dict[str, Any]:
    """A TOML value, such as 0.05, true or ["a", "b"], or else the text itself, by its dotted name."""
    name, equals, text = (part.strip() for part in pair.partition("="))
    if not equals or re.fullmatch(r"[A-Za-z_]\w*(\.[\w-]+)*", name) is None:
        raise InputError("set", "must be NAME=VALUE, such as delta=0.05", got=repr(pair))
    try:
        value = _plain(tomllib.loads(f"value = {text}"))
    except tomllib.TOMLDecodeError:
        value = {"value": text}
    parsed: Any = value["value"] if len(value) == 1 else text
    for key in reversed(name.split(".")):
        parsed = {key: parsed}
    found: dict[str, Any] = parsed
    return found


def _plain(value: Any) -> Any:
    """The value with dates as texts, which is how a request states them."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return str(value) if isinstance(value, date | time) else value


def _add(found: dict[str, Any], more: Mapping[str, Any], source: str) -> None:
    """Add arguments to those that were found; tables with different names are joined."""
    for name, value in more.items():
        if isinstance(value, Mapping) and isinstance(found.get(name), dict):
            _add(found[name], value, source)
        elif name in found:
            raise InputError(name, f"must be stated once; {source} states it again")
        else:
            found[name] = dict(value) if isinstance(value, Mapping) else value


def _checked(name: str, value: Any) -> Any:
    """The value with lists as tuples, of the type of the argument; a text of names between commas is a list."""
    if name == PEOPLE and isinstance(value, Mapping):
        return {key: _checked(key, item) for key, item in value.items()}
    if isinstance(value, str) and (name in _NAMES or (name in _LISTS and "," in value and "*" not in value)):
        value = split(value)
    if isinstance(value, list):
        value = tuple(value)
    for names, kinds, must in _TYPES:
        if name in names and not isinstance(value, kinds):
            raise InputTypeError(name, f"must be {must}", got=type(value).__name__)
    return value


@dataclass(frozen=True, kw_only=True)
class RequestOptions:
    """The everyday options of a request, its file, and its other arguments as NAME=VALUE."""

    probabilities: str | None = None
    classes: str | None = None
    label: str | None = None
    prediction: str | None = None
    target: str | None = None
    score_column: str | None = None
    score: str | None = None
    alpha: str | None = None
    epsilon: float | None = None
    neighbors: str | None = None
    n: int | None = None
    by: str | None = None
    groups: str | None = None
    request_file: Path | None = None
    settings: tuple[str, ...] = ()

    def read(self) -> dict[str, Any]:
        """The arguments that are stated, under the names of the API."""
        typed = {name: value for name, value in vars(self).items() if name not in ("request_file", "settings")}
        if typed["alpha"] is not None:
            levels = levels_of(typed["alpha"])
            typed["alpha"] = levels if len(levels) > 1 else levels[0]
        typed["column"] = typed.pop("score_column")
        if self.by is not None and self.groups is not None:
            divided = GroupOptions(self.by, self.groups).arguments()
            typed |= {name: divided[name] for name in ("by", "groups")}
        return read_request(self.request_file, self.settings, typed)


# Values


def take_columns(request: dict[str, Any]) -> ColumnSpec | None:
    """Take the columns of the score out of a request; None if it names none."""
    kind: Any = next((kind for name, kind in _KINDS.items() if name in request), None)
    of_kind = set() if kind is None else {one.name for one in fields(kind)} - {"candidates"}
    named = {name: request.pop(name) for name in list(request) if name in of_kind}
    if kind is None:
        return None
    if others := [name for name in COLUMN_NAMES if name in request]:
        stated = next(name for name in _KINDS if name in named)
        raise InputError(others[0], f"must be left out with {stated}, which names the columns of another score")
    made: ColumnSpec = kind(**named)
    return made


def take_arguments(request: dict[str, Any]) -> dict[str, Any]:
    """Take the arguments of `calibrate_table` out of a request, as values of the API."""
    found = {name: request.pop(name) for name in (*_OF_REQUEST, PEOPLE) if name in request}
    if "alpha" not in found:
        raise click.UsageError("Missing option '--alpha'.")
    if isinstance(found.get("candidates"), str):
        found["candidates"] = parse_candidates(found["candidates"])
    if PEOPLE in found:
        found[PEOPLE] = _people(found[PEOPLE])
    if isinstance(found["alpha"], tuple):
        for name in ("class_weights", "weights", "weight_bound"):
            if name in found:
                raise InputError(name, "must be left out with several levels: weights belong to one threshold")
    if isinstance(shares := found.get("class_weights"), Mapping) and set(shares) == {"source", "target"}:
        found["class_weights"] = ClassShift.of_shares(shares["source"], shares["target"])
    return found


def _people(stated: Mapping[str, Any]) -> ContributionBound:
    """The bound on records per person."""
    for name in ("person", "most", "order"):
        if name not in stated:
            raise InputError(f"{PEOPLE}.{name}", "must be stated with the others of people")
    return ContributionBound(**stated)


def take_words(arguments: dict[str, Any], *records: FileLocation) -> dict[str, Any]:
    """Take the public metadata out of arguments; a fingerprint is read from its file, which is none of `records`."""
    found: dict[str, Any] = {name: arguments.pop(name) for name in ("about", "fingerprint") if name in arguments}
    if "fingerprint" in found:
        found["fingerprint"] = read_fingerprint(as_place(found["fingerprint"]), records)
    return found


# Writing


@dataclass(frozen=True)
class Described:
    """An argument with its first sentence and its default; MISSING if it has none."""

    name: str
    sentence: str
    default: Any


def described(title: str) -> Iterator[Described]:
    """The arguments of a section, from the docstrings and signatures of the API."""
    sentences: dict[str, str] = {}
    defaults: dict[str, Any] = {}
    for source in _SECTIONS[title]:
        for name, sentence in _sentences(source.__doc__ or "").items():
            if not sentence.startswith(("As in", "The same")):
                sentences.setdefault(name, sentence)
        for one in () if source in (Choices, Options) else signature(source).parameters.values():
            if one.default is not Parameter.empty:
                defaults.setdefault(one.name, one.default)
    defaults |= {"neighbors": "add_remove", "n_min": 1, "records_per_person": 1, "mechanism": "slopes"}
    for name in _OF_SECTIONS[title]:
        yield Described(name, sentences.get(name, _UNWRITTEN.get(name, "")), defaults.get(name, MISSING))


_UNWRITTEN = {
    "choose": "Two or more scores, or COLUMNS:SCORE for models: one is chosen privately on a share of the records.",
    "noise": "The law of the noise, such as 'discrete_laplace(scale=2,copies=2)' or 'discrete_gaussian(sigma=4)'.",
    "n_noisy": "A noisy number of records of its own.",
    "n_noise": "The law of n_noisy.",
    "share_low": "For two sides: the share of the loss of the lower one.",
}
"""Sentences about arguments that the docstrings of these functions do not describe."""


def _sentences(doc: str) -> dict[str, str]:
    """The first sentence about each parameter of a docstring."""
    found: dict[str, str] = {}
    text = re.split(r"^(?:Returns|Raises|Warns|Examples|Notes)\n-+$", cleandoc(doc), flags=re.MULTILINE)[0]
    parameters = text.partition("Parameters\n----------\n")[2] + "\n"
    for names, body in re.findall(r"^(\S.*)\n((?:(?: {4}.*)?\n)+)", parameters, re.MULTILINE):
        words = " ".join(body.split())
        sentence = re.split(r"(?<=[^.]\.)\s+", words)[0]
        found |= dict.fromkeys(split(names), sentence)
    return found


def written_request() -> str:
    """A request as TOML: every argument as a comment with its sentence and its default.

    Examples
    --------
    >>> print(written_request().splitlines()[0])
    # A request to confide calibrate, plan and sql. Remove the # before an argument to state it.
    """
    from textwrap import wrap

    lines = ["# A request to confide calibrate, plan and sql. Remove the # before an argument to state it."]
    for title in _OF_SECTIONS:
        lines += ["", f"# {title}"]
        for one in described(title):
            prefix = f"{PEOPLE}." if title.startswith("People") else ""
            lines += ["", *wrap(one.sentence, 100, initial_indent="# ", subsequent_indent="# ")]
            lines.append(f"#{prefix}{one.name} = {_toml(one.default)}".rstrip())
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """A default as TOML; empty if there is none."""
    if value is None or value is MISSING:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


@command("request")
def request(*, output: Output) -> None:
    """Write a file with all arguments of a request, to edit and to review.

    It is TOML for --request of `confide calibrate`, `plan` and `sql`: every
    argument is a comment with its sentence and its default. An argument that
    the file states cannot be changed by an option or by --set.

    Example: confide request --out request.toml
    """
    output.check(FileKind.REQUEST)
    output.save(written_request())
