"""`confide calibrate` and `recalibrate`: a private release from a table of records.

Also `confide sql`, which prints a query that counts in a warehouse, and calibrations from its counts.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from confide.candidates import Candidates
from confide.cli.charging import LedgerOptions, Receipt
from confide.cli.choices import (
    ShiftOptions,
    candidates_of_options,
    levels_of,
    one_level,
    optional_candidates,
    split,
)
from confide.cli.columns import Columns, check_score
from confide.cli.command import command
from confide.cli.output import check_output, left_out_text, print_result, print_text
from confide.cli.values import (
    GroupOptions,
    OptionalSource,
    PeopleOptions,
    PrintedOutput,
    PrivacyOptions,
    Source,
    SourceOfRelease,
    Words,
    check_partition,
)
from confide.core import (
    Payer,
    Plan,
    PublishedCounts,
    Release,
    Request,
    calibrate_counts,
    check_combinations,
    choose_score,
    load_release,
    plan_of,
    prepare,
    records_needed,
    rehearse,
    remarks,
)
from confide.errors import InputError, InputTypeError
from confide.mechanisms import Noise, Slopes
from confide.scores import NamedScores
from confide.support import FileKind
from confide.tables import SIDES, ClassColumns, ColumnSpec, TableRequest, read_scores
from confide.warehouse import CountingPlan, counting_query, read_counts, read_published_counts


@dataclass(frozen=True, kw_only=True)
class RequestOptions:
    """The options of a calibration request, for tables and warehouses."""

    columns: Columns
    alpha: str | None = None
    privacy: PrivacyOptions
    n: int | None = None
    mechanism: str = "slopes"
    candidates: str | None = None
    unit: float | None = None
    people: PeopleOptions
    groups: GroupOptions
    skip_incomplete: bool = False

    @property
    def levels(self) -> str | list[str]:
        """The level of --alpha, or several; it is required."""
        if self.alpha is None:
            raise click.UsageError("Missing option '--alpha'.")
        levels = levels_of(self.alpha)
        return levels if len(levels) > 1 else levels[0]

    def arguments(self, what: ColumnSpec | None) -> dict[str, Any]:
        """The arguments of a request to a table or to the plan of a warehouse."""
        alpha, people = self.levels, self.people.people
        candidates = candidates_of_options(self.candidates, self.unit, what)
        privacy = self.privacy
        if people is not None:
            if privacy.records_per_person not in (1, people.most):
                raise InputError("records_per_person", "must be left out with --max-records-per-person")
            privacy = replace(privacy, records_per_person=people.most)
        own = {"alpha": alpha, "n": self.n, "mechanism": self.mechanism, "candidates": candidates}
        read = {"people": people, "skip_incomplete": self.skip_incomplete}
        return {**own, **read, **self.groups.arguments(), **vars(privacy)}

    def plan(self) -> CountingPlan:
        """The plan for counting in a warehouse."""
        what = self.columns.columns_to_read()
        arguments = self.arguments(what)
        if what is None:
            raise click.UsageError(f"name the columns to count: {self.columns.ALTERNATIVES}")
        return CountingPlan.of(what, **arguments)

    def of_table(
        self, source: Source, shifted: ShiftOptions, budget: LedgerOptions, words: Mapping[str, Any]
    ) -> TableRequest:
        """The request to a table; its public choices are checked before anything is opened."""
        what = self.columns.columns_to_read()
        arguments, shift = self.arguments(what), shifted.arguments()
        if self.groups.has_groups:
            check_partition(budget.ledger, self.groups.partition)
        if self.n is not None and arguments["neighbors"] != "replace_one":
            raise InputError(
                "n",
                "must be left out with --neighbors add_remove, where the number of records is secret",
            )
        if shift and not isinstance(arguments["alpha"], str):
            raise click.UsageError(
                "weights need a single threshold: give one level in --alpha, or leave the weights out"
            )
        return TableRequest.of(source.what(what, self.columns.ALTERNATIVES), **arguments, **shift, **words)


@dataclass(frozen=True)
class CountsOptions:
    """The result of the query of `confide sql`, or noisy counts that another engine made, instead of a table."""

    counts: tuple[Path, ...] = ()
    plan: Path | None = None
    noisy_counts: Path | None = None
    noise: str | None = None
    n_noisy: int | None = None
    n_noise: str | None = None

    def published(self, request: RequestOptions) -> PublishedCounts:
        """The counts that another engine made, and what the options state about them."""
        candidates = optional_candidates(request.candidates)
        if candidates is not None and not isinstance(candidates, Candidates):
            raise InputError("candidates", "must be the list over which was counted, such as unit:128")
        return read_published_counts(
            self.noisy_counts or "",
            candidates,
            None if self.noise is None else Noise.parse(self.noise),
            n=request.n,
            n_noisy=self.n_noisy,
            n_noise=None if self.n_noise is None else Noise.parse(self.n_noise),
            score=request.columns.score,
            classes=request.columns.class_names,
        )

    def planned(self, request: RequestOptions) -> CountingPlan:
        """The plan of the counts: from a file, or from the options of a request."""
        if self.plan is not None:
            return CountingPlan.load(self.plan)
        if request.alpha is None and request.columns.task is None:
            raise click.UsageError("--counts needs its request: --plan FILE, or the same options again")
        return request.plan()


@dataclass(frozen=True)
class ChoiceOptions:
    """A private choice among scores or models, on a share of the records."""

    choose: tuple[str, ...] = ()
    choice_share: str = "1/5"
    largest_size: float | None = None

    def columns(self, columns: Columns) -> dict[str, ColumnSpec | None]:
        """The columns of each score or model, by the text that was typed; those before a colon replace the others."""
        field, named = "prediction" if columns.task == "regression" else "probabilities", {}
        for text in self.choose:
            where, _, score = text.rpartition(":")
            other: dict[str, Any] = {field: where} if where else {}
            named[text] = replace(columns, score=score, **other).columns_to_read()
        return named


@command("calibrate")
def calibrate(
    source: OptionalSource,
    *,
    request: RequestOptions,
    counted: CountsOptions,
    choosing: ChoiceOptions,
    shifted: ShiftOptions,
    budget: LedgerOptions,
    words: Words,
    output: PrintedOutput,
) -> None:
    r"""Calibrate privately on records with true labels.

    TABLE has one record per row. A private threshold is selected from their
    scores: of class probabilities and labels, of predictions and targets, or
    ready-made. The output file contains the threshold, its guarantee and its
    privacy cost, and nothing else about the records. Every run spends epsilon
    again, unless --ledger recognises the same request with the same data.
    docs/command-line.md explains more about the options.

    Example:

      confide calibrate records.parquet --probabilities 'p_*' --label label \
        --alpha 0.1 --epsilon 1 --out cal.json
    """
    metadata = words.arguments(*source.files, *counted.counts)
    if counted.counts:
        _from_counts(counted, request, budget, metadata, output)
        return
    if counted.noisy_counts is not None:
        _from_published(counted, request, metadata, output)
        return
    if not source.file:
        raise click.UsageError("Missing argument 'TABLE'.")
    if choosing.choose:
        _from_choice(source, choosing, request, budget, metadata, output)
        return
    table_request = request.of_table(source, shifted, budget, metadata)
    output.check(FileKind.RELEASE, *source.files, *budget.files)
    cost_known = request.n is not None or not table_request.request.public_n
    early = cost_known and not request.groups.has_groups
    public = table_request.request.neighbors == "replace_one"
    _release(table_request, source, budget, request.groups.partition, output, early=early, tells_left_out=public)


def _release(
    request: TableRequest,
    source: Source,
    budget: LedgerOptions,
    partition: str | None,
    output: PrintedOutput,
    *,
    early: bool,
    tells_left_out: bool,
) -> Release:
    """Pay for, write and print a release; with `early` the limit is checked before the table is opened."""
    with budget.charging() as receipt:
        account = budget.account(source.file)
        request = replace(request, payer=Payer(**account, partition=partition))
        if account and early:  # check the ledger's limit first
            request.check_limit()
        with output.new(FileKind.RELEASE) as part, source.opened(source.file, "counting") as (table, progress):
            released: Release = request.release(table, progress)
            left_out = source.left_out(table) if tells_left_out else {}  # else it is secret
            part.write_text(released.to_json(), encoding="utf-8")
    report_release(released, request.request, receipt, left_out, output)
    return released


def _from_choice(
    source: Source,
    choosing: ChoiceOptions,
    request: RequestOptions,
    budget: LedgerOptions,
    metadata: Mapping[str, Any],
    output: PrintedOutput,
) -> None:
    """Choose a score or model on a share of the records, and release its threshold from the others."""
    named, alpha, privacy = choosing.columns(request.columns), one_level(str(request.levels)), request.privacy
    if len(named) < 2 or privacy.epsilon is None:
        raise click.UsageError("--choose needs --epsilon, and two or more different scores or models")
    rest: dict[str, Any] = {"alpha": alpha, "mechanism": request.mechanism, **metadata, **vars(privacy)}
    check_combinations({"chosen": choosing.choose, **rest})
    specs = [source.what(columns, request.columns.ALTERNATIVES) for columns in named.values()]
    of_labels = all(isinstance(what, ClassColumns) for what in specs)
    if not of_labels and any(what.kind.family != "absolute_residual" for what in specs):
        raise click.UsageError("--choose compares the widths of intervals for absolute_residual alone")
    output.check(FileKind.RELEASE, *source.files, *budget.files)
    with budget.charging() as receipt, output.new(FileKind.RELEASE) as part:
        with source.opened(source.file, "reading") as (table, progress):
            found = read_scores(table, specs, skip_incomplete=source.skip_incomplete, progress=progress)
            classes = [what.columns(table)[1] if isinstance(what, ClassColumns) else None for what in specs]
        kinds = [(what.kind.name, own) for what, own in zip(specs, classes, strict=True)]
        scores = {name: NamedScores.of(one.scores, *kind) for name, one, kind in zip(named, found, kinds, strict=True)}
        how: dict[str, Any] = {
            "sizes": {name: one.class_scores for name, one in zip(named, found, strict=True)} if of_labels else None,
            "largest_size": choosing.largest_size,
            "choice_share": choosing.choice_share,
            "unit": request.unit,
        }
        how |= {"records_per_person": privacy.records_per_person, **budget.account(source.file)}
        for one in scores.values():  # before the choice is charged
            asked = Request(score=one.score, unit=request.unit, **{**rest, "classes": one.classes})
            rehearse(asked, prepare(asked))
        released = choose_score(scores, alpha, privacy.epsilon, **how).calibrate(**rest)
        part.write_text(released.to_json(), encoding="utf-8")
    asked = Request(score=released.score, unit=request.unit, chosen=released.chosen, **rest)
    report_release(released, asked, receipt, {}, output)


def _from_counts(
    counted: CountsOptions,
    request: RequestOptions,
    budget: LedgerOptions,
    words: Mapping[str, Any],
    output: PrintedOutput,
) -> None:
    """Release a calibration from the counts of a warehouse."""
    plan, partition = counted.planned(request), request.groups.partition
    output.check(FileKind.RELEASE, *counted.counts, counted.plan, *budget.files)
    with budget.charging() as receipt, output.new(FileKind.RELEASE) as part:
        if budget.ledger_key is not None and len(counted.counts) > 1:
            raise InputError("ledger_key", "binds to one file's bytes", remedy="Leave it out for several --counts")
        account = budget.account(str(counted.counts[0]))
        counts = read_counts(list(counted.counts), plan)
        if account and plan.column is not None:
            check_partition(budget.ledger, partition)
        if account and partition is not None:
            if plan.column is None:
                raise click.UsageError("--partition must be left out: the plan has no groups")
            account["partition"] = partition
        released = plan.calibrate(counts, **account, **words)
        part.write_text(released.to_json(), encoding="utf-8")
    report_release(released, plan.request, receipt, {}, output)


def _from_published(
    counted: CountsOptions, request: RequestOptions, metadata: Mapping[str, Any], output: PrintedOutput
) -> None:
    """Release a calibration from noisy counts that another engine made."""
    _ = request.levels
    alpha = one_level(str(request.alpha))
    privacy = {name: getattr(request.privacy, name) for name in ("delta", "n_min")}
    check_combinations({"noise": counted.noisy_counts, **privacy})
    output.check(FileKind.RELEASE, counted.noisy_counts)
    with LedgerOptions().charging() as receipt, output.new(FileKind.RELEASE) as part:
        try:
            counts = counted.published(request)
            released = calibrate_counts(counts, alpha, **metadata)
        except (InputError, InputTypeError) as error:
            if not error.argument.startswith("counts"):
                raise
            raise type(error)(f"noisy_{error.argument}", error.requirement, error.got, error.remedy) from None
        part.write_text(released.to_json(), encoding="utf-8")
    report_release(released, None, receipt, {}, output)


@dataclass(frozen=True)
class RenewalOptions:
    """The options of a renewal; the rest of the request comes from the release."""

    epsilon: float | None = None
    rho: float | None = None
    n: int | None = None
    candidates: str | None = None

    def arguments(self) -> dict[str, Any]:
        """The options as arguments."""
        return {**vars(self), "candidates": optional_candidates(self.candidates)}


@command("recalibrate", without="score loss bound groups by_class")
def recalibrate(
    source: SourceOfRelease,
    *,
    columns: Columns,
    groups: GroupOptions,
    weight_column: str | None = None,
    renewing: RenewalOptions,
    people: PeopleOptions,
    budget: LedgerOptions,
    words: Words,
    output: PrintedOutput,
) -> None:
    r"""Renew a release on new records with true labels.

    The request (level, score, adjacency, groups, privacy loss) is that of the
    release; name the columns of TABLE again. It costs as much as a new
    release (--epsilon: by default that of the earlier one), and the costs add
    up for people who are in both. The file states the SHA-256 of the release
    that it renews.

    Example:

      confide recalibrate february.parquet --calibration january.json \
        --probabilities 'p_*' --label label --out february.json
    """
    previous, records = source.separate()
    release, metadata, n = load_release(previous), words.arguments(*records.files), renewing.n
    columns_read = _what(columns, release, previous)
    again = TableRequest.again(
        release,
        records.what(columns_read, columns.ALTERNATIVES),
        by=split(groups.by) if groups.by is not None and release.overlap is not None else groups.by,
        weights=weight_column,
        people=people.people,
        skip_incomplete=records.skip_incomplete,
        **metadata,
        **renewing.arguments(),
    )
    request = again.request
    if release.disjoint:
        check_partition(budget.ledger, groups.partition)
    if n is not None and not request.public_n:
        raise InputError("n", "must be left out: the number of records, in all or in each group, is secret")
    output.check(FileKind.RELEASE, previous, *records.files, *budget.files)
    known, public = n is not None or not request.public_n, request.public_n
    _release(again, records, budget, groups.partition, output, early=known, tells_left_out=public)


def _what(columns: Columns, release: Release, path: Path) -> ColumnSpec | None:
    """The columns for the score or the loss of the release; None if none were named."""
    if release.loss is not None:
        if columns.task not in (None, "losses") and columns.truth is None:
            raise InputError(
                "calibration", f"{str(path)!r} bounds a loss", remedy="Name --probabilities with --truth, or --losses"
            )
        return replace(columns, loss=release.loss, bound=release.bound).columns_to_read()
    if columns.task is None:
        return None
    if columns.task == "losses" or columns.truth is not None:
        raise InputError("calibration", f"{str(path)!r} bounds no loss", remedy=f"Name {columns.ALTERNATIVES}")
    if columns.task != "score":
        check_score(columns.way, release, path)
    score = SIDES if release.by == "side" else release.score
    if release.by == "side" and columns.task == "score":
        raise click.UsageError("a release of two sides needs --prediction LOWER,UPPER with --target")
    return replace(columns, score=score).columns_to_read()


def expected_plan(released: Any) -> Plan | None:
    """The plan with the expected cost of one threshold; None where it is not informative."""
    if (
        released.by is not None
        or released.loss is not None
        or not isinstance(released.mechanism, Slopes)
        or remarks(released)
    ):
        return None
    return plan_of(released)


def report_release(
    released: Any, request: Request | None, receipt: Receipt, left_out: Mapping[str, int], output: PrintedOutput
) -> None:
    """Print a release, its expected cost, warnings, and the charge.

    The request is None for published counts, whose cost was paid elsewhere.
    """
    plan = None if request is None else expected_plan(released)
    heard = receipt.heard
    heard.warn()
    expected = cost = None
    if plan is not None:
        expected = {"records": plan.n, "coverage": plan.expected_coverage, "excess": plan.expected_excess}
        expected["records_needed"] = plan.records_needed
        source = ", a public guess: the true number is secret"
        if released.size is not None:
            source = ", which the noisy number suggests"
        cost = (
            f"cost of privacy: {100 * plan.expected_coverage:.4g} % expected coverage instead of "
            f"{100 * float(1 - released.alpha):.4g} %\n"
            f"      (on {plan.typical_scores}, with {plan.n} records{'' if released.n is not None else source})"
        )

    def document() -> dict[str, Any]:
        needed = records_needed(released)
        own = {"out": str(output.out), "calibration": json.loads(released.to_json()), "expected": expected}
        own |= {"records_needed": needed, **heard.fields()}
        return {**own, **({} if request is None else receipt.fields()), **left_out}

    paid = request is not None and (receipt.ledger is not None or not math.isinf(released.privacy.epsilon))
    print_result(
        document,
        *heard.earlier,
        str(released),
        left_out_text(left_out),
        cost,
        receipt.text() if paid else None,
        output.saved(),
        as_json=output.as_json,
    )


@command("sql", without="logits truth losses loss bound partition", required="alpha")
def sql(
    *,
    dialect: str,
    table: str,
    request: RequestOptions,
    plan: Path | None = None,
    force: bool = False,
) -> None:
    r"""Print the query that counts in a warehouse, where no Python runs.

    Nothing is read, connected to or charged. The query computes a score per
    record (lac, absolute_residual, cqr and its sides, or a column of scores)
    and counts it over the candidates that follow from these options. Run it,
    keep its answer where the records are kept, for it is as private, and
    hand it to `confide calibrate --counts`. Class names stand for the * of
    --probabilities: --classes has to list them all.

    Example:

      confide sql --dialect snowflake --table clinic.records \
        --probabilities 'p_*' --classes benign,malignant --label diagnosis \
        --alpha 0.1 --epsilon 1 --plan plan.json > count.sql
    """
    check_output(plan, FileKind.COUNTING, force=force)
    counting_plan = request.plan()
    text = counting_query(counting_plan, dialect, table)
    if plan is not None:
        counting_plan.save(plan, overwrite=force)
    print_text(text.rstrip("\n"))
