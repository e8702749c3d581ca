"""Commands that make a release: `confide calibrate`, `recalibrate` and `demo`; and `confide sql`, for counts.

Each prepares a request, and `make_release` charges, makes, writes and prints its release.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from confide.cli.charging import KEY_OF_ONE_FILE, Accounting, Receipt
from confide.cli.command import renamed
from confide.cli.commands import Calibrate, Demo, Recalibrate, Sql
from confide.cli.options import ACCOUNTING, CALIBRATE, COLUMN_NAMES, RECALIBRATE
from confide.cli.output import left_out_text, print_result, print_text
from confide.cli.request import arguments_of, read_request, take, take_columns, take_metadata
from confide.cli.values import ALTERNATIVES, Source
from confide.core import (
    CHOICE_ARGUMENTS,
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
from confide.errors import InputError
from confide.mechanisms import Noise, Slopes
from confide.scores import NamedScores
from confide.support import FileKind, check_unknown_arguments, require
from confide.tables import (
    ClassColumns,
    ColumnSpec,
    CountsFiles,
    Progress,
    TableRequest,
    no_progress,
    read_published_counts,
    read_scores,
)


def calibrate(options: Calibrate) -> None:
    """Calibrate on a table, on counts or on noisy counts."""
    # One source of records.
    sources = {"TABLE": options.file, "--counts": options.counts, "--noisy-counts": options.noisy_counts}
    named = [name for name, source in sources.items() if source]
    if len(named) != 1:
        raise click.UsageError(f"name one of TABLE, --counts and --noisy-counts; got {' and '.join(named) or 'none'}")

    # Each has its own arguments, and its own way to pay.
    arguments = read_request(options, CALIBRATE)
    budget = Accounting.of(options.budget, arguments)
    if options.counts:
        _from_counts(_Counts(str(options.counts[0]), files=options.counts), arguments, budget, options)
    elif options.noisy_counts is not None:
        budget.refuse("--noisy-counts: their maker has chosen the records and spent the privacy loss")
        _from_published(options.noisy_counts, arguments, options)
    else:
        source = Source(options.file, options.table, arguments.pop("decimal", "."))
        release_from = _from_choice if "choose" in arguments else _from_table
        release_from(source, arguments, budget, options)


def _from_table(source: Source, arguments: dict[str, Any], budget: Accounting, options: Calibrate) -> None:
    columns = take_columns(arguments)
    metadata = take_metadata(arguments, *source.files)
    partition = arguments.pop("partition", None)
    request = TableRequest.of(source.require_columns(columns), **arguments, **metadata)
    make_release(request, source, budget, partition, options)


# From counts


@dataclass(frozen=True)
class _Counts(Source):
    """The files of a warehouse's counts, in place of a table: nothing is opened, and there is no progress."""

    files: tuple[Path, ...] = ()

    @contextmanager
    def open(self, doing: str) -> Iterator[tuple[Any, Progress]]:
        yield CountsFiles(self.files), no_progress


def _from_counts(counts: _Counts, arguments: dict[str, Any], budget: Accounting, options: Calibrate) -> None:
    request, partition = _request_without_table(arguments)
    is_one_file = budget.ledger_key is None or len(counts.files) == 1
    require("ledger_key", is_one_file, KEY_OF_ONE_FILE, remedy="Several --counts are several files")
    make_release(request, counts, budget, partition, options)


def _request_without_table(arguments: dict[str, Any]) -> tuple[TableRequest, str | None]:
    """The request of a table that is not read, and the partition for its release."""
    further = take(arguments, ("partition", "decimal"))
    if (columns := take_columns(arguments)) is None:
        raise click.UsageError(f"name the columns to count: {ALTERNATIVES}")
    metadata = take_metadata(arguments)
    return TableRequest.of(columns, **arguments, **metadata), further.get("partition")


def sql(options: Sql) -> None:
    """Print the query that makes the counts."""
    request, _ = _request_without_table(read_request(options))
    print_text(request.query(options.dialect, options.table).rstrip("\n"))


def _from_published(file: Path, arguments: dict[str, Any], options: Calibrate) -> None:
    # What the file does not state: the law of the noise, and facts about the records.
    facts = take(arguments, ("noise", "n_noise", "n", "n_noisy", "score", "classes", "candidates"))
    facts |= {name: Noise.parse(facts[name]) for name in ("noise", "n_noise") if name in facts}
    metadata = take_metadata(arguments)
    alpha = arguments.pop("alpha")
    check_unknown_arguments("calibrate_counts", arguments, ())

    # Nothing is charged: the noise was added before.
    options.output.check(FileKind.RELEASE, file)
    with Accounting().charging() as receipt, options.output.new(FileKind.RELEASE) as path:
        with renamed("counts", "noisy_counts"):
            released = calibrate_counts(read_published_counts(file, **facts), alpha, **metadata)
        path.write_text(released.to_json(), encoding="utf-8")
    print_release(released, None, receipt, {}, options)


# From scores among which one is chosen


def _from_choice(source: Source, arguments: dict[str, Any], budget: Accounting, options: Calibrate) -> None:
    """Choose a score or model on a share of the records, and release its threshold from the others."""
    # The columns of each score or model, and the arguments of the choice and of the release.
    columns = _columns_of_choice(arguments.pop("choose"), arguments)
    check_unknown_arguments("choose_score", arguments, CHOICE_ARGUMENTS | {"skip_incomplete"})
    skip = arguments.pop("skip_incomplete", False)
    unit = arguments.pop("unit", None)
    choosing = take(arguments, ("choice_share", "largest_size"))
    metadata = take_metadata(arguments, *source.files)
    if len(columns) < 2 or arguments.get("epsilon") is None:
        raise InputError("choose", "needs epsilon, and two or more different scores or models")
    releasing = {**arguments, **metadata}
    check_combinations({"chosen": tuple(columns), **releasing})

    # The columns in the table, and how scores are compared.
    specs = {name: source.require_columns(spec) for name, spec in columns.items()}
    by_size = _compares_sizes(list(specs.values()))

    # The release of every score must be possible before the choice is charged.
    options.output.check(FileKind.RELEASE, *source.files, *budget.files)
    with budget.charging() as receipt, options.output.new(FileKind.RELEASE) as path:
        scores, class_scores = _read_choice(source, specs, skip=skip)
        choosing |= {"unit": unit, "records_per_person": releasing.get("records_per_person", 1)}
        choosing |= {"sizes": class_scores if by_size else None, **budget.account(source.file)}
        _rehearse_each(scores.values(), {**releasing, "unit": unit})
        chosen = choose_score(scores, releasing["alpha"], releasing["epsilon"], **choosing)
        released = chosen.calibrate(**releasing)
        path.write_text(released.to_json(), encoding="utf-8")
    request = Request(score=released.score, unit=unit, chosen=released.chosen, **releasing)
    print_release(released, request, receipt, {}, options)


def _compares_sizes(specs: Sequence[ColumnSpec]) -> bool:
    """Whether scores are compared by the sizes of sets, or else by the widths of intervals."""
    of_labels = all(isinstance(spec, ClassColumns) for spec in specs)
    of_widths = all(spec.kind.family == "absolute_residual" for spec in specs)
    require("choose", of_labels or of_widths, "compares the widths of intervals for absolute_residual alone")
    return of_labels


def _rehearse_each(scores: Iterable[NamedScores], options: Mapping[str, Any]) -> None:
    """Check that the threshold of each score could be released."""
    for candidate in scores:
        request = Request(score=candidate.score, **{**options, "classes": candidate.classes})
        rehearse(request, prepare(request))


def _read_choice(
    source: Source, specs: Mapping[str, ColumnSpec], *, skip: bool
) -> tuple[dict[str, NamedScores], dict[str, Any]]:
    """The scores of the true labels, and those of all classes, by score or model; all are read at once."""
    with source.open("reading") as (table, progress):
        readings = read_scores(table, list(specs.values()), skip_incomplete=skip, progress=progress)
        classes = [spec.columns(table)[1] if isinstance(spec, ClassColumns) else None for spec in specs.values()]
    scores = {
        name: NamedScores.of(reading["scores"], spec.kind.name, names)
        for (name, spec), reading, names in zip(specs.items(), readings, classes, strict=True)
    }
    return scores, {name: reading.get("class_scores") for name, reading in zip(specs, readings, strict=True)}


def _columns_of_choice(texts: Sequence[str], arguments: dict[str, Any]) -> Mapping[str, ColumnSpec | None]:
    """The columns of each score or model, by its text; those before a colon replace the others."""
    require("score", "score" not in arguments, "must be left out with choose, which names the scores")
    columns = {}
    shared = take(arguments, COLUMN_NAMES)
    field = "prediction" if "prediction" in shared else "probabilities"
    for text in texts:
        names, _, score = text.rpartition(":")
        replaced = {field: names} if names else {}
        columns[text] = take_columns({**shared, "score": score, **replaced})
    return columns


# A renewal


def recalibrate(options: Recalibrate) -> None:
    """Renew a release by the arguments that are stated, or by a whole request."""
    # The arguments of a renewal, or a whole request, of which the release must state the same.
    release = load_release(options.release)
    whole = None if options.request_file is None else read_request(options, CALIBRATE)
    if whole is None:
        arguments = arguments_of("recalibrate_table", RECALIBRATE, options)
    else:
        arguments = {name: value for name, value in whole.items() if name in RECALIBRATE}
    budget = Accounting.of(options.budget, arguments)
    source = Source(options.file, options.table, arguments.pop("decimal", "."))
    columns = source.require_columns(take_columns(arguments, release))
    if whole is not None:
        _check_same(columns, whole, release)

    # Renew it.
    metadata = take_metadata(arguments, *source.files)
    partition = arguments.pop("partition", None)
    request = TableRequest.again(release, columns, **arguments, **metadata)
    make_release(request, source, budget, partition, options)


# Fields of a request that a renewal keeps
_SAME = (
    "alpha", "score", "loss", "bound", "neighbors", "n_min", "delta", "records_per_person", "mechanism", "population",
    "candidates",
)  # fmt: skip


def _check_same(columns: ColumnSpec, arguments: dict[str, Any], release: Release) -> None:
    """Check that a file states the request of the release; metadata and the privacy loss may be others."""
    # The request of the file, without columns and metadata.
    left_out = (*COLUMN_NAMES, *ACCOUNTING, "decimal", "about", "fingerprint", "partition")
    of_request = {name: value for name, value in arguments.items() if name not in left_out}
    table_request = TableRequest.of(columns, **of_request)
    request = table_request.request.stated()
    before = release.request

    # Every field that a renewal keeps, and the groups.
    same = {name: getattr(request, name) == getattr(before, name, None) for name in _SAME}
    if not table_request.columns.by_class:  # the table names the classes
        same["groups"] = list(map(str, request.terms)) == list(map(str, release.parts))
    for name, is_same in same.items():
        must = f"must be that of the release that is renewed, {getattr(before, name, 'of others')}"
        require(name, is_same, must)


# The example


def demo(options: Demo) -> None:
    """Run the example."""
    from confide.demo import run

    print_text(run(options.out, force=options.force))


# A release


def make_release(
    request: TableRequest, source: Source, budget: Accounting, partition: str | None, options: Calibrate | Recalibrate
) -> None:
    """Charge, make, write and print a release."""
    public = request.request.public_n
    options.output.check(FileKind.RELEASE, *source.files, *budget.files)
    with budget.charging() as receipt:
        # Check the ledger's limit before the table is opened, if the charge is known.
        request = replace(request, payer=budget.payer(source.file, partition, divided=request.is_divided))
        is_known = not request.is_divided and (request.n is not None or not public)
        if request.payer.has_ledger and is_known:
            request.check_limit()

        # The number of records left out is secret with that of the others, and unknown if only counts are read.
        with options.output.new(FileKind.RELEASE) as path, source.open("counting") as (table, progress):
            released = request.release(table, progress)
            is_public = public and request.columns.skip_incomplete and not isinstance(table, CountsFiles)
            left_out = {"left_out": table.left_out()} if is_public else {}
            path.write_text(released.to_json(), encoding="utf-8")
    print_release(released, request.request, receipt, left_out, options)


def print_release(
    released: Any,
    request: Request | None,
    receipt: Receipt,
    left_out: Mapping[str, int],
    options: Calibrate | Recalibrate,
) -> None:
    """Print a release, its expected cost, warnings, and the charge.

    The request is None for published counts, whose cost was paid elsewhere.
    """
    captured = receipt.captured
    captured.warn()
    plan = None if request is None else _informative_plan(released)
    expected = None if plan is None else _expected(plan)

    written = {"out": str(options.output.out), "calibration": json.loads(released.to_json()), "expected": expected}
    charged = {} if request is None else receipt.fields()
    document = {**written, "records_needed": records_needed(released), **captured.fields(), **charged, **left_out}

    # What was charged, or that no ledger was named.
    paid = request is not None and (receipt.ledger is not None or not math.isinf(released.privacy.epsilon))
    print_result(
        document,
        *captured.earlier,
        str(released),
        left_out_text(left_out),
        None if plan is None else _cost_of_privacy(released, plan),
        receipt.text() if paid else None,
        options.output.saved(),
        as_json=options.as_json,
    )


def _informative_plan(released: Any) -> Plan | None:
    """The plan of one threshold, for its expected cost; None where the cost is not informative."""
    is_single = released.by is None and released.loss is None
    is_informative = is_single and isinstance(released.mechanism, Slopes) and not remarks(released)
    return plan_of(released) if is_informative else None


def _expected(plan: Plan) -> dict[str, Any]:
    return {
        "records": plan.n,
        "coverage": plan.expected_coverage,
        "excess": plan.expected_excess,
        "records_needed": plan.records_needed,
    }


def _cost_of_privacy(released: Any, plan: Plan) -> str:
    if released.n is not None:
        source = ""
    elif released.size is not None:
        source = ", which the noisy number suggests"
    else:
        source = ", a public guess: the true number is secret"
    return (
        f"cost of privacy: {100 * plan.expected_coverage:.4g} % expected coverage instead of "
        f"{100 * float(1 - released.alpha):.4g} %\n"
        f"      (on {plan.typical_scores}, with {plan.n} records{source})"
    )
