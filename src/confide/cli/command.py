"""Commands as functions of values, and tables of options that exclude or need each other.

A row of a table applies to every command that has its options, or to the commands that it lists. Options are named by
their fields.

A parameter of a command is one option, or a frozen dataclass with a group of options. The parameter, or the fields of
the group, name rows of `confide.cli.options`. Options without a default are required. `--help` is short; `--help-all`
shows all options.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, cleandoc, signature
from typing import Any, NamedTuple, TypeAlias, cast, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from confide.cli.help import DEFAULT_LEDGER, Argument, Command, Option
from confide.cli.options import LOCAL, PLACE, row_of
from confide.errors import InputError

_PAYING = ("calibrate", "recalibrate", "evaluate", "watch")
_CALIBRATE, _EVALUATE, _FEDERATED_PLAN = ("calibrate",), ("evaluate",), ("federated plan",)
_COLUMNS = "probabilities prediction logits score_column label label_positions target truth losses loss bound"
_READING = "table skip_incomplete decimal"
_PEOPLE = "person max_records_per_person order sample"
_ACCOUNT = "again group one_cell charged_by ledger_key"


class Exclusive(NamedTuple):
    """No option of `without` may be typed with an option of `given`."""

    given: str
    without: str
    why: str
    commands: tuple[str, ...] = ()
    error: type[Exception] = click.UsageError


class Requires(NamedTuple):
    """Each option of `given` needs one of `to`, or with `every` all of them."""

    given: str
    to: str
    why: str = ""
    commands: tuple[str, ...] = ()
    every: bool = False
    error: type[Exception] = click.UsageError


APART = (
    Exclusive("probabilities", "prediction score_column losses", "only one of them may name columns"),
    Exclusive("prediction", "score_column losses", "only one of them may name columns"),
    Exclusive("score_column", "losses", "only one of them may name columns"),
    Exclusive("prediction score_column losses", "label truth classes logits", "it needs --probabilities"),
    Exclusive("probabilities score_column losses", "target", "it needs --prediction"),
    Exclusive("probabilities prediction score_column", "loss", "it needs --losses"),
    Exclusive("label", "truth", "either one class is true, or several can be"),
    Exclusive("truth", "score", "with several true classes, the share of missed ones is bounded"),
    Exclusive("truth", "logits", "logits need exactly one true class"),
    Exclusive("by_class", "by groups", "thresholds depend either on classes or on groups", _FEDERATED_PLAN),
    Exclusive("counts noisy_counts", "file table", "counts replace the table", _CALIBRATE),
    Exclusive("noisy_counts", f"counts ledger dataset {_ACCOUNT}",
              "their maker has chosen the records and spent the privacy loss", _CALIBRATE),
    Exclusive("examples", "epsilon", "unchanged records cannot be private", _EVALUATE),
    Exclusive("examples", "truth prediction score_column losses", "examples need sets of classes with one label",
    _EVALUATE), Exclusive("unlabelled", "score_column losses", "scores have no sets whose sizes count; it needs "
          "--probabilities"),
    Exclusive("compare", "method", "all methods are compared"),
    Exclusive("policy", "coordinator budget peer allow least_colluding", "the policy contains it"),
    Exclusive("second", "calibration", "an argument names the release; name it once"),
    Exclusive("file", "calibration", "an argument names the release; name it once",
              ("show", "verify", "report", "card")),
)  # fmt: skip
"""Options that exclude each other."""

BELONGS = (
    Requires("label_positions", "label"),
    Requires("logits", "probabilities"),
    Requires("by_class", "classes", "the names of all classes", _FEDERATED_PLAN),
    Requires("sample", "order", "it draws records by the columns of --order", error=InputError),
    Requires("person", "max_records_per_person order", every=True, error=InputError),
    Requires("max_records_per_person", "person order", every=True, error=InputError),
    Requires("order", "person max_records_per_person", every=True, error=InputError),
    Requires("ledger", "dataset", "they must be given together", _PAYING, error=InputError),
    Requires(f"dataset {_ACCOUNT}", "ledger", "the ledger charges", _PAYING, error=InputError),
    Requires(f"neighbors records_per_person n confidence groups parts width_bins {_PEOPLE} ledger dataset {_ACCOUNT}",
             "epsilon", "a private evaluation", _EVALUATE),
    Requires("examples", "out"),
    Requires("examples", "probabilities", commands=_EVALUATE),
    Requires(f"{_COLUMNS} {_READING}", "pilot", "it is about the pilot's columns",
             _FEDERATED_PLAN),
    Requires("also pilot", "compare", commands=_FEDERATED_PLAN),
    Requires("neighbors", "epsilon_at_most", commands=("verify",)),
)  # fmt: skip
"""Options that need others."""


def concerns(rule: Exclusive | Requires, path: str, fields: Iterable[str]) -> bool:
    """Whether a row applies to a command with these fields."""
    if rule.commands:
        return path in rule.commands
    others = rule.without if isinstance(rule, Exclusive) else rule.to
    names = set(fields)
    return bool(names.intersection(rule.given.split())) and bool(names.intersection(others.split()))


def check_together(path: str, typed: frozenset[str], command: click.Command) -> None:
    """Check the typed options against both tables.

    Raises
    ------
    click.UsageError, InputError
        The error of the first row that is violated.
    """
    names = {str(one.name): _name(one) for one in command.params}
    for rule in APART:
        if concerns(rule, path, names) and (found := _clash(rule, typed)):
            given, other = found
            raise _refusal(rule, names, other, f"must be left out with {names[given]}: {rule.why}")
    for need in BELONGS:
        if concerns(need, path, names) and (lacking := _lacking(need, typed, names)):
            given, others = lacking
            why = f": {need.why}" if need.why else ""
            raise _refusal(need, names, given, f"needs {(' and ' if need.every else ' or ').join(others)}{why}")


def _refusal(rule: Exclusive | Requires, names: Mapping[str, str], option: str, requirement: str) -> Exception:
    """The error of a row about an option."""
    if rule.error is InputError:
        return InputError(option, requirement)
    return click.UsageError(f"{names[option]} {requirement}")


def _clash(rule: Exclusive, typed: frozenset[str]) -> tuple[str, str] | None:
    """A typed option, and another one that it excludes."""
    given = [one for one in rule.given.split() if one in typed]
    others = [one for one in rule.without.split() if one in typed and one not in given]
    return (given[0], others[0]) if given and others else None


def _lacking(rule: Requires, typed: frozenset[str], names: Mapping[str, str]) -> tuple[str, list[str]] | None:
    """A typed option, and the options of which it needs one, or all."""
    given = next((one for one in rule.given.split() if one in typed), None)
    needed = [one for one in rule.to.split() if one in names]
    enough = all if rule.every else any
    if given is None or enough(one in typed for one in needed):
        return None
    return given, [names[one] for one in needed]


def _name(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Argument):
        return parameter.metavar or str(parameter.name)
    return parameter.opts[0]


def command(path: str, *, without: str = "", required: str = "") -> Callable[[Callable[..., int | None]], Command]:
    """Turn a function into a command.

    Parameters
    ----------
    path
        The words after `confide`, such as `ledger show`.
    without
        Fields of its groups that are not options of this command, between spaces; their defaults hold.
    required
        Fields that are required here, although they have a default elsewhere.
    """
    left_out, demanded = frozenset(without.split()), frozenset(required.split())

    def made(function: Callable[..., int | None]) -> Command:
        hints = get_type_hints(function)
        parameters = {
            one.name: (hints[one.name], MISSING if one.default is Parameter.empty else one.default)
            for one in signature(function).parameters.values()
        }
        options = {  # a field of two groups is one option
            name: _parameter(path, name, kind, MISSING if name in demanded else default)
            for name, kind, default in _leaves(parameters)
            if name not in left_out
        }

        def run(**given: object) -> int | None:
            typed = typed_fields()
            if path in _PAYING and "dataset" in typed and os.environ.get(DEFAULT_LEDGER):
                typed |= {"ledger"}
            check_together(path, typed, click.get_current_context().command)
            return function(**_values(parameters, given))

        name = path.rpartition(" ")[2]
        return Command(name, params=list(options.values()), callback=run, help=cleandoc(function.__doc__ or ""))

    return made


_Fields: TypeAlias = Mapping[str, tuple[Any, Any]]
"""Types and defaults by name, of the parameters of a function or the fields of a group."""


def _fields_of(group: type) -> _Fields:
    types = get_type_hints(group)
    return {one.name: (types[one.name], one.default) for one in fields(group)}


def _leaves(named: _Fields) -> Iterator[tuple[str, Any, Any]]:
    """The options among these, and in nested groups: name, type and default."""
    for name, (kind, default) in named.items():
        if is_dataclass(kind):
            yield from _leaves(_fields_of(cast(type, kind)))
        else:
            yield name, kind, default


def _values(named: _Fields, given: Mapping[str, object]) -> dict[str, Any]:
    """The given options, as values of these types."""
    groups = {name: cast(type, kind) for name, (kind, _) in named.items() if is_dataclass(kind)}
    single = {name: given[name] for name in named if name in given}
    return single | {name: kind(**_values(_fields_of(kind), given)) for name, kind in groups.items()}


def typed_fields() -> frozenset[str]:
    """The fields of the running command whose options or arguments were typed, even with their default values."""
    context = click.get_current_context()
    return frozenset(
        name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    )


def _parameter(path: str, name: str, kind: Any, default: Any) -> click.Parameter:
    """The option or argument of a field, by its row; a tuple type may be repeated."""
    row, required = row_of(path, name), default is MISSING
    several = get_origin(kind) is tuple
    taken = LOCAL if row.kind is PLACE and (" " in path or path == "demo") else row.kind
    more: dict[str, Any] = {"metavar": row.metavar, "required": required}
    more |= {} if default in (MISSING, None, ()) else {"default": default}
    made: Argument | Option
    if row.argument:
        made = Argument([name], type=taken, nargs=-1 if several else 1, **more)
        made.help, made.hidden = row.help, row.hidden
    else:
        flag = bool in (kind, *get_args(kind))
        more |= {"is_flag": True} if flag else {"type": taken, "multiple": several}
        names = row.names or (f"--{name.replace('_', '-')}",)
        made = Option([*names, name], help=row.help, show_default=True, **more)
    made.panel, made.everyday = row.panel, row.everyday
    return made
