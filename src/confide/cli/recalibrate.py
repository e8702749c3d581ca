"""`confide recalibrate`: a release again, from new records."""

from typing import Any

from confide.cli.charging import Accounting
from confide.cli.commands import Recalibrate
from confide.cli.names import ACCOUNTING, CALIBRATE, COLUMN_NAMES, RECALIBRATE
from confide.cli.release import make_release
from confide.cli.request import arguments_of, read_request, take_columns, take_words
from confide.cli.values import Source
from confide.core import Release, load_release
from confide.errors import InputError
from confide.tables import ColumnSpec, TableRequest


def recalibrate(options: Recalibrate) -> None:
    """Renew a release by the arguments that are stated, or by a whole request."""
    # The arguments of a renewal, or a whole request, of which the release must state the same.
    release, whole = load_release(options.release), None
    if options.request_file is None:
        arguments = arguments_of("recalibrate_table", RECALIBRATE, options)
    else:
        whole = read_request(options, CALIBRATE)
        arguments = {name: value for name, value in whole.items() if name in RECALIBRATE}
    budget = Accounting.of(options.budget, arguments)
    source = Source(options.file, options.table, arguments.pop("decimal", "."))
    columns = source.require_columns(take_columns(arguments, release))
    if whole is not None:
        _check_same(columns, whole, release)

    # Renew it.
    words, partition = take_words(arguments, *source.files), arguments.pop("partition", None)
    make_release(TableRequest.again(release, columns, **arguments, **words), source, budget, partition, options.output)


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
    request, before = table_request.request.stated(), release.request

    # Every field that a renewal keeps.
    same = {name: getattr(request, name) == getattr(before, name, None) for name in _SAME}
    if not table_request.columns.by_class:  # the table names the classes
        same["groups"] = list(map(str, request.terms)) == list(map(str, release.parts))
    for name, is_same in same.items():
        if not is_same:
            raise InputError(name, f"must be that of the release that is renewed, {getattr(before, name, 'of others')}")
