"""From batches of a loader to outputs of a model, labels and probabilities, as tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, TypeAlias

import torch
from torch import Tensor

from confide.array_api import rows_unlike_one
from confide.errors import InputError, InputTypeError

# Where the tensors of a batch are moved, or None
Device: TypeAlias = torch.device | str | None

_CHECKED_ROWS = 1000
"""The number of rows of a batch that are checked."""

_ROUNDING = 0.005
"""The largest change of a sum of probabilities by rounding to bfloat16."""


def probabilities(outputs: Tensor, *, logits: bool) -> Tensor:
    """Softmax over the last dimension, in float32 for half precision; probabilities pass unchanged.

    Examples
    --------
    >>> probabilities(torch.tensor([[0.75, 0.25]]), logits=True)
    Traceback (most recent call last):
        ...
    confide.errors.InputError: outputs: must be logits; got rows that are non-negative and sum to 1, as ...
    """
    if not isinstance(outputs, torch.Tensor) or outputs.ndim != 2:
        raise InputTypeError("outputs", "must be a tensor of shape (n, classes)")
    outputs = outputs.detach()
    if not logits:
        _refuse_rows_unlike_one(outputs)
        return outputs
    if len(outputs) and look_like_probabilities(outputs):
        got = "rows that are non-negative and sum to 1, as probabilities do"
        remedy = "Pass logits=False; if they are logits nevertheless, pass their softmax"
        raise InputError("outputs", "must be logits", got=got, remedy=remedy)
    return softmax(single_precision(outputs))


def single_precision(outputs: Tensor) -> Tensor:
    """Half precision as float32; other types unchanged."""
    return outputs.float() if outputs.dtype in (torch.float16, torch.bfloat16) else outputs


def softmax(logits: Tensor) -> Tensor:
    """Softmax over the classes; rounding can raise a probability above 1 by one float, which becomes 1."""
    return torch.softmax(logits, dim=1).clamp_(max=1.0)


def look_like_probabilities(rows: Tensor) -> bool:
    """Whether all of the first rows are non-negative and sum to 1, within the precision of softmax in any dtype."""
    first = rows[:_CHECKED_ROWS].detach().float()
    return bool(((first >= 0).all(dim=1) & ((first.sum(dim=1) - 1).abs() < _ROUNDING)).all())


def _refuse_rows_unlike_one(rows: Tensor) -> None:
    # Only the first rows and large deviations, as of logits: small ones are checked where scores or sets are computed
    wrong = rows_unlike_one(rows)
    wrong |= (rows[: len(wrong)] < 0).any(dim=1)
    if bool(wrong.any()):
        first = f"the first at row {int(wrong.int().argmax())}"
        got = f"{int(wrong.sum())} of the first {len(wrong)} rows that do not, {first}"
        must = "must be probabilities that sum to 1 with logits=False"
        raise InputError("outputs", must, got=got, remedy="Pass logits=True for logits, or apply softmax")


@contextmanager
def model_outputs(
    model: Callable[..., Any], loader: Iterable[Any], device: Device, *, progress: bool
) -> Iterator[Iterator[tuple[Tensor, Tensor]]]:
    """The outputs of a model for each batch, and the labels: in evaluation mode, without gradients, with a bar."""
    if not callable(model):
        must = "must be a module or a function, the first argument, and loader the second"
        raise InputTypeError("model", must, got=f"{type(model).__name__} as the model")
    if not (hasattr(loader, "__iter__") or hasattr(loader, "__getitem__")):
        raise InputTypeError("loader", "must be an iterable of batches, the second argument", got=type(loader).__name__)
    with evaluating(model), torch.no_grad(), _bar(loader, progress) as batches:
        yield (_outputs_and_labels(model, batch, device) for batch in batches)


@contextmanager
def evaluating(model: Callable[..., Any]) -> Iterator[None]:
    """Set a model to evaluation mode, and then back to its earlier mode."""
    training = getattr(model, "training", False)
    if training:
        model.eval()  # type: ignore[attr-defined]
    try:
        yield
    finally:
        if training:
            model.train()  # type: ignore[attr-defined]


def output_tensor(outputs: Any) -> Tensor:
    """A tensor, or the one in a model's output as `logits`, for Hugging Face, or `out`, for torchvision."""
    # An attribute, or an entry, which may be an output with the attribute
    tensor = getattr(outputs, "logits", outputs)
    if isinstance(tensor, Mapping):
        tensor = next((tensor[name] for name in ("logits", "out") if name in tensor), tensor)
        tensor = getattr(tensor, "logits", tensor)

    # A tensor with numbers
    if not isinstance(tensor, torch.Tensor):
        several = isinstance(tensor, tuple | list | Mapping)
        remedy = "; pass a function that returns the one to use, such as model=lambda batch: net(batch)[0]"
        got = f"{type(tensor).__name__}{remedy if several else ''}"
        raise InputTypeError("outputs", "outputs and labels must be tensors", got=got)
    if tensor.is_meta:
        got = "a tensor on the device meta: load the model"
        raise InputTypeError("outputs", "outputs and labels must contain numbers", got=got)
    return tensor.detach()


def _outputs_and_labels(model: Callable[..., Any], batch: Any, device: Device) -> tuple[Tensor, Tensor]:
    inputs, labels = _inputs_and_labels(batch)
    inputs = _move(inputs, device)
    labels = output_tensor(_move(labels, device))
    return output_tensor(model(**inputs) if isinstance(inputs, Mapping) else model(inputs)), labels


def _inputs_and_labels(batch: Any) -> tuple[Any, Any]:
    """The two parts of a batch: a pair, or a mapping that has the labels among the arguments of the model."""
    if isinstance(batch, Mapping):
        arguments = dict(batch.items())
        key = next((name for name in ("labels", "label") if name in arguments), None)
        if key is None:
            raise InputTypeError("loader", "must yield mappings with 'labels'", got="one without")
        return arguments, arguments.pop(key)
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise InputTypeError("loader", "must yield pairs (inputs, labels), or mappings with 'labels'")
    return batch[0], batch[1]


def _move(value: Any, device: Device) -> Any:
    """The same on a device, including tensors in lists and mappings."""
    if device is None:
        return value
    if hasattr(value, "to"):
        return value.to(device)
    if isinstance(value, Mapping):
        return {name: _move(item, device) for name, item in value.items()}
    if type(value) in (list, tuple):  # named tuples are made from other arguments
        return type(value)(_move(item, device) for item in value)
    return value


@contextmanager
def _bar(loader: Iterable[Any], shown: bool) -> Iterator[Iterable[Any]]:
    if not shown or find_spec("rich") is None:
        yield loader
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        yield bar.track(loader, description="Reading batches")
