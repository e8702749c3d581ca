"""Predictions written by the engine into a table of its own, or streamed into a file; whole, or not at all."""

from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

from confide.errors import InputError
from confide.support.files import new_file
from confide.tables.batch_sets import SET, SIZE
from confide.tables.engine_failures import fixed_words
from confide.tables.formats import file_format
from confide.tables.progress import Progress, silent
from confide.tables.reading import arrow_batches
from confide.tables.sets import LOWER
from confide.tables.sinks import open_sink
from confide.tables.sql import identifier
from confide.tables.streamed_sets import StreamedSets, write_duckdb, write_postgres
from confide.tables.tally import Tally
from confide.tables.tally import figures as told

_ROWS = 2**16


def write_file(predicted: Any, path: Path, *, overwrite: bool = False, progress: Progress = silent) -> dict[str, float]:
    """Stream the expression that `with_sets` or `with_intervals` gave into a Parquet or Arrow file.

    Returns
    -------
    dict
        The number of rows, and for sets their mean size.

    Raises
    ------
    InputError
        If rows have no set or interval, or the file's format cannot hold lists; then nothing is left behind.
    """
    kind = file_format(path)
    if kind == "csv" and SET in predicted.columns:
        raise InputError(f"output {str(path)!r} must be a Parquet or Arrow file: sets are lists, which CSV cannot hold")
    tally = Tally(proof_of(predicted))
    with (
        new_file(path, overwrite=overwrite) as part,
        open_sink(part, kind) as sink,
        closing(_batches(predicted)) as batches,
    ):
        for batch in batches:
            tally.add(batch)
            if not tally.missing:
                sink.write(batch)
            progress(batch.num_rows)
        return tally.figures()


def write_table(predicted: Any, name: str, *, progress: Progress = silent) -> dict[str, float]:
    """Have the engine write the expression into a new table; the rows never leave it, but for a `StreamedSets`.

    Parameters
    ----------
    predicted
        What `with_sets` or `with_intervals` gave, on DuckDB, PostgreSQL or Spark.
    name
        The new table, on Spark also the path of a new folder of Parquet files; an existing one is not replaced.
    progress
        Told the rows of every batch of a `StreamedSets`; on Spark its method `share` is told the tasks done.

    Raises
    ------
    InputError
        If rows have no set or interval; then there is no new table.
    """
    backend = predicted.get_backend()
    if backend.name == "pyspark":
        from confide.tables.spark import is_path, write_parquet

        if is_path(name):
            return write_parquet(predicted, name, progress)
    proof = proof_of(predicted)
    with fixed_words(f"writing table {name!r}"):
        if isinstance(predicted, StreamedSets):
            write = {"duckdb": write_duckdb, "postgres": write_postgres}[backend.name]
            return write(predicted, name, progress)
        if backend.name == "postgres":
            with backend.con.transaction(), backend.con.cursor() as cursor:
                cursor.execute(f"CREATE TABLE {identifier(name)} AS {backend.compile(predicted)}")
                return looked_at(backend.table(name), proof)
        if backend.name == "duckdb":
            backend._run_pre_execute_hooks(predicted)
            backend.con.execute("BEGIN")
            try:
                backend.con.execute(f"CREATE TABLE {identifier(name)} AS {backend.compile(predicted)}")
                found = looked_at(backend.table(name), proof)
                backend.con.execute("COMMIT")
            except BaseException:
                backend.con.execute("ROLLBACK")
                raise
            return found
        written = backend.create_table(name, predicted)
        try:
            return looked_at(written, proof)
        except InputError:
            backend.drop_table(name)
            raise


def proof_of(predicted: Any) -> str:
    """The column that is null where a row has no prediction."""
    return SIZE if SIZE in predicted.columns else LOWER


def looked_at(written: Any, proof: str) -> dict[str, float]:
    """The number of rows that were written and the mean size of sets; refuses rows without a prediction."""
    return approved(figures_of(written, proof).to_pyarrow().to_pylist()[0])


def figures_of(written: Any, proof: str) -> Any:
    """An expression with one row: how many rows there are, how many without a prediction, and members of sets."""
    figures = {"rows": written.count(), "missing": written[proof].isnull().sum()}
    if proof == SIZE:
        figures["members"] = written[SIZE].cast("int64").sum()
    return written.aggregate(**figures)


def approved(figures: dict[str, Any]) -> dict[str, float]:
    """What is told of written predictions; refuses rows without one."""
    members = int(figures["members"] or 0) if "members" in figures else None
    return told(int(figures["rows"]), int(figures["missing"] or 0), members)


def _batches(predicted: Any) -> Generator[Any]:
    return predicted.batches() if isinstance(predicted, StreamedSets) else arrow_batches(predicted, _ROWS)
