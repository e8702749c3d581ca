"""A torch model and a DataLoader of any length: `score_batches` keeps one batch and m counts.

    python examples/engines/torch_dataloader.py

For several processes (one per GPU) let each call `histogram` on its share of the records, and add the results
(they have a `+`). `confide.torch.calibrate` does all of this for one process.
"""

from collections.abc import Iterator

import torch
from torch.utils.data import DataLoader, TensorDataset

import confide
from confide.array_api import true_scores
from confide.tables import score_batches


def histogram(model: torch.nn.Module, loader: DataLoader) -> confide.ScoreHistogram:
    """APS scores of a classifier; tensors stay on their device, one score per record leaves it."""

    def scores() -> Iterator[torch.Tensor]:
        with torch.no_grad():
            for inputs, labels in loader:
                probabilities = torch.softmax(model(inputs).double(), dim=1).clamp_(max=1.0)
                yield true_scores(probabilities, labels, "aps_deterministic")

    model.eval()
    return score_batches(scores(), score="aps_deterministic")


if __name__ == "__main__":
    inputs = torch.randn(10_000, 20)
    records = TensorDataset(inputs, torch.randint(0, 20, (10_000,)))
    counted = histogram(torch.nn.Linear(20, 20), DataLoader(records, batch_size=256))
    print(confide.calibrate_histogram(counted, alpha=0.1, epsilon=1.0, score="aps_deterministic"))
