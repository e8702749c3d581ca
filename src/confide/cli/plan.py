"""`confide plan`: what a private calibration will promise and cost, before any data is touched."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import click

from confide.cli import options as o
from confide.cli.candidates import parse_candidates
from confide.cli.columns import Columns
from confide.cli.output import check_output, emit, say, say_left_out
from confide.cli.parameters import command
from confide.cli.shift import ClassShiftOptions, WeightBound
from confide.planning import Plan
from confide.planning import plan as make_plan
from confide.support import Kind
from confide.tables import files_of, read_pilot
from confide.watching import WatchPower, watch_power


@command
def plan(
    *,
    alpha: o.Alpha,
    n: Annotated[
        int,
        o.promise(
            "N",
            "Number of calibration records to state the cost for. Under add_remove it is a guess and is never used.",
        ),
    ] = 1000,
    privacy: o.PrivacyOptions,
    shifted: ClassShiftOptions,
    weight_bound: WeightBound = None,
    candidates: Annotated[
        str | None,
        o.privacy(
            "NUMBER|SPEC",
            "Number of candidate thresholds, or a SPEC as in `confide calibrate` (default: as many as "
            "suit the score and the other choices).",
        ),
    ] = None,
    unit: o.Unit = None,
    pilot: Annotated[
        str | None,
        o.columns(
            "TABLE",
            "PUBLIC records with known truth, such as those of the model's development, to say how large sets and "
            "intervals will be; named by the options of columns. Never private ones: what is printed tells of them.",
        ),
    ] = None,
    reading: o.ReadingOptions,
    columns: Columns,
    watch_batch: Annotated[
        int | None,
        o.course("N", "Also say how soon `confide watch` sees a drop, with N records in each look.", min=1),
    ] = None,
    watch_epsilon: Annotated[float | None, o.course("NUMBER", "Privacy loss of one look (default: 1).")] = None,
    tolerance: Annotated[
        float | None, o.course("SHARE", "How far below the promise coverage may lie (default: 0.02).")
    ] = None,
    drop: Annotated[
        float | None, o.course("SHARE", "How far coverage falls below the promise (default: 0.05).")
    ] = None,
    looks: Annotated[int | None, o.course("N", "How many looks are planned (default: 52).", min=1)] = None,
    out: Annotated[Path | None, o.output("FILE", "Also write an HTML page that shows it, to be moved.")] = None,
    force: o.Force = False,
    as_json: o.AsJson = False,
) -> None:
    """Say what a calibration will promise and cost, without private data.

    --score names the score that thresholds are for (default: lac). With
    --pilot, a PUBLIC sample, the plan says how large sets and intervals will
    be. With --out it is written as a page, too, on which epsilon, n and alpha
    can be moved. With --watch-batch it says how many records a watch needs to see
    a drop of coverage.

    Example:

      confide plan --alpha 0.1 --epsilon 1 --n 2000 --out plan.html
    """
    level = o.one_level(alpha)
    check_output(out, Kind.PAGE, *(() if pilot is None else files_of(pilot)), force=force)
    chosen = None if candidates is None else parse_candidates(candidates)
    what = columns.what()
    if pilot is None and (columns != Columns(score=columns.score) or reading != o.ReadingOptions()):
        raise click.UsageError("columns, and how they are read, are those of --pilot, which is missing")
    if pilot is not None and what is None:
        raise click.UsageError(f"--pilot needs {columns.ways}")
    score = columns.score or ("lac" if what is None else what.kind.name)
    options = {"score": score, "candidates": chosen, "unit": unit, **vars(privacy)}
    options |= {"class_weights": shifted.shift, "weight_bound": weight_bound}
    course = {"epsilon": watch_epsilon, "tolerance": tolerance, "drop": drop, "looks": looks}
    if watch_batch is None and any(value is not None for value in course.values()):
        raise click.UsageError("--watch-epsilon, --tolerance, --drop and --looks belong to --watch-batch")
    made = make_plan(level, n=n, **options)  # public choices are refused before anything is opened
    left_out: dict[str, int] = {}
    if pilot is not None and what is not None:
        with reading.opened(pilot, "reading") as (opened, progress):
            sample = read_pilot(opened, what, skip_incomplete=reading.skip_incomplete, progress=progress)
            left_out = reading.left_out(opened)
        made = make_plan(level, n=n, **options, pilot=sample)
    if out is not None:
        from confide.reports import report

        report(made).save(out, overwrite=force)
    power = None if watch_batch is None else _power(made, watch_batch, **course)
    if as_json:
        emit({**_document(made), "watch": None if power is None else _watched(power), **left_out})
        return
    say(str(made))
    if power is not None:
        say(str(power))
    say_left_out(left_out)
    if out is not None:
        say(f"saved: {out}")


def _power(made: Plan, batch: int, **given: Any) -> WatchPower:
    """How soon a watch of the planned coverage sees a drop."""
    chosen = {"epsilon": 1.0} | {name: value for name, value in given.items() if value is not None}
    people = made.privacy.records_per_person
    chosen["epsilon"] /= people * (1 if made.privacy.neighbors == "add_remove" else 2)
    return watch_power(made.guarantee.coverage, batch=batch, per_person=people, **chosen)


def _watched(power: WatchPower) -> dict[str, object]:
    shown = asdict(power)
    return {**shown, "small": power.small}


def _document(made: Plan) -> dict[str, object]:
    def fields(of: object, *names: str) -> dict[str, object]:
        return {name: getattr(of, name) for name in names}

    population = made.request.population
    shifted = {} if population is None else {"population": population.fields(), "counted": made.counted}
    return {
        **shifted,
        "records": made.n,
        "alpha": float(made.request.alpha),
        "guarantee": fields(made.guarantee, "kind", "coverage", "delta", "n", "n_min"),
        **fields(made, "target_rank", "nonprivate_rank", "expected_coverage", "expected_excess", "coverage_at_most"),
        **fields(made, "chance_of_all", "chance_beyond", "desert"),
        "records_needed": made.records_needed,
        "warnings": list(made.remarks),
        "privacy": {
            **fields(made.privacy, "neighbors", "epsilon", "records_per_person"),
            "add_remove": made.privacy.loss("add_remove"),
            "replace_one": made.privacy.loss("replace_one"),
            "rho": made.privacy.rho,
        },
        "pilot": None if made.on_pilot is None else asdict(made.on_pilot),
        "candidates": {"size": made.request.m, "recipe": dict(made.request.candidates.recipe)},
    }
