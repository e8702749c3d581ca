"""Run your model on a Ray cluster and return counts: `map_batches` and `count_batches`.

    python examples/engines/ray_map_batches.py 'records/*.parquet'

Every block becomes at most m pairs (bin, count), which this process adds up as they arrive. The workers' Python needs
confide and the requirements of the model.
"""

import sys

import numpy as np
import pyarrow as pa
import ray.data

import confide
from confide.tables import count_batches, merge_counts


def histogram(records: str) -> confide.ScoreHistogram:
    """APS scores of a model with the inputs x_0, x_1, ... and the column `label`, counted where the records are."""

    def scores(batch: pa.Table) -> np.ndarray:
        x = np.stack([batch.column(name).to_numpy() for name in batch.column_names if name.startswith("x_")], axis=1)
        logits = np.exp(x - x.max(axis=1, keepdims=True))  # your model's forward pass
        probabilities = logits / logits.sum(axis=1, keepdims=True)
        return confide.aps_score(probabilities, batch.column("label").to_numpy(), randomised=False)

    def count(batch: pa.Table) -> pa.Table:
        return pa.Table.from_batches([count_batches([batch], scores, score="aps_deterministic")])

    counts = ray.data.read_parquet(records).map_batches(count, batch_format="pyarrow", batch_size=16_384)
    return merge_counts(counts.iter_batches(batch_format="pyarrow"), score="aps_deterministic")


if __name__ == "__main__":
    counted = histogram(sys.argv[1])
    print(confide.calibrate_histogram(counted, alpha=0.1, epsilon=1.0, score="aps_deterministic"))
