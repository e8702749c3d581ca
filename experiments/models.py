"""The classifiers of Figure 3 and their training, with DP-SGD by Opacus and without privacy.

Default: a linear layer on fixed features, as in Tramer and Boneh (ICLR 2021). Nothing but the linear layer is learned,
so all that depends on training images went through DP-SGD. `"cnn"` and `"stock"` are the small convolutional
network of the Opacus CIFAR-10 example, trained for an hour and as long as there.
"""

import math
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

Architecture = Literal["scattering", "cnn", "stock"]

PHYSICAL_BATCH = 1024
"""Larger batches are computed in parts of this size, which bounds memory."""


class Rows(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Inputs and labels from which a whole batch is taken at once; which rows, the sampler decides."""

    def __init__(self, inputs: torch.Tensor, labels: torch.Tensor) -> None:
        self.inputs, self.labels = inputs, labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.inputs[index], self.labels[index]

    def __getitems__(self, indices: Sequence[int]) -> Sequence[torch.Tensor]:
        """A batch, or nothing: Opacus makes an empty batch of nothing, which Poisson sampling can draw."""
        return (self.inputs[indices], self.labels[indices]) if len(indices) else ()


def as_it_is(batch: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    """No collation: a batch is a batch already."""
    return batch


def build(architecture: Architecture, shape: tuple[int, ...] = (243, 8, 4), classes: int = 10) -> nn.Module:
    """A fresh model: inputs of shape (n, *shape) for scattering, (n, 3, height, width) for the network."""
    if architecture == "scattering":
        return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), classes))
    return nn.Sequential(
        *(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2)),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2)),
        *(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2)),
        *(nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d((1, 1))),
        *(nn.Flatten(), nn.Linear(128, classes)),
    )


def train(
    model: nn.Module,
    inputs: torch.Tensor,
    labels: torch.Tensor,
    *,
    epochs: int,
    batch: int,
    rate: float,
    stop: int | None = None,
    momentum: float = 0.9,
    epsilon: float | None = None,
    delta: float = 1e-5,
    clip: float = 0.1,
    gradients: str = "ghost",
    physical: int = PHYSICAL_BATCH,
    schedule: Literal["constant", "cosine"] = "constant",
    seed: int = 0,
    secure: bool = False,
    accountant: str = "prv",
    checkpoint: Path | None = None,
) -> dict[str, float]:
    """Train in place by SGD, or by DP-SGD if `epsilon` is given; the loss that was spent is returned.

    Opacus chooses the noise so that `epochs` epochs of Poisson-sampled batches satisfy (epsilon, delta)-differential
    privacy for adding or removing one record; `accountant` is Opacus' `"prv"` (tight) or `"rdp"` (fast). `gradients` is
    its way to the norm of each record's gradient (`grad_sample_mode`): `"ghost"` is fast for linear layers, `"ew"` for
    convolutions; `stop` ends after so many of the epochs that noise and rates are made for, which spends less; at most
    `physical` records are computed at once. `schedule="cosine"` lets the rate fall as the stock example does. `seed`
    makes runs repeatable, which is for experiments: a model that is to be published needs `secure=True` (and
    torchcsprng) and no seed. After each epoch the state goes into the file `checkpoint`, from which an interrupted run
    goes on with the very same numbers.
    """
    torch.manual_seed(seed)
    loader = DataLoader(Rows(inputs, labels), batch_size=batch, shuffle=True, collate_fn=as_it_is)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=momentum)
    loss = nn.CrossEntropyLoss()
    model.train()
    if epsilon is None:
        for epoch in _epochs("SGD", stop or epochs, checkpoint, {"model": model, "optimizer": optimizer}):
            _set_rate(optimizer, rate, schedule, epoch, epochs)
            for x, y in loader:
                optimizer.zero_grad()
                loss(model(x), y).backward()
                optimizer.step()
        model.eval()
        return {}
    from opacus import PrivacyEngine
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about seeding, and about hooks of torch
        engine = PrivacyEngine(accountant=accountant, secure_mode=secure)
        # Ghost clipping: the norm of each gradient without the gradient itself, which a linear layer makes cheap.
        ghost = {"criterion": loss} if gradients == "ghost" else {}
        made = engine.make_private_with_epsilon(
            module=model,
            optimizer=optimizer,
            data_loader=loader,
            epochs=epochs,
            target_epsilon=epsilon,
            target_delta=delta,
            max_grad_norm=clip,
            grad_sample_mode=gradients,
            **ghost,
        )
        wrapped, private, clipped, sampled = made if ghost else (*made[:2], loss, made[2])
        state = {"model": model, "optimizer": optimizer, "accountant": engine.accountant}
        for epoch in _epochs("DP-SGD", stop or epochs, checkpoint, state):
            _set_rate(optimizer, rate, schedule, epoch, epochs)
            with BatchMemoryManager(
                data_loader=sampled, max_physical_batch_size=physical, optimizer=private
            ) as batches:
                for x, y in batches:
                    private.zero_grad()
                    clipped(wrapped(x), y).backward()
                    private.step()
        spent = engine.get_epsilon(delta)
    model.eval()
    return {"epsilon": float(spent), "delta": delta, "noise": float(private.noise_multiplier)}


def _set_rate(optimizer: torch.optim.Optimizer, rate: float, schedule: str, epoch: int, epochs: int) -> None:
    """The rate of this epoch, counted from 0; the cosine of the stock example does not reach 0."""
    now = rate if schedule == "constant" else rate * 0.5 * (1 + math.cos(math.pi * (epoch + 1) / (epochs + 1)))
    for group in optimizer.param_groups:
        group["lr"] = now


def _epochs(name: str, epochs: int, checkpoint: Path | None, state: dict[str, Any]) -> Iterator[int]:
    """Epochs that are still to run; before the first of them `state` is restored, and after each it is stored."""
    done = 0
    if checkpoint is not None and checkpoint.exists():
        stored = torch.load(checkpoint, weights_only=True)
        for key, part in state.items():
            part.load_state_dict(stored[key])
        torch.set_rng_state(stored["random"])
        done = stored["epochs"]
    for epoch in tqdm(range(done, epochs), desc=name, initial=done, total=epochs):
        yield epoch
        if checkpoint is not None:
            parts = {key: part.state_dict() for key, part in state.items()}
            torch.save({**parts, "random": torch.get_rng_state(), "epochs": epoch + 1}, checkpoint.with_suffix(".part"))
            checkpoint.with_suffix(".part").replace(checkpoint)


def probabilities(model: nn.Module, inputs: torch.Tensor) -> NDArray[np.float64]:
    """Class probabilities, shape (n, classes)."""
    with torch.no_grad():
        parts = [torch.softmax(model(x), dim=1) for x in inputs.split(1000)]
    return torch.cat(parts).to(torch.float64).numpy()
