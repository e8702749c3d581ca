"""Evaluate masks of images with known true masks: missed area and predicted area. Not private."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_label_image, as_numeric, class_areas, image_by_image
from confide.core import Release, area_of
from confide.errors import InputError
from confide.sets import Shortfall, mean_limit, predict_masks, shortfall_at
from confide.support import Described, Section


@dataclass(frozen=True, repr=False)
class MaskEvaluation(Described):
    """Missed area and size of masks over images. Not private.

    Parameters
    ----------
    n
        Number of images.
    missed_area
        The bounded loss, averaged over images; an image without true area counts as 0.
    risk
        Promised upper bound of the expected loss.
    area_ratio
        Predicted area divided by true area, both summed over images; NaN without any true area.
    missed_by_class
        Share of missed pixels of each class, by its name or number, averaged over the images in which it occurs; NaN
        if it occurs in none. Classes that do not count are left out.
    shortfall
        Finding that the loss exceeds the promise by more than chance in calibration explains; else None.

    Examples
    --------
    >>> print(MaskEvaluation(20, 0.08, 0.1, 1.4, {"tumour": 0.08}))
    missed area 0.0800 on average over 20 images (promised: at most 0.1 in expectation)
    predicted area: 1.40 times the true area
    missed by class: tumour 0.0800
    """

    n: int
    missed_area: float
    risk: float
    area_ratio: float
    missed_by_class: dict[str | int, float]
    shortfall: Shortfall | None = None

    def _section(self) -> Section:
        parts = ", ".join(f"{name} {missed:.4f}" for name, missed in self.missed_by_class.items())
        average = f"missed area {self.missed_area:.4f} on average over {self.n} images"
        return Section(
            "MaskEvaluation",
            f"{average} (promised: at most {self.risk:.6g} in expectation)",
            (("predicted area", f"{self.area_ratio:.2f} times the true area"), ("missed by class", parts)),
            warnings=() if self.shortfall is None else (self.shortfall.sentence,),
        )

    def _brief(self) -> str:
        return f"missed area {self.missed_area:.4f}, {self.risk:.6g} promised, n={self.n}, not private"


def evaluate_masks(
    images: Iterable[tuple[ArrayLike, ArrayLike]], calibration: Release, *, ignore_index: int = -100
) -> MaskEvaluation:
    """Evaluate the missed true area and the size of the masks of a calibration. Not private.

    Parameters
    ----------
    images, ignore_index
        As in `calibrate_masks`; use images that did not calibrate.
    calibration
        Result of `calibrate_masks`.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> images = [(p, rng.random(p.shape) < p) for p in rng.random((3000, 1, 4, 4))]
    >>> found = evaluate_masks(images[2000:], confide.calibrate_masks(images[:2000], 0.1, 1.0))
    >>> 0.05 < found.missed_area < 0.12, 1 < found.area_ratio < 2
    (True, True)
    """

    def counts(probabilities: ArrayLike, truth: ArrayLike) -> NDArray[np.int64]:
        p = as_numeric("probabilities", probabilities)
        return area_counts(predict_masks(p, calibration), as_label_image(truth), ignore_index)

    return evaluation_of_areas(image_by_image(images, counts), calibration)


def area_counts(mask: Any, truth: Any, ignore_index: int) -> NDArray[np.int64]:
    """True, missed and predicted pixels of each class of an image, int64, shape (K, 3); for NumPy arrays and tensors.

    Examples
    --------
    >>> area_counts(np.array([[True, False, True]]), np.array([1, 1, 0]), -100)
    array([[2, 1, 2]])
    """
    found = []
    for own, (true, counted) in zip(mask, class_areas(mask, truth, ignore_index), strict=True):
        inside = own if counted is None else own & counted
        found.append((int(true.sum()), int((true & ~own).sum()), int(inside.sum())))
    return np.array(found, np.int64)


def missed_share(counts: NDArray[np.int64], background: int | None, *, by_class: bool) -> float:
    """Share of missed true area of an image, from its `area_counts`; 0 without true area."""
    true, missed, _ = np.delete(counts, background, axis=0).T if background is not None else counts.T
    if not true.any():
        return 0.0
    return float((missed[true > 0] / true[true > 0]).mean() if by_class else missed.sum() / true.sum())


def evaluation_of_areas(counts: Iterable[NDArray[np.int64]], calibration: Release) -> MaskEvaluation:
    """Evaluation from the `area_counts` of each image."""
    area, known = area_of(calibration), calibration.classes
    images = list(counts)
    if not images:
        raise InputError("images", "must contain at least one image", got="none")
    names = tuple(range(known)) if isinstance(known, int) else tuple(known or range(len(images[0])))
    counted = [k for k in range(len(names)) if k != area.background]
    table = np.stack(images)[:, counted]
    true, _, predicted = table.sum(axis=0).T
    occurs = table[:, :, 0] > 0
    with np.errstate(invalid="ignore"):
        shares = np.where(occurs, table[:, :, 1] / np.maximum(table[:, :, 0], 1), 0).sum(axis=0) / occurs.sum(axis=0)
        ratio = predicted.sum() / true.sum() if true.any() else np.nan
    losses = [missed_share(one, area.background, by_class=area.by_class) for one in images]
    missed = float(np.mean(losses))
    covered = 1 - missed / calibration.bound
    return MaskEvaluation(
        n=len(images),
        missed_area=missed,
        risk=calibration.risk,
        area_ratio=float(ratio),
        missed_by_class={names[k]: float(share) for k, share in zip(counted, shares, strict=True)},
        shortfall=shortfall_at(calibration, covered, mean_limit(covered, len(images)), len(images)),
    )
