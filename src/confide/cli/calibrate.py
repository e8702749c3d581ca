"""`confide calibrate` and `recalibrate`: a private release from a table of records.

Also `confide sql`, which prints a query that counts in a warehouse, and calibrations from its counts.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from confide.cli.charging import LedgerOptions, Receipt
from confide.cli.choices import optional_candidates, split
from confide.cli.columns import Columns, check_score
from confide.cli.command import command
from confide.cli.output import left_out_text, print_result, print_text
from confide.cli.request import COLUMN_NAMES, RequestOptions, take_arguments, take_columns, take_words
from confide.cli.values import (
    GroupOptions,
    PeopleOptions,
    PrintedOutput,
    Source,
    SourceOfRelease,
    Words,
    check_partition,
)
from confide.core import (
    Payer,
    Plan,
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
from confide.support import FileKind, check_unknown_arguments
from confide.tables import SIDES, ClassColumns, ColumnSpec, TableRequest, read_scores
from confide.warehouse import CountingPlan, counting_query, read_counts, read_published_counts

ALTERNATIVES = Columns.ALTERNATIVES


@dataclass(frozen=True)
class CountsOptions:
    """The result of the query of `confide sql`, or noisy counts that another engine made, instead of a table."""

    counts: tuple[Path, ...] = ()
    noisy_counts: Path | None = None


@command("calibrate")
def calibrate(
    file: str = "",
    *,
    request: RequestOptions,
    table: str | None = None,
    counted: CountsOptions,
    budget: LedgerOptions,
    output: PrintedOutput,
) -> None:
    r"""Calibrate privately on records with true labels.

    TABLE has one record per row. A private threshold is selected from their
    scores: of class probabilities and labels, of predictions and targets, or
    ready-made. The output file contains the threshold, its guarantee and its
    privacy cost, and nothing else about the records. Every run spends epsilon
    again, unless --ledger recognises the same request with the same data.
    `confide request` writes a file with all arguments of a request, for
    --request or, one by one, for --set.

    Example:

      confide calibrate records.parquet --probabilities 'p_*' --label label \
        --alpha 0.1 --epsilon 1 --out cal.json
    """
    if counted.counts:
        _from_counts(counted.counts, request, budget, output)
        return
    stated = request.read()
    if counted.noisy_counts is not None:
        _from_published(counted.noisy_counts, stated, output)
        return
    if not file:
        raise click.UsageError("Missing argument 'TABLE'.")
    incomplete, mark = stated.get("skip_incomplete", False), stated.pop("decimal", ".")
    source = Source(file=file, table=table, skip_incomplete=incomplete, decimal=mark)
    if "choose" in stated:
        _from_choice(source, stated, budget, output)
        return
    what, arguments = take_columns(stated), take_arguments(stated)
    check_unknown_arguments("calibrate_table", stated, ())
    words, partition = take_words(arguments, *source.files), arguments.pop("partition", None)
    divided = arguments.get("by") is not None or arguments.get("by_class", False)
    if divided:
        check_partition(budget.ledger, partition)
    table_request = TableRequest.of(source.what(what, ALTERNATIVES), **arguments, **words)
    public = table_request.request.neighbors == "replace_one"
    if "n" in arguments and not public:
        raise InputError("n", "must be left out with neighbors='add_remove', where the number of records is secret")
    output.check(FileKind.RELEASE, *source.files, *budget.files)
    early = ("n" in arguments or not table_request.request.public_n) and not divided
    _release(table_request, source, budget, partition, output, early=early, tells_left_out=public)


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


def _counting_plan(request: RequestOptions) -> tuple[CountingPlan, dict[str, Any], str | None]:
    """The plan for counting in a warehouse, and the metadata and the partition for its release."""
    stated = request.read()
    what, arguments = take_columns(stated), take_arguments(stated)
    words, partition = take_words(arguments), arguments.pop("partition", None)
    if what is None:
        raise click.UsageError(f"name the columns to count: {ALTERNATIVES}")
    check_unknown_arguments("CountingPlan.of", stated, ())
    return CountingPlan.of(what, **arguments), words, partition


def _from_choice(source: Source, stated: dict[str, Any], budget: LedgerOptions, output: PrintedOutput) -> None:
    """Choose a score or model on a share of the records, and release its threshold from the others."""
    texts = stated.pop("choose")
    how: dict[str, Any] = {name: stated.pop(name) for name in ("choice_share", "largest_size") if name in stated}
    named = _columns_of_choice(texts, stated)
    rest = take_arguments(stated)
    check_unknown_arguments("choose_score", stated, ())
    rest |= take_words(rest, *source.files)
    alpha, epsilon, unit = rest["alpha"], rest.get("epsilon"), rest.pop("unit", None)
    if len(named) < 2 or epsilon is None:
        raise InputError("choose", "needs epsilon, and two or more different scores or models")
    for name in ("n", "by", "groups", "by_class", "people", "weights", "candidates", "partition", "class_weights"):
        if name in rest:
            raise InputError(name, "must be left out with choose, which is about one threshold for all records")
    rest.pop("skip_incomplete", None)
    check_combinations({"chosen": texts, **rest})
    specs = [source.what(columns, ALTERNATIVES) for columns in named.values()]
    of_labels = all(isinstance(what, ClassColumns) for what in specs)
    if not of_labels and any(what.kind.family != "absolute_residual" for what in specs):
        raise InputError("choose", "compares the widths of intervals for absolute_residual alone")
    output.check(FileKind.RELEASE, *source.files, *budget.files)
    with budget.charging() as receipt, output.new(FileKind.RELEASE) as part:
        with source.opened(source.file, "reading") as (table, progress):
            found = read_scores(table, specs, skip_incomplete=source.skip_incomplete, progress=progress)
            classes = [what.columns(table)[1] if isinstance(what, ClassColumns) else None for what in specs]
        kinds = [(what.kind.name, own) for what, own in zip(specs, classes, strict=True)]
        scores = {name: NamedScores.of(one.scores, *kind) for name, one, kind in zip(named, found, kinds, strict=True)}
        how["sizes"] = {name: one.class_scores for name, one in zip(named, found, strict=True)} if of_labels else None
        how |= {"records_per_person": rest.get("records_per_person", 1), "unit": unit, **budget.account(source.file)}
        for one in scores.values():  # before the choice is charged
            asked = Request(score=one.score, unit=unit, **{**rest, "classes": one.classes})
            rehearse(asked, prepare(asked))
        released = choose_score(scores, alpha, epsilon, **how).calibrate(**rest)
        part.write_text(released.to_json(), encoding="utf-8")
    asked = Request(score=released.score, unit=unit, chosen=released.chosen, **rest)
    report_release(released, asked, receipt, {}, output)


def _columns_of_choice(texts: str | Sequence[str], stated: dict[str, Any]) -> dict[str, ColumnSpec | None]:
    """The columns of each score or model, by its text; those before a colon replace the others."""
    if "score" in stated:
        raise InputError("score", "must be left out with choose, which names the scores")
    named, field = {}, "prediction" if "prediction" in stated else "probabilities"
    for text in (texts,) if isinstance(texts, str) else texts:
        where, _, score = text.rpartition(":")
        other = {"score": score, **({field: where} if where else {})}
        named[text] = take_columns({name: value for name, value in stated.items() if name in COLUMN_NAMES} | other)
    for name in COLUMN_NAMES:
        stated.pop(name, None)
    return named


def _from_counts(files: Sequence[Path], request: RequestOptions, budget: LedgerOptions, output: PrintedOutput) -> None:
    """Release a calibration from the counts of a warehouse."""
    plan, words, partition = _counting_plan(request)
    output.check(FileKind.RELEASE, *files, *budget.files)
    with budget.charging() as receipt, output.new(FileKind.RELEASE) as part:
        if budget.ledger_key is not None and len(files) > 1:
            raise InputError("ledger_key", "binds to one file's bytes", remedy="Leave it out for several --counts")
        account = budget.account(str(files[0]))
        counts = read_counts(list(files), plan)
        if account and plan.column is not None:
            check_partition(budget.ledger, partition)
        if account and partition is not None:
            account["partition"] = partition
        released = plan.calibrate(counts, **account, **words)
        part.write_text(released.to_json(), encoding="utf-8")
    report_release(released, plan.request, receipt, {}, output)


def _from_published(file: Path, stated: dict[str, Any], output: PrintedOutput) -> None:
    """Release a calibration from noisy counts that another engine made."""
    laws: dict[str, Any] = {name: Noise.parse(stated.pop(name)) for name in ("noise", "n_noise") if name in stated}
    facts: dict[str, Any] = {name: stated.pop(name) for name in ("n_noisy", "score", "classes") if name in stated}
    arguments = take_arguments(stated)
    words, alpha = take_words(arguments), arguments.pop("alpha")
    facts |= {name: arguments.pop(name) for name in ("n", "candidates") if name in arguments}
    check_unknown_arguments("calibrate_counts", {**stated, **arguments}, ())
    output.check(FileKind.RELEASE, file)
    with LedgerOptions().charging() as receipt, output.new(FileKind.RELEASE) as part:
        try:
            released = calibrate_counts(read_published_counts(file, **facts, **laws), alpha, **words)
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


@command("sql")
def sql(*, dialect: str, table: str, request: RequestOptions) -> None:
    r"""Print the query that counts in a warehouse, where no Python runs.

    Nothing is read, connected to or charged. The query computes a score per
    record (lac, absolute_residual, cqr and its sides, or a column of scores)
    and counts it over the candidates that follow from the request. Run it,
    keep its answer where the records are kept, for it is as private, and
    hand it to `confide calibrate --counts` with the same request. Class names
    stand for the * of --probabilities: the request has to list all classes.

    Example:

      confide sql --dialect snowflake --table clinic.records \
        --request request.toml > count.sql
    """
    plan, _, _ = _counting_plan(request)
    print_text(counting_query(plan, dialect, table).rstrip("\n"))
