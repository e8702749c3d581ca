"""Options that do not go together, and options that belong to others, as tables.

A row concerns every command that has the options that it names, or the commands that it names. Options are named by
their fields.

Commands as functions of values: their options are the rows of one table, their help is short until all is asked for.

A parameter of a command is a group of options, which is a frozen dataclass, or one option. The fields of the group, or
the parameter, name rows of `confide.cli.options`; what has no default is required.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, cleandoc, signature
from textwrap import indent
from typing import Any, NamedTuple, TypeAlias, cast, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from confide.cli.options import LOCAL, PANELS, PLACE, Row, row_of
from confide.errors import InputError

_PAYING = ("calibrate", "recalibrate", "evaluate", "watch", "randomise-labels")
_CALIBRATE, _COUNTED = ("calibrate",), ("calibrate", "sql")
_EVALUATE, _PLAN, _FEDERATED_PLAN = ("evaluate",), ("plan",), ("federated plan",)
_COLUMNS = "probabilities prediction logits score_column label label_positions target truth losses loss bound"
_READING = "table skip_incomplete decimal"
_BUDGET = "epsilon rho neighbors records_per_person n_min n_typical selector n mechanism schedule"
_PEOPLE, _GROUPS = "person max_records_per_person order sample", "by groups by_class"
_SHIFT = "class_weights source_shares target_shares weight_column weight_bound"
_ACCOUNT = "again group one_cell charged_by ledger_key"


class Apart(NamedTuple):
    """With any of `given` none of `without` may be typed."""

    given: str
    without: str
    why: str
    commands: tuple[str, ...] = ()
    error: type[Exception] = click.UsageError


class Belongs(NamedTuple):
    """Each of `given` needs one of `to`, or with `every` all of them."""

    given: str
    to: str
    why: str = ""
    commands: tuple[str, ...] = ()
    every: bool = False
    error: type[Exception] = click.UsageError


APART = (
    Apart("probabilities", "prediction score_column losses", "one of them says what is read of each record"),
    Apart("prediction", "score_column losses", "one of them says what is read of each record"),
    Apart("score_column", "losses", "one of them says what is read of each record"),
    Apart("prediction score_column losses", "label truth classes logits", "it belongs to --probabilities"),
    Apart("probabilities score_column losses", "target", "it belongs to --prediction"),
    Apart("probabilities prediction score_column", "loss", "it belongs to --losses"),
    Apart("label", "truth", "one class is true, or several can be"),
    Apart("truth", "score", "of several true classes the share that is missed is bounded"),
    Apart("truth", "logits", "they are of classes, of which one is true"),
    Apart("unit", "candidates", "both say how candidates are spread", _COUNTED),
    Apart("by_class", "by groups", "thresholds depend on classes, or on groups", (*_COUNTED, *_FEDERATED_PLAN)),
    Apart(_GROUPS, "n", "the sizes of groups stay secret", _CALIBRATE, InputError),
    Apart("class_weights", "source_shares target_shares", "weights are given, or follow from shares"),
    Apart("class_weights source_shares target_shares", "weight_column", "a shift is of classes, or of records",
          _CALIBRATE),
    Apart(_GROUPS, _SHIFT, "thresholds per group or class keep their promise under every shift of shares",
          _CALIBRATE),
    Apart("counts plan", _SHIFT, "weights of classes and records are not counted in SQL", _CALIBRATE),
    Apart("counts plan", "file table decimal", "counts are what a warehouse made of a table", _CALIBRATE),
    Apart("plan", f"alpha delta {_COLUMNS} classes score {_BUDGET} candidates unit {_PEOPLE} {_GROUPS} skip_incomplete",
          "the plan has the request", _CALIBRATE),
    Apart("label_epsilon", f"{_BUDGET} {_PEOPLE} {_GROUPS} partition {_SHIFT} ledger dataset {_ACCOUNT}",
          "it was paid where the labels were randomised, and belongs to one threshold: of the options for privacy, "
          "people, groups, shifts and the ledger give --delta alone", _CALIBRATE),
    Apart("label_epsilon", "counts plan prediction score_column losses truth", "labels were randomised", _CALIBRATE),
    Apart("examples", "epsilon schedule", "records as they are cannot be private", _EVALUATE),
    Apart("examples", "truth prediction score_column losses", "examples are sets of one label's classes", _EVALUATE),
    Apart("unlabelled", "score_column losses", "of scores there are no sets whose sizes count; it needs "
          "--probabilities"),
    Apart("dbt", "table", "the model says it, as ref('records')"),
    Apart("compare", "method", "the methods are compared"),
    Apart("policy", "coordinator budget peer allow least_colluding", "the policy states it"),
    Apart("second", "calibration", "an argument names the release; name it once"),
    Apart("file", "calibration", "an argument names the release; name it once", ("show", "verify", "report")),
)  # fmt: skip
"""Options that do not go together."""

BELONGS = (
    Belongs("label_positions", "label"),
    Belongs("logits", "probabilities"),
    Belongs("label_epsilon", "probabilities label", every=True),
    Belongs("by_class", "probabilities label", commands=_COUNTED, every=True),
    Belongs("by_class", "classes", "the names of all classes", _FEDERATED_PLAN),
    Belongs("groups", "by", "the column of each record's group", _COUNTED),
    Belongs("by", "groups", "the public list of its values", _COUNTED),
    Belongs("partition", "by by_class plan", "it names a division into groups", _CALIBRATE),
    Belongs("partition", "ledger", commands=_CALIBRATE),
    Belongs("source_shares", "target_shares"),
    Belongs("target_shares", "source_shares"),
    Belongs("weight_column", "weight_bound", commands=_CALIBRATE),
    Belongs("weight_bound", "weight_column", commands=_CALIBRATE),
    Belongs("plan", "counts", "what the query of `confide sql` gave", _CALIBRATE),
    Belongs("sample", "order", "it draws records by what --order names", error=InputError),
    Belongs("person", "max_records_per_person order", every=True, error=InputError),
    Belongs("max_records_per_person", "person order", every=True, error=InputError),
    Belongs("order", "person max_records_per_person", every=True, error=InputError),
    Belongs("ledger", "dataset", "they must be given together", _PAYING, error=InputError),
    Belongs(f"dataset {_ACCOUNT}", "ledger", "the ledger pays", _PAYING, error=InputError),
    Belongs(f"neighbors records_per_person n confidence groups parts width_bins {_PEOPLE} ledger dataset {_ACCOUNT}",
            "epsilon schedule", "a private evaluation", _EVALUATE),
    Belongs("examples", "out"),
    Belongs("examples", "probabilities", commands=_EVALUATE),
    Belongs("watch_epsilon tolerance drop looks", "watch_batch"),
    Belongs(f"{_COLUMNS} classes {_READING}", "pilot", "columns, and how they are read, are those of the pilot",
            _PLAN),
    Belongs(f"{_COLUMNS} {_READING}", "pilot", "columns, and how they are read, are those of the pilot",
            _FEDERATED_PLAN),
    Belongs("also pilot", "compare", commands=_FEDERATED_PLAN),
    Belongs("neighbors", "epsilon_at_most", commands=("verify",)),
    Belongs("seconds", "mechanism", "the library's own are run a fixed number of times", error=InputError),
)  # fmt: skip
"""Options that need others."""


def concerns(rule: Apart | Belongs, path: str, fields: Iterable[str]) -> bool:
    """Whether a command has what a row is about."""
    if rule.commands:
        return path in rule.commands
    others = rule.without if isinstance(rule, Apart) else rule.to
    known = set(fields)
    return bool(known.intersection(rule.given.split())) and bool(known.intersection(others.split()))


def check_together(path: str, typed: frozenset[str], command: click.Command) -> None:
    """Refuse options that do not go together, or that lack others, by the names that were typed.

    Raises
    ------
    click.UsageError, InputError
        As the row says.
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


def _refusal(rule: Apart | Belongs, names: Mapping[str, str], option: str, requirement: str) -> Exception:
    """What a row raises of an option, which it is about by its parameter."""
    if rule.error is InputError:
        return InputError(option, requirement)
    return click.UsageError(f"{names[option]} {requirement}")


def _clash(rule: Apart, typed: frozenset[str]) -> tuple[str, str] | None:
    """An option that was typed, and one that does not go with it."""
    given = [one for one in rule.given.split() if one in typed]
    others = [one for one in rule.without.split() if one in typed and one not in given]
    return (given[0], others[0]) if given and others else None


def _lacking(rule: Belongs, typed: frozenset[str], names: Mapping[str, str]) -> tuple[str, list[str]] | None:
    """An option that was typed, and those of which it needs one, or all."""
    given = next((one for one in rule.given.split() if one in typed), None)
    wanted = [one for one in rule.to.split() if one in names]
    enough = all if rule.every else any
    if given is None or enough(one in typed for one in wanted):
        return None
    return given, [names[one] for one in wanted]


def _name(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Argument):
        return parameter.metavar or str(parameter.name)
    return parameter.opts[0]


_WIDEST = 22
"""Longer names have a line of their own."""

_FEW = 12
"""A command with at most so many options shows all of them at once."""

_ALL = "show all options"


class Argument(click.Argument):
    """An argument with its help."""

    row: Row
    help = ""
    hidden = False

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The name, in brackets where it may be left out; nothing if help does not show it."""
        name = str(self.metavar)
        return [] if self.hidden else [name if self.required else f"[{name}]"]

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The name, and what it is for."""
        text = f"{self.help}  [required]" if self.required else self.help
        return None if self.hidden else (self.get_usage_pieces(ctx)[0], text)


class Option(click.Option):
    """An option with its panel."""

    row: Row


class Command(click.Command):
    """A command whose examples stand as they are written, and whose options stand in their panels."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own, `--help`, and `--help-all`, if `--help` does not show all."""
        found = super().get_params(ctx)
        if len(self.everyday) == len(self.shown) or ctx.meta.get(_ALL):
            return found
        text = f"Show all {len(self.shown)} arguments and options, and exit."
        more: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False, "callback": _show_all}
        return [*found, click.Option(["--help-all"], help=text, **more)]

    @property
    def shown(self) -> list[click.Parameter]:
        """All that help may show."""
        return [one for one in self.params if not getattr(one, "hidden", False)]

    @property
    def everyday(self) -> list[click.Parameter]:
        """What `--help` shows: arguments, what is required, and what is used every day; all of few."""
        if len(self.shown) <= _FEW:
            return self.shown
        return [one for one in self.shown if not isinstance(one, Option) or one.required or one.row.everyday]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The usage, the docstring and the panels; later versions of click would show arguments twice."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_options(ctx, formatter)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The docstring."""
        _write_text(self.help, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Arguments and options, panel by panel."""
        own = self.shown if ctx.meta.get(_ALL) else self.everyday
        _write_parameters([*own, *(one for one in self.get_params(ctx) if one not in self.params)], ctx, formatter)


class Group(click.Group):
    """Commands below a name of their own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Whoever names no command asks what there is, which is no mistake."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """What the command returns; an interruption is an end like others, before which click prints an empty line."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.Abort from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order in which they are used."""
        return list(self.commands)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The text."""
        _write_text(self.help, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands, each with its first sentence; then the options."""
        rows = [(name, self.commands[name].get_short_help_str(limit=200)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
        _write_parameters(self.get_params(ctx), ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What follows, as it is written."""
        if self.epilog:
            formatter.write(f"\n{self.epilog}\n")


def command(path: str, *, without: str = "", required: str = "") -> Callable[[Callable[..., int | None]], Command]:
    """Make a command of a function.

    Parameters
    ----------
    path
        What is typed after `confide`, such as `ledger show`.
    without
        Fields of its groups that are no options of this command, between spaces; their defaults hold.
    required
        Fields that have a default elsewhere, and none here.
    """
    left_out, demanded = frozenset(without.split()), frozenset(required.split())

    def made(function: Callable[..., int | None]) -> Command:
        hints = get_type_hints(function)
        parameters = {
            one.name: (hints[one.name], MISSING if one.default is Parameter.empty else one.default)
            for one in signature(function).parameters.values()
        }
        options = {  # what two groups have is one option
            name: _parameter(path, name, kind, MISSING if name in demanded else default)
            for name, kind, default in _leaves(parameters)
            if name not in left_out
        }

        def run(**given: object) -> int | None:
            check_together(path, typed_here(), click.get_current_context().command)
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
    """The options among these, and in groups among these, however deep: name, type and default."""
    for name, (kind, default) in named.items():
        if is_dataclass(kind):
            yield from _leaves(_fields_of(cast(type, kind)))
        else:
            yield name, kind, default


def _values(named: _Fields, given: Mapping[str, object]) -> dict[str, Any]:
    """What was given, as values of these types."""
    groups = {name: cast(type, kind) for name, (kind, _) in named.items() if is_dataclass(kind)}
    single = {name: given[name] for name in named if name in given}
    return single | {name: kind(**_values(_fields_of(kind), given)) for name, kind in groups.items()}


def typed_here() -> frozenset[str]:
    """The fields of the command that runs whose options or arguments were typed, be it with their defaults."""
    context = click.get_current_context()
    return frozenset(
        name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    )


def _parameter(path: str, name: str, kind: Any, default: Any) -> click.Parameter:
    """The option or argument of a field, of which its row says what is typed, and its type how often."""
    row, required = row_of(path, name), default is MISSING
    several = get_origin(kind) is tuple
    taken = LOCAL if row.kind is PLACE and (" " in path or path in ("doctor", "demo")) else row.kind
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
    made.row = row
    return made


def _show_all(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()


def _write_text(text: str | None, formatter: click.HelpFormatter) -> None:
    """Paragraphs; those that are indented stay as they are."""
    for paragraph in cleandoc(text or "").split("\n\n"):
        formatter.write_paragraph()
        with formatter.indentation():
            if paragraph.startswith(" "):
                formatter.write(indent(paragraph, " " * formatter.current_indent) + "\n")
            else:
                formatter.write_text(paragraph)


def _write_parameters(
    parameters: Sequence[click.Parameter], ctx: click.Context, formatter: click.HelpFormatter
) -> None:
    panels: Mapping[str, list[tuple[str, str]]] = {title: [] for title in ("Arguments", *PANELS, "Options")}
    for one in parameters:
        title = "Arguments" if isinstance(one, click.Argument) else one.row.panel if isinstance(one, Option) else ""
        if record := one.get_help_record(ctx):
            panels[title or "Options"].append(record)
    for title, rows in panels.items():
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows, col_max=_WIDEST)


def walk(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """The command, and all below it, each with the words that name it."""
    yield words, command
    for name, below in getattr(command, "commands", {}).items():
        yield from walk(below, (*words, name))
