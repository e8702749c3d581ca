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


def calibrate(asked: Calibrate) -> None:
    """Calibrate on a table, on counts or on noisy counts."""
    # One source of records.
    sources = {"TABLE": asked.file, "--counts": asked.counts, "--noisy-counts": asked.noisy_counts}
    given = [name for name, source in sources.items() if source]
    if len(given) != 1:
        raise click.UsageError(f"name one of TABLE, --counts and --noisy-counts; got {' and '.join(given) or 'none'}")

    # Each has its own arguments, and its own way to pay.
    stated = read_request(asked, CALIBRATE)
    budget, output = Accounting.of(asked.budget, stated), asked.output
    if asked.counts:
        _from_counts(_Counts(str(asked.counts[0]), files=asked.counts), stated, budget, output)
    elif asked.noisy_counts is not None:
        budget.refuse("--noisy-counts: their maker has chosen the records and spent the privacy loss")
        _from_published(asked.noisy_counts, stated, output)
    else:
        source = Source(asked.file, asked.table, stated.pop("decimal", "."))
        (_from_choice if "choose" in stated else _from_table)(source, stated, budget, output)


def _from_table(source: Source, stated: dict[str, Any], budget: Accounting, output: PrintedOutput) -> None:
    what, words, partition = take_columns(stated), take_words(stated, *source.files), stated.pop("partition", None)
    request = TableRequest.of(source.what(what), **stated, **words)
    make_release(request, source, budget, partition, output)


@dataclass(frozen=True)
class _Counts(Source):
    """The files of a warehouse's counts, in place of a table: nothing is opened, and there is no progress."""

    files: tuple[Path, ...] = ()

    @contextmanager
    def open(self, doing: str) -> Iterator[tuple[Any, Progress]]:
        """Yield the files."""
        yield CountsFiles(self.files), no_progress


def _from_counts(counts: _Counts, stated: dict[str, Any], budget: Accounting, output: PrintedOutput) -> None:
    request, partition = _counted(stated)
    if budget.ledger_key is not None and len(counts.files) > 1:
        raise InputError("ledger_key", "binds to one file's bytes", remedy="Leave it out for several --counts")
    make_release(request, counts, budget, partition, output)


def _counted(stated: dict[str, Any]) -> tuple[TableRequest, str | None]:
    """The request of a table that is not read, and the partition for its release."""
    what, partition, _ = take_columns(stated), stated.pop("partition", None), stated.pop("decimal", None)
    if what is None:
        raise click.UsageError(f"name the columns to count: {ALTERNATIVES}")
    words = take_words(stated)
    return TableRequest.of(what, **stated, **words), partition


def _from_published(file: Path, stated: dict[str, Any], output: PrintedOutput) -> None:
    # What the file does not state: the law of the noise, and facts about the records.
    named_by("counts", "noisy_counts")
    laws: dict[str, Any] = {name: Noise.parse(stated.pop(name)) for name in ("noise", "n_noise") if name in stated}
    names = ("n", "n_noisy", "score", "classes", "candidates")
    facts: dict[str, Any] = {name: stated.pop(name) for name in names if name in stated}
    words, alpha = take_words(stated), stated.pop("alpha")
    check_unknown_arguments("calibrate_counts", stated, ())

    # Nothing is charged: the noise was added before.
    output.check(FileKind.RELEASE, file)
    with Accounting().charging() as receipt, output.new(FileKind.RELEASE) as path:
        released = calibrate_counts(read_published_counts(file, **facts, **laws), alpha, **words)
        path.write_text(released.to_json(), encoding="utf-8")
    print_release(released, None, receipt, {}, output)


def _from_choice(source: Source, stated: dict[str, Any], budget: Accounting, output: PrintedOutput) -> None:
    """Choose a score or model on a share of the records, and release its threshold from the others."""
    # The scores, and the arguments of the choice and of the release.
    named = _columns_of_choice(stated.pop("choose"), stated)
    check_unknown_arguments("choose_score", stated, CHOICE_ARGUMENTS | {"skip_incomplete"})
    skip, unit = stated.pop("skip_incomplete", False), stated.pop("unit", None)
    how: dict[str, Any] = {name: stated.pop(name) for name in ("choice_share", "largest_size") if name in stated}
    alpha, epsilon, rest = stated["alpha"], stated.get("epsilon"), stated | take_words(stated, *source.files)
    if len(named) < 2 or epsilon is None:
        raise InputError("choose", "needs epsilon, and two or more different scores or models")
    check_combinations({"chosen": tuple(named), **rest})

    # Scores are compared by the sizes of sets, or by the widths of intervals.
    specs = [source.what(columns) for columns in named.values()]
    of_labels = all(isinstance(what, ClassColumns) for what in specs)
    if not of_labels and any(what.kind.family != "absolute_residual" for what in specs):
        raise InputError("choose", "compares the widths of intervals for absolute_residual alone")

    # Read all scores of the table at once.
    output.check(FileKind.RELEASE, *source.files, *budget.files)
    with budget.charging() as receipt, output.new(FileKind.RELEASE) as path:
        with source.open("reading") as (table, progress):
            readings = read_scores(table, specs, skip_incomplete=skip, progress=progress)
            classes = [what.columns(table)[1] if isinstance(what, ClassColumns) else None for what in specs]
        kinds = [(what.kind.name, names) for what, names in zip(specs, classes, strict=True)]
        read = dict(zip(named, readings, strict=True))
        scores = {name: NamedScores.of(read[name].scores, *kind) for name, kind in zip(named, kinds, strict=True)}
        how["sizes"] = {name: reading.class_scores for name, reading in read.items()} if of_labels else None
        how |= {"records_per_person": rest.get("records_per_person", 1), "unit": unit, **budget.account(source.file)}

        # The release of every score must be possible before the choice is charged.
        for candidate in scores.values():
            asked = Request(score=candidate.score, unit=unit, **{**rest, "classes": candidate.classes})
            rehearse(asked, prepare(asked))
        released = choose_score(scores, alpha, epsilon, **how).calibrate(**rest)
        path.write_text(released.to_json(), encoding="utf-8")
    asked = Request(score=released.score, unit=unit, chosen=released.chosen, **rest)
    print_release(released, asked, receipt, {}, output)


def _columns_of_choice(texts: Sequence[str], stated: dict[str, Any]) -> Mapping[str, ColumnSpec | None]:
    """The columns of each score or model, by its text; those before a colon replace the others."""
    if "score" in stated:
        raise InputError("score", "must be left out with choose, which names the scores")
    shared = {name: stated.pop(name) for name in COLUMN_NAMES if name in stated}
    field, named = "prediction" if "prediction" in shared else "probabilities", {}
    for text in texts:
        where, _, score = text.rpartition(":")
        named[text] = take_columns({**shared, "score": score, **({field: where} if where else {})})
    return named


def sql(asked: Sql) -> None:
    """Print the query."""
    counted, _ = _counted(read_request(asked))
    print_text(counted.query(asked.dialect, asked.table).rstrip("\n"))
