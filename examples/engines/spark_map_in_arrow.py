"""Run your model on a Spark cluster and return counts: `mapInArrow` and `count_batches`.

    python examples/engines/spark_map_in_arrow.py spark://host:7077 's3a://bucket/records'

Every executor runs the model on its own batches and returns at most m pairs (bin, count). The executors' Python needs
confide and the requirements of the model.
"""

import sys
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

import confide
from confide.tables import COUNT_SCHEMA, count_batches, merge_counts


def histogram(session: SparkSession, records: str) -> confide.ScoreHistogram:
    """APS scores of a model with the inputs x_0, x_1, ... and the column `label`, counted where the records are."""

    def scores(batch: pa.RecordBatch) -> np.ndarray:
        x = np.stack([batch.column(name).to_numpy() for name in batch.schema.names if name.startswith("x_")], axis=1)
        logits = np.exp(x - x.max(axis=1, keepdims=True))  # your model's forward pass
        probabilities = logits / logits.sum(axis=1, keepdims=True)
        return confide.aps_score(probabilities, batch.column("label").to_numpy(), randomised=False)

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield count_batches(batches, scores, score="aps_deterministic")

    counts = session.read.parquet(records).mapInArrow(count, COUNT_SCHEMA)
    return merge_counts([counts.toArrow()], score="aps_deterministic")


if __name__ == "__main__":
    spark = SparkSession.builder.master(sys.argv[1]).getOrCreate()
    counted = histogram(spark, sys.argv[2])
    print(confide.calibrate_histogram(counted, alpha=0.1, epsilon=1.0, score="aps_deterministic"))
