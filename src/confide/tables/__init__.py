"""One way in and out for tables: files, folders, streams, data frames, databases and Spark.

In comes whatever somebody typed or handed over, and what is to be read of each record; out go counts, which releases
are made of, evaluations, and prediction sets in files, folders and tables. Memory does not grow with the rows. DuckDB,
pyarrow and Ibis are imported when a table is opened, not before; texts of their errors may quote records and are never
passed on.

what.py            what is read of each record: the one definition
open_table.py      from a name or data to a table; files, objects, memory, databases, spark/ open one kind each
table.py           what a table can do; duckdb_table.py and ibis_table.py do it
readings.py        from columns to one score per record: in numpy, or as SQL; named_column.py for labels and groups
stream_counts.py   counting in this process; group_by.py and spark/counts.py count where the rows live
predictors.py      from columns to sets and intervals; targets.py and database_writers.py write them
spreadsheets.py    CSV cells that a spreadsheet would run
figures.py         what is told of written predictions
findings.py        records that cannot be used; failures.py: what went wrong with an engine, in fixed words
labelled.py        records with known truth, handed on to whoever counts them
noisy_labels.py    labels that are randomised, and calibrations on them
calibrate.py, recalibrate.py, predict.py, evaluate.py, looks.py, pilot.py, counts.py, batches.py   the calls
one_call.py        `confide.evaluate`
"""

from confide.tables.batches import COUNT_SCHEMA, count_batches, merge_counts, score_batches
from confide.tables.calibrate import calibrate_table, class_histograms, class_keys
from confide.tables.counts import group_histograms, score_histogram
from confide.tables.evaluate import evaluate_table, evaluate_table_privately
from confide.tables.failures import EngineError
from confide.tables.formats import file_format
from confide.tables.looks import covered_counts, size_counts
from confide.tables.noisy_labels import calibrate_noisy_label_table, randomise_table
from confide.tables.one_call import evaluate
from confide.tables.open_table import files_of, open_table
from confide.tables.people import People
from confide.tables.pilot import read_pilot
from confide.tables.predict import predict_table
from confide.tables.progress import Progress, silent
from confide.tables.recalibrate import recalibrate_table
from confide.tables.spark import names_spark
from confide.tables.targets import is_folder, refuse_existing_folder, refuse_existing_predictions
from confide.tables.what import SIDES, Classified, Losses, Regressed, Scored, What

__all__ = [
    "COUNT_SCHEMA", "SIDES", "Classified", "EngineError", "Losses", "People", "Progress", "Regressed", "Scored", "What",
    "calibrate_noisy_label_table", "calibrate_table", "class_histograms", "class_keys", "count_batches",
    "covered_counts", "evaluate", "evaluate_table", "evaluate_table_privately", "file_format", "files_of",
    "group_histograms", "is_folder", "merge_counts", "names_spark", "open_table", "predict_table", "randomise_table",
    "read_pilot", "recalibrate_table", "refuse_existing_folder", "refuse_existing_predictions", "score_batches",
    "score_histogram", "silent", "size_counts",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
