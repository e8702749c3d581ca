"""`confide request`: a file with every argument of a request, its sentence and its default."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass
from inspect import Parameter, cleandoc, signature
from typing import Any

from confide.cli.commands import WriteRequest
from confide.cli.names import CHOICE_NAMES, COLUMN_NAMES, NOISE_NAMES, PEOPLE, REQUEST_NAMES
from confide.cli.request import split
from confide.core import Choices, Options, calibrate, choose_score
from confide.support import FileKind
from confide.tables import (
    ClassColumns,
    Columns,
    ContributionBound,
    LossColumns,
    ScoreColumn,
    TargetColumns,
    calibrate_table,
    open_table,
    read_published_counts,
)

_SECTIONS: Mapping[str, tuple[tuple[str, ...], tuple[Any, ...]]] = {
    "Columns": (COLUMN_NAMES, (ClassColumns, TargetColumns, ScoreColumn, LossColumns)),
    "Request": (REQUEST_NAMES, (Columns, calibrate_table, calibrate, Choices, Options)),
    "People with several records": (("person", "most", "order", "sample"), (ContributionBound,)),
    "A private choice among scores": (CHOICE_NAMES, (choose_score,)),
    "Noisy counts that another engine made": (NOISE_NAMES, (read_published_counts,)),
    "The table": (("decimal",), (open_table,)),
}
"""The arguments of a written request, and whose docstrings describe them, by section."""

_UNWRITTEN = {
    "choose": "Two or more scores, or COLUMNS:SCORE for models: one is chosen privately on a share of the records.",
    "noise": "The law of the noise, such as 'discrete_laplace(scale=2,copies=2)' or 'discrete_gaussian(sigma=4)'.",
    "n_noisy": "A noisy number of records of its own.",
    "n_noise": "The law of n_noisy.",
    "share_low": "For two sides: the share of the loss of the lower one.",
}
"""Sentences about arguments that the docstrings of these functions do not describe."""


@dataclass(frozen=True)
class Described:
    """An argument with its first sentence and its default; MISSING if it has none."""

    name: str
    sentence: str
    default: Any


def described(title: str) -> Iterator[Described]:
    """The arguments of a section, from the docstrings and signatures of the API."""
    # The first source that describes an argument, or has a default, is used.
    names, sources = _SECTIONS[title]
    sentences: dict[str, str] = {}
    defaults: dict[str, Any] = {}
    for source in sources:
        for name, sentence in _sentences(source.__doc__ or "").items():
            if not sentence.startswith(("As in", "The same")):
                sentences.setdefault(name, sentence)
        for parameter in () if source in (Choices, Options) else signature(source).parameters.values():
            if parameter.default is not Parameter.empty:
                defaults.setdefault(parameter.name, parameter.default)
    defaults |= {"neighbors": "add_remove", "n_min": 1, "records_per_person": 1, "mechanism": "slopes"}
    for name in names:
        yield Described(name, sentences.get(name, _UNWRITTEN.get(name, "")), defaults.get(name, MISSING))


def _sentences(doc: str) -> dict[str, str]:
    # The entries of the numpydoc section, each up to the end of its first sentence.
    sentences: dict[str, str] = {}
    text = re.split(r"^(?:Returns|Raises|Warns|Examples|Notes)\n-+$", cleandoc(doc), flags=re.MULTILINE)[0]
    parameters = text.partition("Parameters\n----------\n")[2] + "\n"
    for names, body in re.findall(r"^(\S.*)\n((?:(?: {4}.*)?\n)+)", parameters, re.MULTILINE):
        words = " ".join(body.split())
        sentences |= dict.fromkeys(split(names), re.split(r"(?<=[^.]\.)\s+", words)[0])
    return sentences


def written_request() -> str:
    """A request as TOML: every argument as a comment with its sentence and its default.

    Examples
    --------
    >>> print(written_request().splitlines()[0])
    # A request to confide. Remove the # before an argument to state it.
    """
    from textwrap import wrap

    lines = ["# A request to confide. Remove the # before an argument to state it."]
    for title in _SECTIONS:
        lines += ["", f"# {title}"]
        for argument in described(title):
            prefix = f"{PEOPLE}." if title.startswith("People") else ""
            lines += ["", *wrap(argument.sentence, 100, initial_indent="# ", subsequent_indent="# ")]
            lines.append(f"#{prefix}{argument.name} = {_toml(argument.default)}".rstrip())
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if value is None or value is MISSING:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def request(options: WriteRequest) -> None:
    """Write the file."""
    options.output.check(FileKind.REQUEST)
    options.output.save(written_request())
