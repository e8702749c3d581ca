"""From batches of a loader to outputs of a model and labels, as tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, TypeAlias

import torch
from torch import Tensor

from confide.errors import InputTypeError

# Where the tensors of a batch are moved, or None
Device: TypeAlias = "torch.device | str | None"


@contextmanager
def model_outputs(
    model: Callable[..., Any], loader: Iterable[Any], device: Device, *, progress: bool
) -> Iterator[Iterator[tuple[Tensor, Tensor]]]:
    """The outputs of a model for each batch, and the labels: in evaluation mode, without gradients, with a bar."""
    if not callable(model):
        must = "must be a module or a function, the first argument, and loader the second"
        raise InputTypeError("model", must, got=f"{type(model).__name__} as the model")
    if not (hasattr(loader, "__iter__") or hasattr(loader, "__getitem__")):
        raise InputTypeError(
            "loader", "must be an iterable of batches; it is the argument after the model", got=type(loader).__name__
        )
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
    # An attribute, or an entry of a mapping, which may itself be an output with the attribute
    tensor = getattr(outputs, "logits", outputs)
    if isinstance(tensor, Mapping):
        tensor = next((tensor[name] for name in ("logits", "out") if name in tensor), tensor)
        tensor = getattr(tensor, "logits", tensor)

    # A tensor with numbers
    if not isinstance(tensor, torch.Tensor):
        got = type(tensor).__name__
        if isinstance(tensor, tuple | list | Mapping):
            got += "; pass a function that returns the one to use, such as model=lambda batch: net(batch)[0]"
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
