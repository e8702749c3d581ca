"""What `confide calibrate` does with a file, and with an engine: count, pay, draw."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confide.calibration.calibrate import calibrate_histogram
from confide.calibration.offers import check_number, group_offer, make_offer
from confide.candidates import Candidates
from confide.cli.columns import Classified, Columns, Regressed, Scored
from confide.cli.engine import classified_of, source_of
from confide.cli.groups import Grouping, as_values, class_keys
from confide.cli.progress import progress_bar
from confide.releases.calibration import Calibration
from confide.releases.several import GroupCalibration
from confide.tables import choose, histogram
from confide.tables.calibrate import calibrate_table, calibrate_table_groups
from confide.tables.connect import open_source
from confide.tables.expressions import existing_column
from confide.tables.parts import Label, Number
from confide.tables.people import People
from confide.tables.progress import expected_rows
from confide.tables.source import Table, open_table
from confide.tables.what import Source


@dataclass(frozen=True)
class Asked:
    """What the options ask for.

    Parameters
    ----------
    columns, candidates
        What is counted, over what.
    settings
        Of `calibrate`, with the ledger and the data set.
    n
        The public number of records, if it was stated.
    grouping
        What the thresholds depend on; None for one threshold.
    """

    columns: Columns
    candidates: Candidates
    settings: dict[str, Any]
    n: int | None
    grouping: Grouping | None


def from_file(asked: Asked, path: Path) -> Calibration | GroupCalibration:
    """Count a file's scores, then pay and draw; what the ledger does not allow is refused before rows are read."""
    if asked.grouping is not None:
        return _groups_from_file(asked, asked.grouping, path)
    name, settings = asked.columns.score_name, asked.settings
    offer = make_offer(n=asked.n, candidates=asked.candidates, score=name, **settings)
    if offer.request.n in (None, asked.n):  # else the price depends on the number of rows
        offer.kept()
    with open_table(path) as opened:
        scores = scores_of(opened, asked.columns)
        with progress_bar("reading", opened.row_count) as progress:
            counts = histogram.count(scores, asked.candidates, progress)
    check_number(counts, asked.n)
    return calibrate_histogram(counts, score=name, **settings)


def _groups_from_file(asked: Asked, grouping: Grouping, path: Path) -> GroupCalibration:
    with open_table(path) as opened:
        scores = scores_of(opened, asked.columns)
        group, names = _group(opened, scores, grouping)
        shared: dict[str, Any] = {"by": grouping.by, "partition": grouping.partition, **asked.settings}
        offer = group_offer(names, candidates=asked.candidates, score=scores.name, **shared)
        offer.refuse_early()
        with progress_bar("reading", opened.row_count) as progress:
            found = histogram.count_groups(scores, group, asked.candidates, progress)
    return offer.accept().finish(dict(zip(names, found, strict=True)))


def from_engine(asked: Asked, source: str, table: str | None, people: People | None) -> Calibration | GroupCalibration:
    """Pay, have the engine count, then draw."""
    threads = 1 if people is None else None  # sorting by person wants every core, counting does not
    with open_source(source, table, threads=threads) as opened:
        read, groups = _read(opened, asked)

        def total() -> int | None:
            return expected_rows(opened, streamed=not read.in_sql) if people is None else None

        with progress_bar("counting", total) as progress:
            shared: dict[str, Any] = {"candidates": asked.candidates, "people": people, "progress": progress}
            shared |= asked.settings
            if groups is None:
                return calibrate_table(opened, read, n=asked.n, **shared)
            return calibrate_table_groups(opened, read, **groups, **shared)


def _read(table: Any, asked: Asked) -> tuple[Source, dict[str, Any] | None]:
    """Where the scores come from, and what `calibrate_table_groups` takes of the groups."""
    grouping = asked.grouping
    if grouping is None:
        return source_of(table, asked.columns), None
    groups: dict[str, Any] = {"group": grouping.column, "by": grouping.by, "partition": grouping.partition}
    if grouping.names is None:
        read, classes = classified_of(table, asked.columns)
        return read, groups | {"names": class_keys(classes), "values": read.classes}
    integers = existing_column(table, grouping.column).type().is_integer()
    names = as_values(grouping.names, grouping.column, integers=integers)
    return source_of(table, asked.columns), groups | {"names": names}


def scores_of(table: Table, columns: Columns) -> histogram.Scores:
    """What the options read of a file: every score of the command line."""
    match columns.open(table):
        case Scored(column):
            return histogram.of_column(column, columns.score)
        case Classified(probabilities, Label() as label):
            return histogram.of_probabilities(probabilities, label, columns.score_name or "lac")
        case Regressed(predictions, Number() as target):
            return histogram.of_predictions(predictions, target, columns.score_name or "absolute_residual")
    raise AssertionError  # check_truth has refused the rest


def _group(table: Table, scores: histogram.Scores, grouping: Grouping) -> tuple[Label, tuple[str | int, ...]]:
    """The part of a row that names its group, and what the groups are called in the release."""
    if grouping.names is None:
        label = scores.parts[1]
        assert isinstance(label, Label)
        return label, class_keys(label.names)
    group = choose.group(table, grouping.column, grouping.names)
    return group, as_values(grouping.names, grouping.column, integers=group.integers)
