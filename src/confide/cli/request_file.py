"""`confide request`: a TOML file with every argument of a request, each with the first sentence of its docstring."""

import json
import re
from collections.abc import Mapping, Sequence
from inspect import Parameter, cleandoc, signature
from typing import Any, is_typeddict

from confide.cli.commands import WriteRequest
from confide.cli.options import CHOICE_NAMES, COLUMN_NAMES, NOISE_NAMES, PEOPLE, PEOPLE_NAMES, REQUEST_NAMES
from confide.cli.request import split
from confide.core import Choices, GroupOptions, Options, calibrate, choose_score
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

# The arguments of each section, and the functions and classes whose docstrings describe them
_SECTIONS: Mapping[str, tuple[tuple[str, ...], tuple[Any, ...]]] = {
    "Columns": (COLUMN_NAMES, (ClassColumns, TargetColumns, ScoreColumn, LossColumns)),
    "Request": (REQUEST_NAMES, (Columns, calibrate_table, calibrate, Choices, Options, GroupOptions)),
    "People with several records": (PEOPLE_NAMES, (ContributionBound,)),
    "A private choice among scores": (CHOICE_NAMES, (choose_score,)),
    "Noisy counts that another engine made": (NOISE_NAMES, (read_published_counts,)),
    "The table": (("decimal",), (open_table,)),
}

# Sentences about arguments that these docstrings do not describe
_UNDESCRIBED = {
    "choose": "Two or more scores, or COLUMNS:SCORE for models: one is chosen privately on a share of the records.",
    "noise": "The law of the noise, such as 'discrete_laplace(scale=2,copies=2)' or 'discrete_gaussian(sigma=4)'.",
    "n_noisy": "A noisy number of records of its own.",
    "n_noise": "The law of n_noisy.",
    "share_low": "For two sides: the share of the loss of the lower one.",
}

# Defaults that no signature has
_DEFAULTS = {"neighbors": "add_remove", "n_min": 1, "records_per_person": 1, "mechanism": "slopes"}


def write_request(options: WriteRequest) -> None:
    """Write the file of `confide request`."""
    options.output.check(FileKind.REQUEST)
    options.output.save(written_request())


def written_request() -> str:
    """A request as TOML: every argument as a comment with its sentence and its default.

    Examples
    --------
    >>> print(written_request().splitlines()[0])
    # A request to confide. Remove the # before an argument to state it.
    """
    from textwrap import wrap

    lines = ["# A request to confide. Remove the # before an argument to state it."]
    for title, (names, sources) in _SECTIONS.items():
        lines += ["", f"# {title}"]
        prefix = f"{PEOPLE}." if names is PEOPLE_NAMES else ""
        sentences = _sentences(sources)
        defaults = _defaults(sources)
        for name in names:
            sentence = sentences.get(name, _UNDESCRIBED.get(name, ""))
            lines += ["", *wrap(sentence, 100, initial_indent="# ", subsequent_indent="# ")]
            lines.append(f"#{prefix}{name} = {_toml(defaults.get(name))}".rstrip())
    return "\n".join(lines) + "\n"


def _sentences(sources: Sequence[Any]) -> dict[str, str]:
    """The first sentence about each argument, of the first of these docstrings that describes it."""
    sentences: dict[str, str] = {}
    for source in sources:
        # The entries of the numpydoc section, each up to the end of its first sentence.
        sections = re.split(r"^(?:Returns|Raises|Warns|Examples|Notes)\n-+$", cleandoc(source.__doc__), flags=re.M)
        parameters = sections[0].partition("Parameters\n----------\n")[2] + "\n"
        for names, body in re.findall(r"^(\S.*)\n((?:(?: {4}.*)?\n)+)", parameters, re.M):
            sentence = re.split(r"(?<=[^.]\.)\s+", " ".join(body.split()))[0]
            if not sentence.startswith(("As in", "The same")):
                sentences = dict.fromkeys(split(names), sentence) | sentences
    return sentences


def _defaults(sources: Sequence[Any]) -> dict[str, Any]:
    """The default of each argument, of the first of these signatures that has one."""
    with_signature = [source for source in sources if not is_typeddict(source)]
    parameters = [parameter for source in with_signature for parameter in signature(source).parameters.values()]
    with_default = [parameter for parameter in parameters if parameter.default is not Parameter.empty]
    return {parameter.name: parameter.default for parameter in reversed(with_default)} | _DEFAULTS


def _toml(value: Any) -> str:
    """A text, a number or a boolean, which TOML writes as JSON does; nothing for None."""
    return "" if value is None else json.dumps(value)
