"""Sets on an accelerator: equal to numpy's bit for bit, and their times compared with TorchCP on the same device.

    python -m benchmarks.accelerator                          every device that torch finds, this processor included
    python -m benchmarks.accelerator --device cuda --rows 50000 --classes 1000

The exit code is 1 if a set, a score or a mask differs. Times are the shortest of several runs, in milliseconds, of
float32 probabilities that are on the device already. A ratio is TorchCP's time over ours, if TorchCP is installed (see
`nox -s peers`).
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch

import confide
import confide.torch
from benchmarks.peers_worker import TorchCP
from benchmarks.small import small
from confide.array_api import predict_mask, true_scores
from confide.core import Request

SCORES = (
    "lac",
    "aps_deterministic",
    "raps_deterministic(penalty=0.01,k_reg=5)",
    "saps_deterministic(penalty=0.1)",
    "top_k",
    "margin",
)
RANDOMISED = ("aps", "raps(penalty=0.01,k_reg=5)", "saps(penalty=0.1)")
KINDS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def devices() -> list[str]:
    """Devices on which torch can compute here."""
    found = ["cuda"] if torch.cuda.is_available() else []
    found += ["mps"] if torch.backends.mps.is_available() else []
    return [*found, "cpu"]


def outputs(n: int, k: int, kind: torch.dtype) -> torch.Tensor:
    """Probabilities with ties, in the processor's memory."""
    generator = torch.Generator().manual_seed(0)
    logits = (4 * torch.randn(n, k, generator=generator)).round(decimals=1)
    return torch.softmax(logits, 1).clamp(max=1.0).to(kind)


def release(score: str, k: int) -> confide.Release:
    """A release of this score whose sets are neither full nor empty."""
    p = outputs(500, k, torch.float64)
    labels = torch.multinomial(p, 1, generator=torch.Generator().manual_seed(1))[:, 0]
    u = confide.ExperimentalUniforms(0) if confide.scores.score_kind(score).randomised else None
    scores = confide.class_score(p, labels, score, u=u)
    return confide.calibrate(scores, 0.1, mechanism="none", neighbors="replace_one", score=score, classes=k)


def differences(device: str, n: int, k: int) -> Iterator[tuple[str, int | None]]:
    """Name of each comparison on a device, and the number of entries that differ from numpy; None if unsupported."""
    has_double = device != "mps"
    for score in (*SCORES, *RANDOMISED):
        released = release(score, k)
        for kind in KINDS if has_double else KINDS[1:]:
            p = outputs(n, k, kind)
            held = p.double().numpy() if kind == torch.bfloat16 else p.numpy()
            numbers = np.random.default_rng(2).random(n) if confide.scores.score_kind(score).randomised else None
            u = None if numbers is None else torch.from_numpy(numbers).to(device)
            labels = torch.arange(n) % k
            name = f"{score}, {str(kind).removeprefix('torch.')}"
            try:
                mask = predict_mask(p.to(device), released, u=u)
                scores = true_scores(p.to(device), labels.to(device), score, u=u)
            except confide.errors.InputTypeError:
                yield name, None
                continue
            wrong = int((mask.cpu().numpy() != confide.predict_set(held, released, u=numbers).mask).sum())
            expected = confide.class_score(held, labels.numpy(), score, u=numbers)
            if has_double:
                wrong += int((scores.cpu().numpy() != np.asarray(expected)).sum())
            yield name, wrong
    bounded = Request(alpha=0.1, loss="missed_area", classes=3, mechanism="none")
    area = replace(release("lac", k), request=bounded)
    for kind in KINDS if has_double else KINDS[1:]:
        p = outputs(16 * 16, 3, kind).T.reshape(1, 3, 16, 16)
        found = confide.torch.predict_masks(p.to(device), area, logits=False)
        wrong = int((found[0].cpu().numpy() != confide.predict_masks(p[0].double().numpy(), area)).sum())
        yield f"masks, {str(kind).removeprefix('torch.')}", wrong


def shortest(call: Callable[[], Any], device: str, runs: int) -> float:
    """Milliseconds, including the wait for the device."""
    wait = {"cuda": torch.cuda.synchronize, "mps": torch.mps.synchronize}.get(device, lambda: None)
    times = []
    for _ in range(runs):
        wait()
        start = time.perf_counter()
        call()
        wait()
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


def torchcp(score: str, p: torch.Tensor) -> Callable[[], Any] | None:
    """TorchCP's sets of the same probabilities; None if it is not installed or lacks the score."""
    try:
        predictor = TorchCP(dict(zip(SCORES, ("lac", "aps", "raps"), strict=False))[score]).predictor
    except (ImportError, KeyError):
        return None
    few = p[:500]
    predictor.calculate_threshold(few, torch.multinomial(few.float(), 1)[:, 0], 0.1)
    return lambda: predictor.predict_with_logits(p)


def times(device: str, n: int, k: int, runs: int) -> None:
    """Print a table of times."""
    print(f"\n{n} x {k}, float32 | ms | TorchCP ms | ratio")
    p = outputs(n, k, torch.float32).to(device)
    for score in SCORES:
        released = release(score, k)
        try:
            ours = shortest(lambda released=released: predict_mask(p, released), device, runs)
        except confide.errors.InputTypeError:
            print(f"{score} | needs float64, which this device lacks")
            continue
        other = torchcp(score, p)
        theirs = None if other is None else shortest(other, device, runs)
        print(f"{score} | {ours:.2f} | " + ("- | -" if theirs is None else f"{theirs:.2f} | {theirs / ours:.2f}"))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=devices(), action="append")
    parser.add_argument("--rows", type=int, default=small(20_000, 100))
    parser.add_argument("--classes", type=int, default=small(1000, 10))
    parser.add_argument("--runs", type=int, default=small(10, 1))
    options = parser.parse_args(arguments)
    failed = False
    for device in options.device or devices():
        name = torch.cuda.get_device_name() if device == "cuda" else device
        print(f"\n{name}, torch {torch.__version__}")
        for what, wrong in differences(device, min(options.rows, 2000), options.classes):
            failed |= bool(wrong)
            if wrong != 0:
                print(f"{what}: " + ("not on this device" if wrong is None else f"{wrong} entries DIFFER from numpy"))
        print("differences from numpy, bit for bit: " + ("SOME" if failed else "none"))
        if options.runs:
            times(device, options.rows, options.classes, options.runs)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
