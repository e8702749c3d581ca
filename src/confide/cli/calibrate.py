"""`confide calibrate` and `recalibrate`: a table of records in, a private release, or the one that renews it, out."""

import json
import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import click

from confide.calibration import By, Payer, Request, asked_of_labels, prepare, typical_of_groups
from confide.cli.choices import ShiftOptions, chosen_candidates, one_level, parsed, stated_words
from confide.cli.columns import Columns, check_fits
from confide.cli.command import command
from confide.cli.course import renewed
from confide.cli.output import EXPECTED, emit, heard, say, say_left_out, warn
from confide.cli.paying import LedgerOptions, Receipt, refuse_another_request, scheduled, scheduled_privacy
from confide.cli.sql import CountsOptions, RequestOptions
from confide.cli.values import (
    GroupOptions,
    OptionalSource,
    Output,
    PeopleOptions,
    PrivacyOptions,
    Source,
    SourceOfRelease,
    check_partition,
)
from confide.errors import EarlierReleaseWarning, InputError
from confide.mechanisms import Slopes
from confide.planning import Plan, make_plan, shifted_population
from confide.releases import (
    Calibration,
    LabelStatement,
    Release,
    candidates_of,
    load_release,
    most_needed,
    parts_of,
    remarks,
)
from confide.support import Kind, new_file
from confide.tables import (
    SIDES,
    Classified,
    What,
    calibrate_noisy_label_table,
    calibrate_table,
    recalibrate_table,
)


class Written(NamedTuple):
    """A release in its file, how many records were left out where that may be known, and what was warned of."""

    released: Any
    left_out: dict[str, int]
    said: list[Warning | str]


def written(make: Callable[[], tuple[Any, dict[str, int]]], output: Output, receipt: Receipt | None) -> Written:
    """What `make` gives, and its file: whole, or not at all."""
    with (
        new_file(output.out, overwrite=output.force, kind=Kind.RELEASE) as part,
        heard() as caught,
        receipt or nullcontext(),
    ):
        released, left_out = make()
        part.write_text(released.to_json(), encoding="utf-8")
    return Written(released, left_out, [one.message for one in caught if issubclass(one.category, EXPECTED)])


@command("calibrate")
def calibrate(
    source: OptionalSource,
    *,
    request: RequestOptions,
    counted: CountsOptions,
    label_epsilon: str | None = None,
    shifted: ShiftOptions,
    budget: LedgerOptions,
    about: tuple[str, ...] = (),
    output: Output,
    as_json: bool = False,
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
    if counted.counts:
        _from_counts(counted, request, budget, words, output, as_json=as_json)
        return
    if not source.file:
        raise click.UsageError("Missing argument 'TABLE'.")
    levels, what = request.levels, request.columns.what()
    if label_epsilon is not None:
        assert isinstance(what, Classified)
        _from_noisy_labels(source, what, label_epsilon, request, words, output, as_json=as_json)
        return
    chosen, bounded = chosen_candidates(request.candidates, request.unit, what), request.people.people
    privacy, divided, shift = _settled(request, budget, shifted)
    settings: dict[str, Any] = {**vars(privacy), "mechanism": request.mechanism}
    if shift:
        settings["population"] = shifted_population(shift["class_weights"], shift["weight_bound"])
    if bounded is not None:
        settings["records_per_person"] = bounded.most
    name, alpha = None if what is None else what.kind.name, levels if len(levels) > 1 else levels[0]
    by: By | None = "level" if len(levels) > 1 else None
    asked = Request(alpha=alpha, by=by, score=name, candidates=chosen, **settings)
    prepare(asked, request.n)  # public choices are refused before anything is opened
    output.check(Kind.RELEASE, *source.files, *budget.files, request.schedule)
    receipt = budget.receipt()
    account = budget.account(source.file)
    known = request.n is not None or privacy.neighbors == "add_remove"
    if account and known and not divided and len(levels) == 1 and request.columns.one_score:
        # and so is what the ledger's limit does not allow
        prepare(asked, request.n, Payer(**account)).refuse_early()

    def make() -> tuple[Any, dict[str, int]]:
        with source.open("counting", what, request.columns.ways) as (opened, read, progress):
            released = calibrate_table(
                opened,
                read,
                alpha,
                n=request.n,
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
        return released, left_out

    made = written(make, output, receipt)
    expected = expected_of(made.released, asked)
    guessed = guessed_for_groups(made.released, privacy.n_typical, request.mechanism)
    report_release(made, expected, output, receipt, as_json=as_json, guessed=guessed)


def _settled(
    request: RequestOptions, budget: LedgerOptions, shifted: ShiftOptions
) -> tuple[PrivacyOptions, dict[str, Any], dict[str, Any]]:
    """The privacy, the groups and the shift that are asked for, where their values go together."""
    bounded, divided, shift = request.people.people, request.groups.arguments(), shifted.arguments()
    privacy = scheduled_privacy(request.schedule, request.privacy, bounded)
    if bounded is not None and privacy.records_per_person not in (1, bounded.most):
        raise InputError("--records-per-person must be left out with --max-records-per-person")
    if divided:
        check_partition(budget.ledger, request.groups.partition)
    if request.n is not None and privacy.neighbors != "replace_one":
        raise InputError(
            "--n must be left out with --neighbors add_remove, which keeps their number secret; see --n-typical"
        )
    if shift and len(request.levels) > 1:
        raise click.UsageError("weights belong to one threshold: give one level in --alpha, or leave the weights out")
    return privacy, divided, shift


def _from_noisy_labels(
    source: Source,
    what: Classified,
    label_epsilon: str,
    request: RequestOptions,
    words: Mapping[str, str] | None,
    output: Output,
    *,
    as_json: bool,
) -> None:
    """The same from labels that were randomised before anybody saw them."""
    try:
        loss: float | LabelStatement = float(label_epsilon)
        read: tuple[str, ...] = ()
    except ValueError:
        loss, read = LabelStatement.load(label_epsilon), (label_epsilon,)
    candidates = chosen_candidates(request.candidates, request.unit, what)
    asked = asked_of_labels(one_level(str(request.alpha)), loss, what.score, request.privacy.delta, candidates)
    output.check(Kind.RELEASE, *source.files, *read)

    def make() -> tuple[Any, dict[str, int]]:
        with source.opened(source.file, "counting") as (opened, progress):
            released = calibrate_noisy_label_table(
                opened, what, asked, about=words, skip_incomplete=source.skip_incomplete, progress=progress
            )
            return released, source.left_out(opened)

    report_release(written(make, output, None), None, output, None, as_json=as_json)


def _from_counts(
    counted: CountsOptions,
    request: RequestOptions,
    budget: LedgerOptions,
    words: Mapping[str, str] | None,
    output: Output,
    *,
    as_json: bool,
) -> None:
    """The same from counts that a warehouse made."""
    plan = counted.planned(request)
    output.check(Kind.RELEASE, *counted.counts, counted.plan, *budget.files, request.schedule)
    receipt = budget.receipt()
    made = written(lambda: (counted.release(plan, budget, request.groups.partition, words), {}), output, receipt)
    expected = expected_of(made.released, plan.request)
    guessed = guessed_for_groups(made.released, plan.options.get("n_typical"), plan.options["mechanism"])
    report_release(made, expected, output, receipt, as_json=as_json, guessed=guessed)


@dataclass(frozen=True)
class Renewing:
    """What a renewal asks anew; the rest is read off the release."""

    epsilon: float | None = None
    rho: float | None = None
    n_typical: int | None = None
    n: int | None = None
    cold: bool = False
    candidates: str | None = None


@command("recalibrate", without="score loss bound groups by_class")
def recalibrate(
    source: SourceOfRelease,
    *,
    columns: Columns,
    groups: GroupOptions,
    weight_column: str | None = None,
    asked: Renewing,
    people: PeopleOptions,
    budget: LedgerOptions,
    schedule: Path | None = None,
    about: tuple[str, ...] = (),
    output: Output,
    as_json: bool = False,
) -> None:
    r"""Renew a release on new records with known truth.

    What is asked - level, score, relation, groups, loss - is read off
    the release; name the columns of TABLE again. Candidates are spread around
    the earlier threshold, half of them as if there were none. The cost is that
    of a new release (--epsilon: by default that of the earlier one) and adds
    up for people who are in both. The file names all that it renewed.

    Example:

      confide recalibrate february.parquet --calibration january.json \
        --probabilities 'p_*' --label label --out february.json
    """
    previous, records = source.separate()
    release = load_release(previous)
    words, bounded, n = stated_words(about), people.people, asked.n
    spent = scheduled(schedule, "calibration", {"epsilon": asked.epsilon, "rho": asked.rho})
    chosen: dict[str, Any] = {"n_typical": asked.n_typical, "cold": asked.cold, "candidates": parsed(asked.candidates)}
    again = Request(renews=release, **spent, **chosen)
    terms = next(iter(again.parts.values())).terms
    refuse_another_request(schedule, release.privacy, terms.selector if terms.mechanism == "slopes" else None)
    what = _what(columns, release, previous)
    if release.disjoint:
        check_partition(budget.ledger, groups.partition)
    if n is not None and not again.public_n:
        raise InputError("--n must be left out: the number of records, or of those in each group, stays secret")
    output.check(Kind.RELEASE, previous, *records.files, *budget.files, schedule)
    receipt = budget.receipt()
    account: dict[str, Any] = {**budget.account(records.file), "partition": groups.partition}
    if n is not None or not again.public_n:  # what the ledger's limit does not allow is refused before all else
        prepare(again, n, Payer(**account)).refuse_early()

    def make() -> tuple[Any, dict[str, int]]:
        with records.open("counting", what, columns.ways) as (opened, read, progress):
            released = recalibrate_table(
                release,
                opened,
                read,
                by=groups.by,
                weights=weight_column,
                n=n,
                people=bounded,
                skip_incomplete=records.skip_incomplete,
                about=words,
                progress=progress,
                **spent,
                **chosen,
                **account,
            )
            left_out = records.left_out(opened) if again.public_n else {}  # else it is secret
        return released, left_out

    made = written(make, output, receipt)
    released = made.released
    expected = expected_of(released, again)
    guessed = guessed_for_groups(released, asked.n_typical)
    report_release(made, expected, output, receipt, as_json=as_json, guessed=guessed)
    if not as_json:
        say(renewed(released))


def _what(columns: Columns, release: Release, path: Path) -> What | None:
    """What is read of each record, for the score or the loss of the release; None if no columns were named."""
    if release.bounded is not None:
        if columns.task not in (None, "losses") and columns.truth is None:
            raise InputError(f"calibration {str(path)!r} bounds a loss; name --probabilities with --truth, or --losses")
        return replace(columns, loss=release.bounded[0], bound=release.bounded[1]).what()
    if columns.task is None:
        return None
    if columns.task == "losses" or columns.truth is not None:
        raise InputError(f"calibration {str(path)!r} bounds no loss; name {columns.ways}")
    if columns.task != "score":
        check_fits(columns.way, release, path)
    score = SIDES if release.by == "side" else release.first.score
    if release.by == "side" and columns.task == "score":
        raise click.UsageError("a release of two sides needs --prediction LOWER,UPPER with --target")
    return replace(columns, score=score).what()


def expected_of(released: Any, request: Request) -> Plan | None:
    """What one threshold is expected to cost, by the request that it answers; None where that says nothing."""
    if not isinstance(released, Calibration) or not isinstance(released.mechanism, Slopes) or remarks(released):
        return None
    (part,) = request.parts.values()
    terms = part.terms.over(candidates_of(released), released.n)
    return make_plan(terms, terms.n or terms.n_typical)  # n only where it is public


def report_release(
    kept: Written,
    plan: Plan | None,
    output: Output,
    receipt: Receipt | None,
    *,
    as_json: bool,
    guessed: int | None = None,
) -> None:
    """Print a release, what it is expected to cost, what was warned of, and what was charged.

    `guessed` is the number of records of each group that was taken for granted, where nobody stated one. There is no
    receipt of what was paid for elsewhere.
    """
    released, left_out, said = kept
    out = str(output.out)
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
