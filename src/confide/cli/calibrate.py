"""`confide calibrate`: a table of calibration records in, a private calibration out."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import click
import typer

from confide.calibration import (
    PricedRelease,
    asked_of_labels,
    price_threshold,
    suited_candidates,
    suited_for_levels,
    typical_of_groups,
)
from confide.cli import options as o
from confide.cli.about import About, stated_words
from confide.cli.budget import LedgerOptions
from confide.cli.columns import Columns, chosen_candidates
from confide.cli.counted import Asked, CountsOptions, one_file, released_from_counts
from confide.cli.output import EXPECTED, emit, heard, say, say_left_out, warn
from confide.cli.parameters import command
from confide.cli.receipt import Receipt
from confide.cli.schedule import ScheduleFile, scheduled_privacy
from confide.cli.shift import ShiftOptions
from confide.errors import EarlierReleaseWarning, InputError
from confide.mechanisms import MECHANISMS
from confide.planning import Plan, make_plan, shifted_population
from confide.releases import (
    Calibration,
    LabelStatement,
    Release,
    candidates_of,
    most_needed,
    parts_of,
    remarks,
)
from confide.support import Kind, new_file
from confide.tables import Classified, calibrate_noisy_label_table, calibrate_table


@dataclass(frozen=True, kw_only=True)
class Source(o.Source):
    """The table that is read; none with --counts."""

    file: Annotated[str, typer.Argument(metavar="TABLE", show_default=False, help=o.TABLE)] = ""


@command
def calibrate(
    source: Source,
    *,
    columns: Columns,
    counted: CountsOptions,
    alpha: o.AlphasOrPlan = None,
    privacy: o.PrivacyOptions,
    n: Annotated[
        int | None,
        o.privacy(
            "N",
            "The public number of records under replace_one; databases need it with --ledger.",
        ),
    ] = None,
    mechanism: Annotated[
        str,
        o.making(
            "NAME",
            "slopes, or to compare pps, pps-laplace, noisy-histogram, opendp-quantile, pcoqs and pcoqs-published "
            "(with --rho: zCDP and no epsilon), or none, which is NOT PRIVATE.",
            click_type=click.Choice(MECHANISMS),
        ),
    ] = "slopes",
    label_epsilon: Annotated[
        str | None,
        o.privacy(
            "LOSS",
            "Of labels that `confide randomise-labels` made: its --epsilon, or the file .labels.json that it wrote.",
        ),
    ] = None,
    candidates: o.CandidatesSpec = None,
    unit: o.Unit = None,
    people: o.PeopleOptions,
    groups: o.GroupOptions,
    shifted: ShiftOptions,
    budget: LedgerOptions,
    schedule: ScheduleFile = None,
    about: About = None,
    output: o.Output,
    as_json: o.AsJson = False,
) -> None:
    r"""Calibrate on records with known truth, privately.

    TABLE holds one record per row. One threshold is drawn, with noise, from
    their scores: of class probabilities and labels, of predictions and
    targets, or ready-made. The file that is written holds it, what it
    promises, and the privacy it cost; nothing else about the records leaves.
    Every run costs its epsilon anew, unless --ledger knows it.
    docs/command-line.md explains every option at length.

    Example:

      confide calibrate records.parquet --probabilities 'p_*' --label label \
        --alpha 0.1 --epsilon 1 --out cal.json
    """
    words = stated_words(about)
    if counted.counts is not None or counted.plan is not None:
        if shifted != ShiftOptions():
            raise click.UsageError("weights of classes and records are not counted in SQL: leave them out")
        if (source.file, source.table, source.decimal) != ("", None, "."):
            raise click.UsageError("give TABLE or --counts, not both: counts are what a warehouse made of a table")
        asking = Asked(
            columns, alpha, privacy, n, mechanism, candidates, unit, people, groups, source.skip_incomplete, schedule
        )
        _from_counts(counted, asking, budget, words, output, as_json=as_json)
        return
    if not source.file:
        raise click.UsageError("Missing argument 'TABLE'.")
    if alpha is None:
        raise click.UsageError("Missing option '--alpha'.")
    what = columns.what()
    chosen = chosen_candidates(candidates, unit, what)
    if label_epsilon is not None:
        plain = o.PrivacyOptions(delta=privacy.delta), None, "slopes", o.PeopleOptions(), o.GroupOptions()
        others = ShiftOptions(), LedgerOptions(), None
        if (privacy, n, mechanism, people, groups, shifted, budget, schedule) != (*plain, *others):
            raise click.UsageError(
                "--label-epsilon was paid where the labels were randomised, and belongs to one threshold: of the "
                "options for privacy, people, groups, shifts and the ledger give --delta alone"
            )
        if not isinstance(what, Classified):
            raise click.UsageError("--label-epsilon needs --probabilities and --label")
        terms = o.one_level(alpha), label_epsilon, privacy.delta, chosen
        _from_noisy_labels(source, what, terms, words, output, as_json=as_json)
        return
    levels = o.levels_of(alpha)
    bounded = people.people
    privacy = scheduled_privacy(schedule, privacy, bounded)
    if bounded is not None and privacy.records_per_person not in (1, bounded.most):
        raise InputError("--records-per-person must be left out with --max-records-per-person")
    divided = groups.arguments(label=columns.label, with_ledger=budget.ledger is not None)
    _check_number(n, privacy.neighbors, divided=bool(divided))
    shift = shifted.arguments(divided)
    settings: dict[str, Any] = {**vars(privacy), "mechanism": mechanism}
    if shift and len(levels) > 1:
        raise click.UsageError("weights belong to one threshold: give one level in --alpha, or leave the weights out")
    if shift:
        settings["population"] = shifted_population(shift["class_weights"], shift["weight_bound"])
    if bounded is not None:
        settings["records_per_person"] = bounded.most
    score = None if what is None else what.kind
    name, asked = None if score is None else score.name, levels if len(levels) > 1 else levels[0]
    suited = suited_for_levels if len(levels) > 1 else suited_candidates
    thresholds = suited(chosen, name, asked, n=n, **settings)
    price = partial(price_threshold, score=name, **settings)
    for level in levels:
        price(alpha=level, n=n, candidates=thresholds)  # public choices are refused before anything is opened
    output.check(Kind.RELEASE, *source.files, *budget.files, schedule)
    receipt = budget.receipt()
    account = budget.account(source.file)
    known = n is not None or privacy.neighbors == "add_remove"
    if account and known and not divided and len(levels) == 1 and columns.one_score:
        # and so is what the ledger's limit does not allow
        PricedRelease.single(price(alpha=levels[0], n=n, candidates=thresholds, **account)).refuse_early()
    with (
        new_file(output.out, overwrite=output.force, kind=Kind.RELEASE) as part,
        heard() as caught,
        receipt,
    ):
        with source.open("counting", what, columns.ways) as (opened, what, progress):
            released = calibrate_table(
                opened,
                what,
                asked,
                n=n,
                candidates=chosen,
                people=bounded,
                skip_incomplete=source.skip_incomplete,
                about=words,
                progress=progress,
                **divided,
                **{name: value for name, value in settings.items() if name != "population"},
                **shift,
                **account,
            )
            left_out = source.left_out(opened) if privacy.neighbors == "replace_one" else {}  # else it is secret
        part.write_text(released.to_json(), encoding="utf-8")
    expected = None
    if isinstance(released, Calibration) and mechanism == "slopes" and not remarks(released):
        request = price(alpha=levels[0], n=released.n, candidates=candidates_of(released)).request
        expected = make_plan(request, request.n or request.n_typical)  # n only where it is public
    said = [one.message for one in caught if issubclass(one.category, EXPECTED)]
    guessed = guessed_for_groups(released, privacy.n_typical, mechanism)
    report_release(released, expected, str(output.out), said, left_out, receipt, as_json=as_json, guessed=guessed)


def _from_noisy_labels(
    source: Source,
    what: Classified,
    asked: tuple[str, str, str | None, Any],
    words: Mapping[str, str] | None,
    output: o.Output,
    *,
    as_json: bool,
) -> None:
    """The same from labels that were randomised before anybody saw them: alpha, their loss, delta and candidates."""
    alpha, label_epsilon, delta, candidates = asked
    try:
        loss: float | LabelStatement = float(label_epsilon)
        read: tuple[str, ...] = ()
    except ValueError:
        loss, read = LabelStatement.load(label_epsilon), (label_epsilon,)
    request = asked_of_labels(alpha, loss, what.score, delta, candidates)
    output.check(Kind.RELEASE, *source.files, *read)
    with new_file(output.out, overwrite=output.force, kind=Kind.RELEASE) as part, heard() as caught:
        with source.opened(source.file, "counting") as (opened, progress):
            released = calibrate_noisy_label_table(
                opened, what, request, about=words, skip_incomplete=source.skip_incomplete, progress=progress
            )
            left_out = source.left_out(opened)
        part.write_text(released.to_json(), encoding="utf-8")
    said = [one.message for one in caught if issubclass(one.category, EXPECTED)]
    report_release(released, None, str(output.out), said, left_out, None, as_json=as_json)


def _from_counts(
    counted: CountsOptions,
    asking: Asked,
    budget: LedgerOptions,
    words: Mapping[str, str] | None,
    output: o.Output,
    *,
    as_json: bool,
) -> None:
    """The same from counts that a warehouse made."""
    files = counted.counts
    if not files:
        raise click.UsageError("--plan belongs to --counts: what the query of `confide sql` gave")
    plan = asking.planned(counted.plan)
    output.check(Kind.RELEASE, *files, counted.plan, *budget.files, asking.schedule)
    receipt = budget.receipt()
    account = budget.account(one_file(files, budget.ledger_key))
    if account and asking.groups.partition is not None:
        account["partition"] = asking.groups.partition
    with (
        new_file(output.out, overwrite=output.force, kind=Kind.RELEASE) as part,
        heard() as caught,
        receipt,
    ):
        released = released_from_counts(plan, files, account, about=words)
        part.write_text(released.to_json(), encoding="utf-8")
    expected = None
    if isinstance(released, Calibration) and plan.options["mechanism"] == "slopes" and not remarks(released):
        priced = price_threshold(
            plan.alphas[0], n=released.n, candidates=plan.candidates, score=plan.score, **plan.options
        ).request
        expected = make_plan(priced, priced.n or priced.n_typical)
    said = [one.message for one in caught if issubclass(one.category, EXPECTED)]
    guessed = guessed_for_groups(released, plan.options.get("n_typical"), plan.options["mechanism"])
    report_release(released, expected, str(output.out), said, {}, receipt, as_json=as_json, guessed=guessed)


def _check_number(n: int | None, neighbors: str, *, divided: bool) -> None:
    """Refuse --n where the number of records is secret."""
    if n is not None and divided:
        raise InputError("--n must be left out with --by and --by-class: the sizes of groups stay secret")
    if n is not None and neighbors != "replace_one":
        raise InputError(
            "--n must be left out with --neighbors add_remove, which keeps their number secret; see --n-typical"
        )


def report_release(
    released: Any,
    plan: Plan | None,
    out: str,
    said: list[Warning | str],
    left_out: dict[str, int],
    receipt: Receipt | None,
    *,
    as_json: bool,
    guessed: int | None = None,
) -> None:
    """Print a release, what it is expected to cost, what was warned of, and what was charged.

    `guessed` is the number of records of each group that was taken for granted, where nobody stated one. There is no
    receipt of what was paid for elsewhere.
    """
    earlier = [one for one in said if isinstance(one, EarlierReleaseWarning)]
    notes = [str(one) for one in said if one not in earlier]
    for note in notes:
        warn(note)
    if as_json:
        expected = None
        if plan is not None:
            expected = {"records": plan.n, "coverage": plan.expected_coverage, "excess": plan.expected_excess}
            expected["records_needed"] = plan.records_needed
        made = [time for one in earlier for time in one.made]
        document = {"out": out, "calibration": json.loads(released.to_json()), "expected": expected}
        document |= {"records_needed": most_needed(parts_of(released).values()), "n_typical_guessed": guessed}
        paid = {} if receipt is None else receipt.fields()
        emit({**document, "earlier": made, "warnings": notes, **paid, **left_out})
        return
    for one in earlier:
        say(str(one))
    say(str(released))
    say_left_out(left_out)
    if plan is not None:
        known = "" if released.n is not None else ", a public guess: the true number stays secret"
        say(
            f"cost of privacy: {100 * plan.expected_coverage:.4g} % expected coverage instead of "
            f"{100 * float(1 - released.alpha):.4g} %\n"
            f"      (on {plan.typical_scores}, with {plan.n} records{known})"
        )
    if guessed is not None:
        say(
            f"candidates suit: about {guessed} records in each {released.by}, a public guess; state --n-typical if "
            "there are many more, or fewer"
        )
    if receipt is not None and (receipt.ledger is not None or not math.isinf(released.privacy.epsilon)):
        say(receipt.text())
    say(f"saved: {out}")


def guessed_for_groups(released: Release, n_typical: int | None, mechanism: str = "slopes") -> int | None:
    """The number of records of each group that candidates were chosen for, where nobody stated one; else None."""
    if not released.disjoint or n_typical is not None or mechanism != "slopes":
        return None
    return typical_of_groups(len(released.parts), max(part.guarantee.n_min or 1 for part in released.parts.values()))
