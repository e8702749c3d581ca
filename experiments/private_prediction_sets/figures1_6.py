"""Figures 1 and 6 at the papers' settings on medical images: n = 1000, epsilon = 10 (version 1: 8), 500 to evaluate on.

The papers' chest X-rays have no published scores; blood cells, skin lesions and uniform scores replace them.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from benchmarks.small import small
from confide.mechanisms import pps, pps_laplace
from examples.tune_scores import tuned_temperature
from experiments.cache import cached, write_tables
from experiments.cifar10 import data_folder
from experiments.laws import draw
from experiments.methods import OURS
from experiments.plots import figure, save
from experiments.private_prediction_sets import published
from experiments.private_prediction_sets.bins import ALPHA, CODE, TEXT, algorithm_5, edges, indices
from experiments.private_prediction_sets.study import splits, uniform, uniform_quantiles
from experiments.private_prediction_sets.tail_scores import TailScores
from experiments.scores import BLOOD, SKIN, softmax

N, TEST, SPLITS, EPSILON, EPSILON_1 = *small((1000, 500, 1000), (200, 100, 2)), 10.0, 8.0
FOLDER = "private-prediction-sets"
FILES = {"blood cells": ("bloodmnist_resnet14.npz", BLOOD), "skin lesions": ("dermamnist_resnet14.npz", SKIN)}
KINDS = ("as they are", "public temperature")


@lru_cache(maxsize=4)
def probabilities(name: str) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.int64], float, int]:
    """Test probabilities without and with the public temperature, labels, the temperature, and the number of records behind it.

    The validation logits determine the temperature and are not used otherwise.
    """
    data = np.load(data_folder() / FILES[name][0])
    raw, tuning = softmax(data["test_logits"]), softmax(data["val_logits"])
    t = tuned_temperature(tuning, data["val_labels"].ravel())
    both = dict(zip(KINDS, (raw, softmax(data["test_logits"] / t)), strict=True))
    return both, data["test_labels"].ravel().astype(np.int64), t, len(data["val_labels"])


def mechanisms() -> dict[str, tuple[Any, int]]:
    """The mechanisms of Figure 6 and their numbers of bins."""
    m, code, laplace = (
        algorithm_5(N, EPSILON, TEXT),
        algorithm_5(N, EPSILON, CODE),
        pps_laplace.optimal_bins(N, ALPHA, EPSILON_1, aligned=True),
    )
    return {
        "none (not private)": ("none", 1),
        f"pps, epsilon = 10, m* = {m}": (pps.pps_for(N, ALPHA, EPSILON, m), m),
        f"pps, m* of the code's range = {code}": (pps.pps_for(N, ALPHA, EPSILON, code), code),
        f"slopes (ours), epsilon = 10, m = {m}": (OURS.mechanism(N, ALPHA, EPSILON, m), m),
        f"version 1, epsilon = 8, m = {laplace}": (pps_laplace.pps_laplace_for(N, ALPHA, EPSILON_1, laplace), laplace),
    }


def study(name: str, kind: str) -> dict[str, Any]:
    """Results of all mechanisms on one data set, with or without the temperature."""
    both, labels, _, _ = probabilities(name)
    scores = TailScores.of(name, [(both[kind], labels)])
    return {label: splits(scores, made, m, N, SPLITS, TEST) for label, (made, m) in mechanisms().items()}


def study_uniform() -> dict[str, Any]:
    """The same on uniform scores: coverage per split, and its mean with the noise averaged exactly."""
    return {
        label: {"coverage": uniform_quantiles(made, m, N, SPLITS, TEST), "law": uniform(made, edges(m), N, SPLITS)}
        for label, (made, m) in mechanisms().items()
        if made != "none"
    }


def run() -> None:
    """Both figures and their page."""
    found = {"uniform scores": cached("pps6/uniform", study_uniform)}
    for name in tqdm(FILES, desc="Figure 6"):
        for kind in KINDS:
            found[f"{name}, {kind}"] = cached(f"pps6/{name}_{kind}", lambda name=name, kind=kind: study(name, kind))
    _draw(found)
    about = [
        f"- {name}: accuracy {np.mean(both['as they are'].argmax(axis=1) == labels):.3f} on {len(labels)} test records, "
        f"temperature {t:.2f} from {count} validation records"
        for name, (both, labels, t, count) in ((name, probabilities(name)) for name in FILES)
    ]
    head = "| scores | method | median coverage | mean | deviation | minus median | minus mean | mean size | "
    head += "% of sets of 0 / 1 / 2 / more |"
    text = [*about, "", head, "|---|---|" + "---:|" * 7, *_rows(found), "", *_examples()]
    write_tables(f"{FOLDER}/figures1-6.md", "\n".join(text))


def _rows(found: dict[str, Any]) -> list[str]:
    paper = published.FIGURE_6
    lines = []
    for data, results in found.items():
        for label, result in results.items():
            coverage = np.array(result["coverage"])
            entries = [data, label, f"{np.median(coverage):.4f}", f"{coverage.mean():.4f}", f"{coverage.std():.4f}"]
            theirs = label.startswith("pps")
            entries.append(f"{np.median(coverage) - paper['median']:+.4f}" if theirs else "")
            entries.append(f"{coverage.mean() - paper['mean']:+.4f}" if theirs else "")
            if "size" in result:
                shares = result["shares"]
                entries += [
                    f"{np.mean(result['size']):.2f}",
                    " / ".join(f"{100 * s:.0f}" for s in (*shares[:3], sum(shares[3:]))),
                ]
            else:
                entries += [f"noise averaged: {result['law']['coverage']:.5f}", ""]
            lines.append("| " + " | ".join(entries) + " |")
    return lines


def _draw(found: dict[str, Any]) -> None:
    shown = [label for label in mechanisms() if label.startswith(("pps, epsilon", "slopes", "version 1"))]
    colors = ("#c1121f", "#0b6e4f", "#e07a1f")
    fig, axes = figure(2, 3, 12.0, 6.2)
    for axis, (data, results) in zip(axes.ravel(), found.items(), strict=False):
        for label, color in zip(shown, colors, strict=True):
            shown_as = {"color": color, "density": True, "label": label, "histtype": "step", "linewidth": 1.5}
            axis.hist(results[label]["coverage"], bins=np.linspace(0.839, 1.003, 42), **shown_as)
        axis.axvline(0.9, color="black", linewidth=0.9, linestyle=(0, (4, 3)))
        axis.set(title=data, xlabel="coverage of 500 records", ylabel="density over splits")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8.5)
    last = axes[1, 2]
    pps_label = shown[0]
    names = [k for k in found if k != "uniform scores"]
    for i, name in enumerate(names):
        last.plot(range(8), found[name][pps_label]["shares"][:8], marker="o", markersize=3.5, label=name, color=f"C{i}")
    last.set(title="pps: share of sets by size", xlabel="set size", ylabel="share")
    last.legend(fontsize=7.5)
    save(fig, f"{FOLDER}/figure6")


def _examples() -> list[str]:
    """Three records of one class whose sets have one, two and three labels, the latter two wrong at the first label."""
    lines = []
    m = algorithm_5(N, EPSILON, TEXT)
    for name, (_, classes) in FILES.items():
        both, labels, _, _ = probabilities(name)
        p = both["public temperature"]
        order = np.random.default_rng(0).permutation(len(labels))
        calibration, rest = order[:N], order[N : N + TEST]
        truth = 1 - p[np.arange(len(labels)), labels]
        counts = np.bincount(indices(truth[calibration], m), minlength=m)
        threshold = edges(m)[draw(pps.pps_for(N, ALPHA, EPSILON, m), counts, np.random.default_rng(0))]
        inside = 1 - p <= threshold
        chosen = _three_of_a_class(inside[rest], p[rest].argmax(axis=1), labels[rest])
        lines += [
            "",
            f"**{name}**, threshold {threshold:.4f}, released with epsilon = 10" + (":" if chosen else ": none."),
            "",
        ]
        for i in rest[chosen]:
            ranked = [k for k in np.argsort(-p[i]) if inside[i, k]]
            lines.append(
                f"- {{{', '.join(f'{classes[k]} ({p[i, k]:.2f})' for k in ranked)}}}; true: {classes[labels[i]]}"
            )
    return lines


def _three_of_a_class(inside: NDArray[np.bool_], first: NDArray[np.int64], labels: NDArray[np.int64]) -> list[int]:
    """Positions of a record with one label, right; with two, right but not first; with three (or two), the same."""
    sizes, right = inside.sum(axis=1), inside[np.arange(len(labels)), labels]
    for largest in (3, 2):
        for k in range(inside.shape[1]):
            mine = right & (labels == k)
            easy = np.flatnonzero(mine & (sizes == 1))
            medium = np.flatnonzero(mine & (sizes == 2) & (first != k))
            hard = np.flatnonzero(mine & (sizes == largest) & (first != k))
            if len(easy) and len(medium) and len(hard) and hard[-1] != medium[0]:
                return [int(easy[0]), int(medium[0]), int(hard[-1])]
    return []
