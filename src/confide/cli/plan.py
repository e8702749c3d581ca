"""Commands that compute without private data: `confide plan`, of a calibration, and `budget plan`, of a year."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import click

from confide.arrays import GroupColumns
from confide.cli.commands import Budget, Plan
from confide.cli.output import fields_of, left_out_text, print_result, progress_bar
from confide.cli.request import read_request, split, take, take_columns
from confide.cli.values import Source
from confide.core import IN_WORDS, BudgetPlan, Pilot, PlannedReleases, Request, best_of, by_rules
from confide.core import Plan as CalibrationPlan
from confide.core import make_plan as plan_of_terms
from confide.core import plan as make_plan
from confide.ledger import decimal_form
from confide.support import FileKind, aligned, require
from confide.tables import ClassColumns, ColumnSpec, read_pilot


def plan(options: Plan) -> None:
    """Plan a calibration, and print the plan."""
    # The request, without what a plan does not depend on.
    arguments = read_request(options)
    columns = take_columns(arguments)
    source = None if options.pilot is None else Source(options.pilot, options.table, arguments.pop("decimal", "."))
    score = arguments.pop("score", "lac") if columns is None else columns.kind.name
    arguments = {"score": score, **arguments}
    take(arguments, ("about", "fingerprint", "partition", "decimal"))
    skip = arguments.pop("skip_incomplete", False)
    people = arguments.pop("people", None)
    if people is not None:
        arguments["records_per_person"] = people.bound(arguments.get("records_per_person"))
    division = take(arguments, ("by", "groups", "by_class"))

    # Plan, which checks public choices before the public sample is opened.
    options.output.check(FileKind.PAGE, *(() if source is None else source.files))
    planned = _plan(arguments, division, columns)
    left_out: dict[str, int] = {}
    if source is not None:
        sample, left_out = read_sample(source, columns, skip=skip)
        planned = replace(planned, pilot=Pilot.of(sample, arguments["score"]))
    options.output.write_page(planned)

    document = {**_document(planned), **left_out}
    heading = f"for each group or class, with {planned.n} records in it:" if division else None
    texts = (heading, planned, left_out_text(left_out), options.output.saved())
    print_result(document, *texts, as_json=options.as_json)


def _plan(arguments: Mapping[str, Any], division: Mapping[str, Any], columns: ColumnSpec | None) -> CalibrationPlan:
    """The plan of a request, or of its first group or class."""
    if not division:
        return make_plan(**arguments)

    # Groups and classes are planned alike, each as the first.
    classes = columns.classes if isinstance(columns, ClassColumns) else None
    names = division.get("groups", classes or (0, 1))  # their number changes nothing
    by: Any = "class" if division.get("by_class") else "group"
    rest = {name: value for name, value in arguments.items() if name != "n"}
    request = Request(by=by, names=GroupColumns(names) if isinstance(names, Mapping) else names, **rest)
    return plan_of_terms(next(iter(request.terms.values())), arguments.get("n", 1000))


def read_sample(source: Source, columns: ColumnSpec | None, *, skip: bool) -> tuple[Pilot, dict[str, int]]:
    """A public sample, and the number of its records left out."""
    columns = source.require_columns(columns)
    with source.open("reading") as (opened, progress):
        sample = read_pilot(opened, columns, skip_incomplete=skip, progress=progress)
        return sample, {"left_out": opened.left_out()} if skip else {}


def _document(planned: CalibrationPlan) -> dict[str, object]:
    """JSON values of a plan, under the names that scripts read."""
    population = planned.terms.population
    shifted = {} if population is None else {"population": population.fields(), "counted": planned.effective_n}
    return {
        **shifted,
        "records": planned.n,
        "alpha": float(planned.terms.alpha),
        "guarantee": fields_of(planned.guarantee, "kind", "coverage", "delta", "n", "n_min"),
        **fields_of(planned, "target_rank", "nonprivate_rank", "expected_coverage", "expected_excess"),
        **fields_of(planned, "coverage_at_most", "chance_of_all", "chance_beyond"),
        "desert": planned.gap,
        "records_needed": planned.records_needed,
        "warnings": list(planned.remarks),
        "privacy": {
            **fields_of(planned.privacy, "neighbors", "epsilon", "records_per_person"),
            "add_remove": planned.privacy.loss("add_remove"),
            "replace_one": planned.privacy.loss("replace_one"),
            "rho": planned.privacy.rho,
        },
        "pilot": None if planned.on_pilot is None else asdict(planned.on_pilot),
        "candidates": {"size": planned.candidates.size, "recipe": dict(planned.candidates.recipe)},
    }


# A year


def budget_plan(options: Budget) -> None:
    """Compare the rules of composition for a year."""
    # The year under each rule of composition.
    sizes = [_whole(number) for number in split(options.n)]
    with progress_bar("composing", lambda: None):
        plans = by_rules(**vars(options.year))
        rule = options.rule
        why = "with --dp-delta 0 only epsilons add up; give a delta above 0, or --rule basic"
        require("rule", rule in ("best", *plans), f"{rule} is not available: {why}")
        chosen = best_of(plans, sizes, options.alpha) if rule == "best" else plans[rule]  # type: ignore[index]
        rules = {
            name: [_worth(year, entry, sizes, options.alpha) for entry in year.entries] for name, year in plans.items()
        }

    # The chosen plan, and a table of each.
    texts: list[object] = [chosen]
    for name, year in plans.items():
        rows = [_row(entry, worth, sizes) for entry, worth in zip(year.entries, rules[name], strict=True)]
        texts.append(f"{IN_WORDS[name]}{', chosen' if year is chosen else ''}:\n{aligned(rows)}")
    document = {"plan": asdict(chosen), "statement": chosen.statement, "n": sizes, "rules": rules}
    print_result(document, *texts, as_json=options.as_json)


def _whole(text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise click.UsageError(f"--n must be whole numbers between commas; got {text!r}")
    return int(text)


def _worth(year: BudgetPlan, entry: PlannedReleases, sizes: list[int], alpha: str) -> dict[str, Any]:
    worth: dict[str, Any] = {"kind": entry.kind, "epsilon": entry.epsilon}
    if entry.kind == "calibration":
        coverage = [planned.expected_coverage for size in sizes if (planned := year.plan(size, alpha)) is not None]
        return {**worth, "expected_coverage": coverage}
    return {**worth, "records": year.records_of(entry, alpha)}


def _row(entry: PlannedReleases, worth: dict[str, Any], sizes: list[int]) -> tuple[str, str]:
    price = f"epsilon {decimal_form(entry.epsilon)} each"
    if entry.kind == "calibration":
        coverage = ", ".join(f"{share:.3f}" for share in worth["expected_coverage"])
        return entry.words, f"{price}; expected coverage {coverage} with {', '.join(map(str, sizes))} records"
    return entry.words, f"{price}; with {worth['records']} records or more, noise adds less than sampling does"
