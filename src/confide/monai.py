"""MONAI: masks and sets as a transform, metrics for them, and calibration from MONAI's loaders. Extra `monai`.

ConformalSet, ConformalSetd  transforms: outputs of a network -> the mask, or the set, of a release
MissedArea, AreaRatio        metrics of masks: missed area, and amount of predicted area
Coverage, SetSize            metrics of sets of classes; SetSize also of masks, pixel by pixel
calibrate_masks              a release from a network, an inferer and a loader
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Unpack

from confide.calibration import missed_area
from confide.errors import InputError, InputTypeError
from confide.evaluation import area_counts, missed_share
from confide.releases import Calibration, Release, RiskCalibration, area_of, load_release
from confide.support import Level, needs_extra

with needs_extra("confide.monai", "monai"):
    import torch
    from monai.config import KeysCollection, NdarrayOrTensor
    from monai.metrics import CumulativeIterationMetric
    from monai.transforms import MapTransform, Transform
    from monai.utils import TransformBackends, convert_data_type, convert_to_dst_type
    from torch import Tensor

from confide.torch import LoaderOptions, evaluating, predict_masks, predict_set
from confide.torch import calibrate_masks as _calibrate_masks

__all__ = [
    "AreaRatio", "ConformalSet", "ConformalSetd", "Coverage", "MissedArea", "SetSize", "calibrate_masks",
]  # fmt: skip


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)


class ConformalSet(Transform):  # type: ignore[misc]
    """The mask of an image, or the set of its classes, by a release: 1 inside, 0 outside.

    Parameters
    ----------
    release
        From `calibrate_masks`, for outputs of shape (C, H, W[, D]); or a `Calibration` of classes, for shape (C,). Or
        the path of its file, as in a bundle: the file is read once, on construction.
    softmax, sigmoid
        The function that converts logits to probabilities, as in `monai.transforms.Activations`; neither if outputs
        are probabilities. One channel needs `sigmoid`.
    dtype
        The dtype of the result, by default float32, as in `AsDiscrete`.

    Raises
    ------
    InputError, InputTypeError
        If the release is of another kind, or outputs do not have the stated form.

    Examples
    --------
    >>> import confide
    >>> p = torch.rand(2000, 1, 4, 4)
    >>> released = confide.calibrate_masks(zip(p, torch.rand(p.shape) < p), 0.1, 1.0)
    >>> ConformalSet(released)(torch.tensor([[[0.95, 0.01]]]))
    tensor([[[1., 0.]]])
    """

    backend = [TransformBackends.TORCH]  # noqa: RUF012

    def __init__(
        self, release: Release | str | Path, softmax: bool = False, sigmoid: bool = False, dtype: Any = torch.float32
    ) -> None:
        if softmax and sigmoid:
            raise InputError("softmax", "softmax and sigmoid must not both be true")
        self.release: Any = load_release(release) if isinstance(release, str | Path) else release
        if not isinstance(self.release, Calibration):
            area_of(self.release)  # type: ignore[arg-type]
        elif sigmoid:
            raise InputError("sigmoid", "must be left out for a calibration of classes that exclude each other")
        self.softmax, self.sigmoid, self.dtype = softmax, sigmoid, dtype

    def __call__(self, img: NdarrayOrTensor) -> NdarrayOrTensor:
        """The mask or the set, in the array type and on the device of `img`, with its metadata."""
        whole, *_ = convert_data_type(img, torch.Tensor)
        outputs = whole.as_tensor() if hasattr(whole, "as_tensor") else whole
        if outputs.ndim == 0:
            raise InputError("img", "must have channels first, shape (C,) or (C, H, W[, D])", got="a number")
        logits = self.softmax or self.sigmoid
        if isinstance(self.release, Calibration):
            if outputs.ndim != 1:
                raise InputError(
                    "img",
                    "must have shape (C,) for a calibration of classes",
                    got=str(tuple(outputs.shape)),
                    remedy=(
                        "Pixels of an image are not separate records: calibrate_masks bounds the area that is missed"
                    ),
                )
            inside = predict_set(outputs[None], self.release, logits=logits)[0]
        else:
            if logits and (len(outputs) == 1) != self.sigmoid and len(outputs) == 1:
                raise InputError("sigmoid", "must be true with one channel, for which softmax is 1 everywhere")
            inside = predict_masks(outputs[None], self.release, logits=logits, sigmoid=self.sigmoid)[0]
        converted, *_ = convert_to_dst_type(inside, img, dtype=self.dtype)
        return converted


class ConformalSetd(MapTransform):  # type: ignore[misc]
    """`ConformalSet` for some keys of a dictionary, for `Compose`.

    Examples
    --------
    >>> import confide
    >>> p = torch.rand(2000, 1, 4, 4)
    >>> released = confide.calibrate_masks(zip(p, torch.rand(p.shape) < p), 0.1, 1.0)
    >>> ConformalSetd("pred", released)({"pred": torch.tensor([[[0.95, 0.01]]]), "name": "a"})
    {'pred': tensor([[[1., 0.]]]), 'name': 'a'}
    """

    backend = ConformalSet.backend

    def __init__(
        self,
        keys: KeysCollection,
        release: Release | str | Path,
        softmax: bool = False,
        sigmoid: bool = False,
        dtype: Any = torch.float32,
        allow_missing_keys: bool = False,
    ) -> None:
        super().__init__(keys, allow_missing_keys)
        self.converter = ConformalSet(release, softmax, sigmoid, dtype)

    def __call__(self, data: Mapping[Hashable, NdarrayOrTensor]) -> dict[Hashable, NdarrayOrTensor]:
        """The dictionary with masks or sets in place of outputs."""
        d = dict(data)
        for key in self.key_iterator(d):
            d[key] = self.converter(d[key])
        return d


class _Mean(CumulativeIterationMetric):  # type: ignore[misc]
    """One number, or several, for each image, and their aggregate over all processes."""

    def aggregate(self) -> Tensor:
        """The mean over images, NaN without any; a tensor of one number."""
        values = self.get_buffer()
        if values is None or not len(values):
            return torch.tensor(float("nan"))
        return self._together(values)

    def _together(self, values: Tensor) -> Tensor:
        return values.mean()


class MissedArea(_Mean):
    """The share of each image's true area that its mask misses, 0 without any: the loss that `calibrate_masks` bounds.

    Takes masks (B, C, H, W[, D]), or a list of (C, H, W[, D]), and the truth: one-hot, or class numbers.

    Parameters
    ----------
    background, average, ignore_index
        As in `calibrate_masks`; or given by `release`.
    release
        Instead of these: the release of the masks.

    Examples
    --------
    >>> metric = MissedArea()
    >>> metric(y_pred=torch.tensor([[[1.0, 0.0]]]), y=torch.tensor([[[1.0, 1.0]]]))
    tensor([[0.5000]])
    >>> metric.aggregate()
    tensor(0.5000)
    """

    def __init__(
        self,
        release: RiskCalibration | None = None,
        *,
        background: int | None = None,
        average: str = "pixels",
        ignore_index: int = -100,
    ) -> None:
        super().__init__()
        self.area = missed_area(background, average) if release is None else area_of(release)
        self.ignore_index = ignore_index

    def _compute_tensor(self, y_pred: Tensor, y: Tensor | None = None, **kwargs: Any) -> Tensor:
        shares = [
            missed_share(counts, self.area.background, by_class=self.area.by_class)
            for counts in _counts(y_pred, y, self.ignore_index)
        ]
        return torch.tensor(shares, device=y_pred.device)[:, None]


class AreaRatio(_Mean):
    """The predicted area over the true area, both summed over images: the efficiency that belongs to `MissedArea`.

    Arguments as in `MissedArea`. For each image the predicted and the true pixels are returned.

    Examples
    --------
    >>> metric = AreaRatio()
    >>> metric(y_pred=torch.tensor([[[1.0, 1.0, 1.0]]]), y=torch.tensor([[[1.0, 1.0, 0.0]]]))
    tensor([[3., 2.]])
    >>> metric.aggregate()
    tensor(1.5000)
    """

    def __init__(
        self, release: RiskCalibration | None = None, *, background: int | None = None, ignore_index: int = -100
    ) -> None:
        super().__init__()
        self.background = (
            missed_area(background, "pixels").background if release is None else area_of(release).background
        )
        self.ignore_index = ignore_index

    def _compute_tensor(self, y_pred: Tensor, y: Tensor | None = None, **kwargs: Any) -> Tensor:
        ratios = []
        for counts in _counts(y_pred, y, self.ignore_index):
            kept = [row for k, row in enumerate(counts.tolist()) if k != self.background]
            ratios.append([sum(predicted for _, _, predicted in kept), sum(true for true, _, _ in kept)])
        return torch.tensor(ratios, dtype=torch.float32, device=y_pred.device)

    def _together(self, values: Tensor) -> Tensor:
        predicted, true = values.double().sum(dim=0)
        ratio: Tensor = (predicted / true if true > 0 else predicted * float("nan")).float()
        return ratio


class Coverage(_Mean):
    """The share of class sets that contain the true one: sets (B, C), and labels (B,), (B, 1) or one-hot (B, C).

    Examples
    --------
    >>> metric = Coverage()
    >>> metric(y_pred=torch.tensor([[1.0, 1.0], [1.0, 0.0]]), y=torch.tensor([1, 1]))
    tensor([[1.],
            [0.]])
    >>> metric.aggregate()
    tensor(0.5000)
    """

    def _compute_tensor(self, y_pred: Tensor, y: Tensor | None = None, **kwargs: Any) -> Tensor:
        if y_pred.ndim != 2 or y is None:
            raise InputError(
                "y_pred", "must hold sets of classes, shape (B, C), with labels y", remedy="For masks see MissedArea"
            )
        mask, truth = _without_metadata(y_pred) != 0, _without_metadata(y)
        if truth.shape == mask.shape and mask.shape[1] > 1:
            inside: Tensor = (mask & (truth != 0)).any(dim=1, keepdim=True)
        elif truth.numel() == len(mask) and bool(((truth >= 0) & (truth < mask.shape[1])).all()):
            inside = mask.gather(1, truth.reshape(-1, 1).long().to(mask.device))
        else:
            raise InputError(
                "y", f"must hold the number of a class, 0 to {mask.shape[1] - 1}, for each set, or be one-hot"
            )
        return inside.float()


class SetSize(_Mean):
    """The mean number of classes in sets (B, C), or in masks pixel by pixel. No true labels are needed.

    Examples
    --------
    >>> metric = SetSize()
    >>> metric(y_pred=torch.tensor([[1.0, 1.0], [1.0, 0.0]]))
    tensor([[2.],
            [1.]])
    >>> metric.aggregate()
    tensor(1.5000)
    """

    def _compute_tensor(self, y_pred: Tensor, y: Tensor | None = None, **kwargs: Any) -> Tensor:
        sizes: Tensor = (_without_metadata(y_pred) != 0).sum(dim=1).float()
        return sizes.reshape(len(sizes), -1).mean(dim=1, keepdim=True)


def calibrate_masks(
    network: Callable[..., Any],
    loader: Iterable[Mapping[Hashable, Any]],
    risk: Level | None = None,
    epsilon: float | None = None,
    *,
    image_key: Hashable = "image",
    label_key: Hashable = "label",
    inferer: Callable[..., Any] | None = None,
    softmax: bool = False,
    sigmoid: bool = False,
    **options: Unpack[LoaderOptions],
) -> RiskCalibration:
    """`confide.torch.calibrate_masks` from a loader of MONAI's dictionaries, through an inferer.

    Parameters
    ----------
    network
        Called in evaluation mode, without gradients.
    loader
        Yields dictionaries with images and true masks, as MONAI's DataLoader does; an image is a record.
    risk, epsilon, **options
        As in `confide.torch.calibrate_masks`: `background`, `average`, `device`, `records_per_person`, ...
    image_key, label_key
        The keys of images and true masks.
    inferer
        As in MONAI's evaluators, for example a `SlidingWindowInferer`; by default the network is called.
    softmax, sigmoid
        As in `ConformalSet`: the function that converts logits to probabilities.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> z = torch.randn(20, 100, 1, 4, 4)
    >>> loader = [{"image": one, "label": torch.rand(one.shape) < one.sigmoid()} for one in z]
    >>> released = calibrate_masks(torch.nn.Identity(), loader, 0.1, 1.0, sigmoid=True, progress=False)
    >>> released.loss
    'missed_area'
    """
    if softmax and sigmoid:
        raise InputError("softmax", "softmax and sigmoid must not both be true")

    def model(batch: Tensor) -> Any:
        outputs = network(batch) if inferer is None else inferer(batch, network)
        if softmax and isinstance(outputs, Tensor) and outputs.ndim > 1 and outputs.shape[1] == 1:
            raise InputError("sigmoid", "must be true with one channel, for which softmax is 1 everywhere")
        return outputs.as_tensor() if hasattr(outputs, "as_tensor") else outputs

    pairs = _Pairs(loader, image_key, label_key)
    with evaluating(network):
        return _calibrate_masks(model, pairs, risk, epsilon, logits=softmax or sigmoid, sigmoid=sigmoid, **options)


class _Pairs:
    """Images and true masks of a loader of dictionaries, as plain tensors."""

    def __init__(self, loader: Iterable[Mapping[Hashable, Any]], image_key: Hashable, label_key: Hashable) -> None:
        self.loader, self.keys = loader, (image_key, label_key)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for batch in self.loader:
            missing = [key for key in self.keys if not isinstance(batch, Mapping) or key not in batch]
            if missing:
                raise InputTypeError(
                    "loader",
                    f"must yield mappings with {missing[0]!r}",
                    got=f"{type(batch).__name__} without it",
                    remedy="Name the keys by image_key and label_key",
                )
            image, label = (batch[key] for key in self.keys)
            yield _without_metadata(image), _without_metadata(label)

    def __len__(self) -> int:
        return len(self.loader)  # type: ignore[arg-type]


def _without_metadata(data: Any) -> Any:
    """A tensor without metadata."""
    return data.as_tensor() if hasattr(data, "as_tensor") else data


def _counts(y_pred: Tensor, y: Tensor | None, ignore_index: int) -> Iterator[Any]:
    """True, missed and predicted pixels of each image, class by class."""
    if y is None or y_pred.ndim < 3 or len(y) != len(y_pred):
        raise InputError("y_pred", "must hold masks, shape (B, C, H, W[, D]), and y a truth for each")
    for mask, truth in zip(_without_metadata(y_pred) != 0, _without_metadata(y), strict=True):
        whole = truth if truth.is_floating_point() or truth.dtype == torch.bool else truth.long()
        yield area_counts(mask, whole.to(mask.device), ignore_index)
