"""Figure 3 at the papers' settings: n = 5000, epsilon = 8, uniform bins, also with the stock network of the Opacus example.

The network is trained for fewer epochs than the authors', see `pipeline.SETTINGS`; with CONFIDE_MODEL=stock for as many
and with the defaults of the example.
"""

import os
from typing import Any

import numpy as np

from benchmarks.small import small
from confide.mechanisms import pps
from experiments import pipeline
from experiments.cache import cached, write_tables
from experiments.methods import OURS
from experiments.models import Architecture
from experiments.plots import figure, save
from experiments.private_prediction_sets import published
from experiments.private_prediction_sets.bins import ALPHA, CODE, TEXT, algorithm_5
from experiments.private_prediction_sets.study import splits
from experiments.private_prediction_sets.tail_scores import TailScores

N, EPSILON, SPLITS = small(5000, 50), 8.0, small(1000, 2)
FOLDER = "private-prediction-sets"
NETWORK: Architecture = "stock" if os.environ.get("CONFIDE_MODEL") == "stock" else "cnn"
MODELS: dict[Architecture, str] = {NETWORK: "stock network", "scattering": "scattering features"}
ORDER: tuple[tuple[Architecture, str], ...] = tuple((a, k) for a in reversed(MODELS) for k in ("private", "plain"))
COLORS = ("#22223b", "#c1121f", "#e07a1f", "#0b6e4f")


def mechanisms() -> dict[str, tuple[Any, int]]:
    """None, `pps` with m* of the text's and of the code's range, and `slopes`, each with its number of bins."""
    text, code = algorithm_5(N, EPSILON, TEXT), algorithm_5(N, EPSILON, CODE)
    return {
        "none (not private)": ("none", 1),
        f"pps, m* = {text}": (pps.pps_for(N, ALPHA, EPSILON, text), text),
        f"pps, m* of the code's range = {code}": (pps.pps_for(N, ALPHA, EPSILON, code), code),
        f"slopes (ours), m = {text}": (OURS.mechanism(N, ALPHA, EPSILON, text), text),
    }


def run() -> None:
    """Train the untrained models, and make the figure and the page again after each of them."""
    done: dict[tuple[Architecture, str], dict[str, Any]] = {}
    for architecture, kind in ORDER:
        made = cached(f"model_{architecture}_{kind}", lambda a=architecture, k=kind: pipeline.model(k, a))
        labels = np.array(made["labels"])
        data = TailScores.of(f"{architecture} {kind}", [(np.array(made["probabilities"]).clip(0, 1), labels)])
        found = cached(
            f"pps3/{architecture}_{kind}",
            lambda data=data: {label: splits(data, m, bins, N, SPLITS) for label, (m, bins) in mechanisms().items()},
        )
        done[architecture, kind] = {"accuracy": data.accuracy, "found": found, "spent": made["spent"]}
        if (NETWORK, "private") in done:
            _write(done)


def _write(done: dict[tuple[Architecture, str], dict[str, Any]]) -> None:
    fig, axes = figure(len(done), 2, 9.0, 2.7 * len(done))
    rows = []
    for row, ((architecture, kind), made) in enumerate(done.items()):
        rows += _rows(architecture, kind, made["accuracy"], made["found"])
        _draw(axes[row], f"{MODELS[architecture]}, {kind} (accuracy {made['accuracy']:.3f})", made["found"])
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8.5)
    save(fig, f"{FOLDER}/figure3")
    spent = done[NETWORK, "private"]["spent"]
    head = "| model | accuracy | papers | calibration | coverage | mean size | authors' size |"
    text = [f"The private network spent {spent}.", "", head, "|---|---:|---:|---|" + "---:|" * 3, *rows]
    write_tables(f"{FOLDER}/figure3.md", "\n".join(text))


def _rows(architecture: str, kind: str, accuracy: float, found: dict[str, Any]) -> list[str]:
    lines = []
    for label, result in found.items():
        size = published.FIGURE_3_SIZES[kind].get(label.split(" ")[0].strip(","))
        pair = pipeline.papers_accuracy(kind)
        lines.append(
            f"| {MODELS[architecture]}, {kind} | {accuracy:.3f} | {pair} | {label} | {np.mean(result['coverage']):.4f} ± "
            f"{np.std(result['coverage']):.4f} | {np.mean(result['size']):.3f} | {'' if size is None else size} |"
        )
    return lines


def _draw(axes: Any, title: str, found: dict[str, Any]) -> None:
    for (label, result), color in zip(found.items(), COLORS, strict=True):
        shown = {"color": color, "label": label, "histtype": "step", "linewidth": 1.4, "density": True}
        axes[0].hist(result["coverage"], bins=np.linspace(0.875, 0.925, 41), **shown)
        axes[1].plot(range(len(result["shares"])), result["shares"], marker="o", markersize=3, color=color)
    axes[0].axvline(0.9, color="black", linewidth=0.9, linestyle=(0, (4, 3)))
    axes[0].set(xlabel="coverage", ylabel="density over splits", title=title)
    axes[1].set(xlabel="set size", ylabel="share of images")
