"""`confide recalibrate`: a release again, from new records."""

from pathlib import Path
from typing import Any

from confide.cli.charging import LedgerOptions
from confide.cli.command import command
from confide.cli.release import make_release
from confide.cli.request import (
    COLUMN_NAMES,
    NAMES,
    PEOPLE,
    READING,
    RequestOptions,
    ScoredColumns,
    read_arguments,
    take_columns,
    take_words,
)
from confide.cli.values import PrintedOutput, Source
from confide.core import RENEWED, Release, load_release
from confide.errors import InputError
from confide.tables import ColumnSpec, TableRequest

RENEWAL = frozenset([*COLUMN_NAMES, *READING, *RENEWED, PEOPLE, "by", "n", "weights", "partition"])
"""The arguments of a renewal; all others are those of the release."""


@command("recalibrate", names=RENEWAL)
def recalibrate(
    *,
    file: str,
    table: str | None = None,
    previous: Path,
    columns: ScoredColumns,
    by: str | None = None,
    epsilon: float | None = None,
    n: int | None = None,
    request_file: Path | None = None,
    settings: tuple[str, ...] = (),
    budget: LedgerOptions,
    output: PrintedOutput,
) -> None:
    r"""Renew a release on new records with true labels.

    The request (level, score, adjacency, groups, privacy loss) is that of the
    release; name the columns of TABLE again, or give the --request file of
    the release. It costs as much as a new release (--epsilon: by default that
    of the earlier one), and the costs add up for people who are in both. The
    file states the SHA-256 of the release that it renews.

    Example:

      confide recalibrate february.parquet --calibration january.json \
        --probabilities 'p_*' --label label --out february.json
    """
    typed = {**vars(columns), "by": by, "epsilon": epsilon, "n": n}
    release = load_release(previous)
    if request_file is None:
        stated, asked = read_arguments("recalibrate_table", RENEWAL, typed, settings), None
    else:
        whole = RequestOptions(**typed, settings=settings, request_file=request_file).read(NAMES)
        stated, asked = {name: value for name, value in whole.items() if name in RENEWAL}, whole
    source = Source(file, table, stated.pop("decimal", "."))
    what = source.what(take_columns(stated, release))
    if asked is not None:
        _check_same(what, asked, release)
    words, partition = take_words(stated, *source.files), stated.pop("partition", None)
    make_release(TableRequest.again(release, what, **stated, **words), source, budget, partition, output)


_SAME = (
    "alpha", "score", "loss", "bound", "neighbors", "n_min", "delta", "records_per_person", "mechanism", "population",
    "candidates",
)  # fmt: skip


def _check_same(what: ColumnSpec, stated: dict[str, Any], release: Release) -> None:
    """Check that a file states the request of the release; metadata and the privacy loss may be others."""
    left_out = (*COLUMN_NAMES, "decimal", "about", "fingerprint", "partition")
    asked = TableRequest.of(what, **{name: value for name, value in stated.items() if name not in left_out})
    request, before = asked.request.stated(), release.request
    same = {name: getattr(request, name) == getattr(before, name, None) for name in _SAME}
    if not asked.columns.by_class:  # the table names the classes
        same["groups"] = list(map(str, request.terms)) == list(map(str, release.parts))
    for name, is_same in same.items():
        if not is_same:
            raise InputError(name, f"must be that of the release that is renewed, {getattr(before, name, 'of others')}")
