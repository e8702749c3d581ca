"""Tables: input and output for files, folders, streams, data frames, also of Spark, and databases.

The input is a name or data, and the columns to read of each record. The output is counts (from which releases are
made), evaluations, and prediction sets in files, folders and tables. Memory does not grow with the number of rows.
DuckDB, pyarrow and Ibis are imported when they are used, not before (deferred.py). Their error texts may quote records
and are never passed on.

columns.py         the columns of each record, and everything that depends on their kind
named_columns.py, number_columns.py   columns of labels and groups, and of probabilities, losses and weights, looked up
readers.py         what the score of a record reads, and the score: in numpy, or as SQL
record_columns.py  all columns of a record together, and the batches that are read by them
open_table.py      from a name or data to a table
table.py           the interface of a table; files.py (with file_names.py and csv_dialect.py), data.py, streams.py,
                   duckdb_table.py, ibis_table.py (opened by databases.py) and spark.py implement it
arrow.py           Arrow's types and columns, and from Arrow to numpy and back; schemas.py: agreement of schemas
expressions.py     columns in SQL and as expressions of Ibis, and the rule of missing values
people.py          the bound on the records of each person
row_errors.py      rows that cannot be used; failures.py: errors of files, engines and packages, without values
bin_counts.py      counts per bin, in this process; engine_counts.py: by an engine
source.py          the columns of a call, and the records of a table as a source of releases
counting.py        histograms of tables and of batches; samples.py: scores that are kept whole
predictors.py      from columns to sets and intervals; prediction_counts.py: their sizes
file_formats.py    file extensions, and files written batch by batch; predict.py writes predictions into them
unread.py          the query that counts where this process reads nothing; query_answers.py: its answer
count_files.py     the rows of files of counts, and noisy counts of other engines
calibrate.py, evaluate.py   the other calls
"""

from confide.tables.calibrate import TableRequest, calibrate_table, counting_query, recalibrate_table
from confide.tables.columns import ClassColumns, ColumnSpec, LossColumns, ScoreColumn, TargetColumns, class_keys
from confide.tables.count_files import read_published_counts
from confide.tables.counting import (
    COUNT_SCHEMA,
    class_histograms,
    count_batches,
    group_histograms,
    merge_counts,
    score_batches,
    score_histogram,
)
from confide.tables.evaluate import (
    evaluate,
    evaluate_table,
    evaluate_table_privately,
    monitoring_coverage_counts,
    size_counts,
)
from confide.tables.failures import EngineError
from confide.tables.file_formats import file_format, format_of
from confide.tables.open_table import files_of, open_table
from confide.tables.people import ContributionBound
from confide.tables.predict import (
    is_folder,
    predict_frame,
    predict_table,
    refuse_existing_folder,
    refuse_existing_predictions,
)
from confide.tables.query_answers import CountsFiles
from confide.tables.samples import read_numbers, read_pilot, read_scores
from confide.tables.source import Columns
from confide.tables.table import Progress, no_progress
from confide.tables.unread import DIALECTS

__all__ = [
    "COUNT_SCHEMA", "ClassColumns", "ColumnSpec", "ContributionBound", "CountsFiles", "EngineError", "LossColumns",
    "Progress", "ScoreColumn", "TargetColumns",
    "calibrate_table", "class_histograms", "count_batches", "counting_query", "evaluate",
    "evaluate_table", "evaluate_table_privately", "group_histograms", "merge_counts", "open_table", "predict_frame",
    "predict_table", "read_pilot", "read_published_counts", "recalibrate_table", "score_batches",
    "score_histogram",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
