"""Calibration from a torch DataLoader in one pass, and prediction on tensors, on their device. Extra `torch`.

calibrate.py  classifiers and regressors, from a loader; sets and intervals as tensors
masks.py      segmentation models: masks
outputs.py    values of loaders and outputs of models, as tensors
softmax.py    probabilities of outputs
"""

from confide.support import needs_extra

with needs_extra("confide.torch", "torch"):
    import torch as _torch  # before the modules below, which need it

from confide.torch.calibrate import calibrate, predict_interval, predict_set, to_prediction_sets
from confide.torch.masks import calibrate_masks, evaluate_masks, predict_masks
from confide.torch.softmax import probabilities

__all__ = [
    "calibrate", "calibrate_masks", "evaluate_masks", "predict_interval",
    "predict_masks", "predict_set", "probabilities", "to_prediction_sets",
]  # fmt: skip


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
