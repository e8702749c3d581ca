"""`confide calibrate`: a private release from a table or from counts; `confide sql`: the query that counts."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from confide.cli.charging import Accounting
from confide.cli.command import named_by
from confide.cli.commands import Calibrate, Sql
from confide.cli.names import CALIBRATE, COLUMN_NAMES
from confide.cli.output import print_text
from confide.cli.release import make_release, print_release
from confide.cli.request import read_request, take_columns, take_words
from confide.cli.values import ALTERNATIVES, Source
from confide.cli.written import PrintedOutput
from confide.core import (
    CHOICE_ARGUMENTS,
    Request,
    calibrate_counts,
    check_combinations,
    choose_score,
    prepare,
    rehearse,
)
from confide.errors import InputError
from confide.mechanisms import Noise
from confide.scores import NamedScores
from confide.support import FileKind, check_unknown_arguments
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
    given = [name for name, source in sources.items() if source]
    if len(given) != 1:
        raise click.UsageError(f"name one of TABLE, --counts and --noisy-counts; got {' and '.join(given) or 'none'}")

    # Each has its own arguments, and its own way to pay.
    arguments = read_request(options, CALIBRATE)
    budget, output = Accounting.of(options.budget, arguments), options.output
    if options.counts:
        _from_counts(_Counts(str(options.counts[0]), files=options.counts), arguments, budget, output)
    elif options.noisy_counts is not None:
        budget.refuse("--noisy-counts: their maker has chosen the records and spent the privacy loss")
        _from_published(options.noisy_counts, arguments, output)
    else:
        source = Source(options.file, options.table, arguments.pop("decimal", "."))
        (_from_choice if "choose" in arguments else _from_table)(source, arguments, budget, output)


def _from_table(source: Source, arguments: dict[str, Any], budget: Accounting, output: PrintedOutput) -> None:
    columns, words = take_columns(arguments), take_words(arguments, *source.files)
    partition = arguments.pop("partition", None)
    request = TableRequest.of(source.require_columns(columns), **arguments, **words)
    make_release(request, source, budget, partition, output)


@dataclass(frozen=True)
class _Counts(Source):
    """The files of a warehouse's counts, in place of a table: nothing is opened, and there is no progress."""

    files: tuple[Path, ...] = ()

    @contextmanager
    def open(self, doing: str) -> Iterator[tuple[Any, Progress]]:
        yield CountsFiles(self.files), no_progress


def _from_counts(counts: _Counts, arguments: dict[str, Any], budget: Accounting, output: PrintedOutput) -> None:
    request, partition = _counted(arguments)
    if budget.ledger_key is not None and len(counts.files) > 1:
        raise InputError("ledger_key", "binds to one file's bytes", remedy="Leave it out for several --counts")
    make_release(request, counts, budget, partition, output)


def _counted(arguments: dict[str, Any]) -> tuple[TableRequest, str | None]:
    """The request of a table that is not read, and the partition for its release."""
    columns, partition, _ = take_columns(arguments), arguments.pop("partition", None), arguments.pop("decimal", None)
    if columns is None:
        raise click.UsageError(f"name the columns to count: {ALTERNATIVES}")
    words = take_words(arguments)
    return TableRequest.of(columns, **arguments, **words), partition


def _from_published(file: Path, arguments: dict[str, Any], output: PrintedOutput) -> None:
    # What the file does not state: the law of the noise, and facts about the records.
    named_by("counts", "noisy_counts")
    names = ("noise", "n_noise", "n", "n_noisy", "score", "classes", "candidates")
    facts: dict[str, Any] = {name: arguments.pop(name) for name in names if name in arguments}
    facts |= {name: Noise.parse(facts[name]) for name in ("noise", "n_noise") if name in facts}
    words, alpha = take_words(arguments), arguments.pop("alpha")
    check_unknown_arguments("calibrate_counts", arguments, ())

    # Nothing is charged: the noise was added before.
    output.check(FileKind.RELEASE, file)
    with Accounting().charging() as receipt, output.new(FileKind.RELEASE) as path:
        released = calibrate_counts(read_published_counts(file, **facts), alpha, **words)
        path.write_text(released.to_json(), encoding="utf-8")
    print_release(released, None, receipt, {}, output)


def _from_choice(source: Source, arguments: dict[str, Any], budget: Accounting, output: PrintedOutput) -> None:
    """Choose a score or model on a share of the records, and release its threshold from the others."""
    # The scores, and the arguments of the choice and of the release.
    named = _columns_of_choice(arguments.pop("choose"), arguments)
    check_unknown_arguments("choose_score", arguments, CHOICE_ARGUMENTS | {"skip_incomplete"})
    skip, unit = arguments.pop("skip_incomplete", False), arguments.pop("unit", None)
    how: dict[str, Any] = {name: arguments.pop(name) for name in ("choice_share", "largest_size") if name in arguments}
    alpha, epsilon = arguments["alpha"], arguments.get("epsilon")
    rest = arguments | take_words(arguments, *source.files)
    if len(named) < 2 or epsilon is None:
        raise InputError("choose", "needs epsilon, and two or more different scores or models")
    check_combinations({"chosen": tuple(named), **rest})

    # Scores are compared by the sizes of sets, or by the widths of intervals.
    specs = [source.require_columns(columns) for columns in named.values()]
    of_labels = all(isinstance(spec, ClassColumns) for spec in specs)
    if not of_labels and any(spec.kind.family != "absolute_residual" for spec in specs):
        raise InputError("choose", "compares the widths of intervals for absolute_residual alone")

    # Read all scores of the table at once.
    output.check(FileKind.RELEASE, *source.files, *budget.files)
    with budget.charging() as receipt, output.new(FileKind.RELEASE) as path:
        with source.open("reading") as (table, progress):
            readings = read_scores(table, specs, skip_incomplete=skip, progress=progress)
            classes = [spec.columns(table)[1] if isinstance(spec, ClassColumns) else None for spec in specs]
        kinds = [(spec.kind.name, names) for spec, names in zip(specs, classes, strict=True)]
        read = dict(zip(named, readings, strict=True))
        scores = {name: NamedScores.of(read[name].scores, *kind) for name, kind in zip(named, kinds, strict=True)}
        how["sizes"] = {name: reading.class_scores for name, reading in read.items()} if of_labels else None
        how |= {"records_per_person": rest.get("records_per_person", 1), "unit": unit, **budget.account(source.file)}

        # The release of every score must be possible before the choice is charged.
        for candidate in scores.values():
            request = Request(score=candidate.score, unit=unit, **{**rest, "classes": candidate.classes})
            rehearse(request, prepare(request))
        released = choose_score(scores, alpha, epsilon, **how).calibrate(**rest)
        path.write_text(released.to_json(), encoding="utf-8")
    request = Request(score=released.score, unit=unit, chosen=released.chosen, **rest)
    print_release(released, request, receipt, {}, output)


def _columns_of_choice(texts: Sequence[str], arguments: dict[str, Any]) -> Mapping[str, ColumnSpec | None]:
    """The columns of each score or model, by its text; those before a colon replace the others."""
    if "score" in arguments:
        raise InputError("score", "must be left out with choose, which names the scores")
    shared = {name: arguments.pop(name) for name in COLUMN_NAMES if name in arguments}
    field, named = "prediction" if "prediction" in shared else "probabilities", {}
    for text in texts:
        where, _, score = text.rpartition(":")
        named[text] = take_columns({**shared, "score": score, **({field: where} if where else {})})
    return named


def sql(options: Sql) -> None:
    """Print the query."""
    counted, _ = _counted(read_request(options))
    print_text(counted.query(options.dialect, options.table).rstrip("\n"))
