"""`confide plan`: what a private calibration will promise and cost, before any data is touched."""

import math
from pathlib import Path
from typing import Annotated

import typer

from confide.cli import options as o
from confide.cli.candidates import parse_candidates
from confide.cli.output import check_output, emit, say, table
from confide.guarantee import Guarantee
from confide.mechanisms import PrivacyStatement
from confide.planning import Plan
from confide.planning import plan as make_plan

Records = Annotated[
    int,
    typer.Option(
        "--n",
        metavar="N",
        rich_help_panel="Coverage promise",
        help="Number of calibration records to state the cost for. Under add_remove it is a guess and is never used.",
    ),
]
CandidateCount = Annotated[
    str,
    typer.Option(
        metavar="NUMBER|SPEC",
        rich_help_panel="Privacy",
        help="Number of candidate thresholds, or a SPEC as in `confide calibrate`.",
    ),
]
Page = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="FILE", rich_help_panel="Output", help="Also write an HTML page that shows it, to be moved."
    ),
]


def plan(
    *,
    alpha: o.Alpha,
    delta: o.Delta = None,
    n: Records = 1000,
    epsilon: o.Epsilon = None,
    rho: o.Rho = None,
    neighbors: o.NeighborsOption = "add_remove",
    records_per_person: o.RecordsPerPerson = 1,
    n_min: o.NMin = 1,
    n_typical: o.NTypical = None,
    selector: o.SelectorOption = None,
    candidates: CandidateCount = "1000",
    out: Page = None,
    force: o.Force = False,
    as_json: o.AsJson = False,
) -> None:
    """Say what a calibration will promise and cost, without any data.

    With --out it is written as a page, too, on which epsilon, n and alpha can
    be moved.

    Example:

      confide plan --alpha 0.1 --epsilon 1 --n 2000 --out plan.html
    """
    if out is not None:
        check_output(out, force=force)
    made = make_plan(
        alpha,
        epsilon,
        n,
        rho=rho,
        neighbors=neighbors,  # type: ignore[arg-type]  # checked by plan
        candidates=int(candidates) if candidates.isdecimal() else parse_candidates(candidates).size,
        n_min=n_min,
        n_typical=n_typical,
        delta=delta,
        records_per_person=records_per_person,
        selector=selector,  # type: ignore[arg-type]  # checked by plan
    )
    if out is not None:
        from confide.reports import report

        report(made).save(out, overwrite=force)
    promise, privacy = made.guarantee, made.privacy
    if as_json:
        emit(_document(made, promise, privacy))
    else:
        say(_text(made, promise, privacy))
        if out is not None:
            say(f"saved: {out}")


def _document(made: Plan, promise: Guarantee, privacy: PrivacyStatement) -> dict[str, object]:
    return {
        "records": made.n,
        "alpha": float(made.request.alpha),
        "guarantee": {
            "kind": promise.kind,
            "coverage": promise.coverage,
            "delta": promise.delta,
            "n": promise.n,
            "n_min": promise.n_min,
        },
        "target_rank": made.target_rank,
        "nonprivate_rank": made.nonprivate_rank,
        "expected_coverage": made.expected_coverage,
        "expected_excess": made.expected_excess,
        "coverage_at_most": made.coverage_at_most,
        "records_needed": made.records_needed,
        "privacy": {
            "neighbors": privacy.neighbors,
            "epsilon": privacy.epsilon,
            "records_per_person": privacy.records_per_person,
            "add_remove": privacy.loss("add_remove"),
            "replace_one": privacy.loss("replace_one"),
            "rho": privacy.rho,
        },
        "candidates": made.request.candidates,
    }


def _text(made: Plan, promise: Guarantee, privacy: PrivacyStatement) -> str:
    finite = made.target_rank <= made.n
    return "\n".join(
        [
            f"promise: {promise}",
            f"privacy: {privacy}",
            f"With {made.n} calibration records:",
            table(
                [
                    ("target rank", _rank(made, finite=finite)),
                    ("rank without privacy", f"{made.nonprivate_rank}" if made.nonprivate_rank <= made.n else "+inf"),
                    ("expected coverage", f"{made.expected_coverage:.4f}, on evenly spread scores"),
                    (
                        "cost of privacy",
                        f"about {made.expected_excess:.1f} records more covered than asked for",
                    ),
                    ("coverage at most", f"{made.coverage_at_most:.4f} on average, for continuous scores"),
                ]
            ),
            "With any number of records:",
            table(
                [
                    ("records needed", f"{made.records_needed}; with fewer the threshold is likely +inf"),
                    ("loss, add or remove one", _loss(privacy.loss("add_remove"))),
                    ("loss, replace one", _loss(privacy.loss("replace_one"))),
                    ("candidate thresholds", str(made.request.candidates)),
                ]
            ),
        ]
    )


def _rank(made: Plan, *, finite: bool) -> str:
    if math.isinf(made.target_rank):
        return "none serves: the answer is +inf, without touching the data"
    return f"{made.target_rank:.2f}{'' if finite else ', above the number of records: +inf is the likely answer'}"


def _loss(value: float) -> str:
    return "unlimited: the number of records is public" if math.isinf(value) else f"{value:.4g}"
