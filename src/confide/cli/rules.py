"""Options that do not go together, and options that belong to others, as tables.

A row concerns every command that has the options that it names, or the commands that it names. Options are named by
their fields.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import click

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
    Apart("compare", "method groups by_class", "the methods are compared, for one threshold"),
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
            given, other = (names[one] for one in found)
            raise rule.error(f"{other} must be left out with {given}: {rule.why}")
    for need in BELONGS:
        if concerns(need, path, names) and (lacking := _lacking(need, typed, names)):
            given, others = lacking
            why = f": {need.why}" if need.why else ""
            raise need.error(f"{given} needs {(' and ' if need.every else ' or ').join(others)}{why}")


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
    return names[given], [names[one] for one in wanted]


def _name(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Argument):
        return parameter.metavar or str(parameter.name)
    return parameter.opts[0]
