"""The torch front: calibrate from a DataLoader in one pass, predict on tensors where they are. Extra `torch`.

A score of each record is brought to the processor's memory while calibrating, or its prediction and target, and counted
at once; while predicting, large tensors stay on their device and only the sets come back, as tensors.

calibrate.py  classifiers and regressors, from a loader; sets and intervals as tensors; segmentation: masks
outputs.py    what loaders yield and models return, as tensors
"""

from confide.support import needs_extra

with needs_extra("confide.torch", "torch"):
    import torch as _torch  # before the files below, which need it

from confide.torch.calibrate import (
    LoaderOptions,
    calibrate,
    calibrate_masks,
    evaluate_masks,
    predict_interval,
    predict_masks,
    predict_set,
    to_prediction_sets,
)
from confide.torch.outputs import evaluating, probabilities

__all__ = [
    "LoaderOptions", "calibrate", "calibrate_masks", "evaluate_masks", "evaluating", "predict_interval",
    "predict_masks", "predict_set", "probabilities", "to_prediction_sets",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
