"""A model card of a release: metadata for the Hugging Face Hub (`model-index`) and the same facts in Markdown."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from confide.core import Release
from confide.errors import InputTypeError
from confide.evaluation import Evaluation
from confide.reports.page import Page, page_of
from confide.reports.release_page import evaluation_of, release_section

# The Hub's tags of every card
TAGS = ["conformal-prediction", "differential-privacy"]

# The Hub's name of a task, unless it is given; confide reads outputs of models of any kind from tables
TASKS = {"classification": "tabular-classification", "regression": "tabular-regression"}

# Most characters of the type of a data set
MOST_TYPE = 96


def card(
    release: Release,
    *,
    evaluation: Evaluation | str | Path | None = None,
    title: str | None = None,
    task: str | None = None,
    file_name: str = "calibration.json",
) -> Page:
    """Write a model card of a release, with its guarantee, its privacy loss and measured coverage.

    The file begins with `model-index` metadata, which the Hugging Face Hub reads: the guaranteed coverage, epsilon, and
    coverage with its interval. The text states the same for people, with limits, model, data and mechanism.

    Parameters
    ----------
    release
        A release of any kind.
    evaluation
        An evaluation of this release, or a file of `confide evaluate --out`. Only a private one may be published.
    title
        Heading, 1 to 200 printable characters; by default the model's name in the release.
    task
        The Hub's name of the model's task, such as `image-classification`. By default `tabular-classification` or
        `tabular-regression`.
    file_name
        File name of the release, for the command that checks it.

    Raises
    ------
    InputError, InputTypeError
        If the evaluation belongs to another release, or the title cannot be used.

    Examples
    --------
    >>> import confide, numpy as np
    >>> about = {"model": "triage", "data": "visits 2025"}
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac", about=about)
    >>> written = card(released, task="image-classification")
    >>> written
    Page('triage')
    >>> [line.strip() for line in written.text.splitlines() if "value:" in line]
    ['value: 0.9', 'value: 1.0', 'value: 0.09929884885810965']
    """
    if not isinstance(release, Release):
        raise InputTypeError("release", "must be a calibration, of any kind", type(release).__name__)
    measured = evaluation_of(release, evaluation)
    section = release_section(release, measured, (), None, file_name)
    page = page_of(replace(section, title=release.about.get("model", "Prediction sets")), title)
    results = list(_results(release, measured, task or TASKS.get(release.task, "other")))
    lines = yaml_lines({"tags": TAGS, "model-index": [{"name": page.section.title, "results": results}]})
    return replace(page, metadata="".join(f"{line}\n" for line in lines))


# Metadata for the Hub


def _results(release: Release, evaluation: Evaluation | None, task: str) -> Iterator[dict[str, Any]]:
    # The data set of each split; the Hub accepts no other characters in its type.
    data = release.about.get("data")
    slug = re.sub(r"[^A-Za-z0-9_.-]+", "-", data or "").strip("-.")[:MOST_TYPE] or "not-stated"
    names = {"calibration": data or "calibration records", "evaluation": "evaluation records"}

    # The metrics of each split; a split without metrics has no result.
    metrics = {"calibration": list(_guaranteed(release))}
    if evaluation is not None:
        metrics["evaluation"] = list(_measured(release, evaluation))
    for split, of_split in metrics.items():
        if of_split:
            dataset = {"name": names[split], "type": slug, "split": split}
            yield {"task": {"type": task}, "dataset": dataset, "metrics": of_split}


def _guaranteed(release: Release) -> Iterator[dict[str, Any]]:
    # Coverage, or the bound on a loss.
    for name, threshold in release.by_name.items():
        alpha = float(threshold.alpha)
        guarantee = threshold.guarantee
        stated = {"alpha": alpha, "guarantee": guarantee.kind, "delta": guarantee.delta, "records": threshold.n}
        if release.loss is not None:
            yield _metric("expected loss", release.loss, release.risk, "guaranteed, at most", **stated)
        elif threshold.coverage > 0:
            yield _metric("coverage", name, threshold.coverage, "guaranteed, at least", **stated)
    if release.by == "side" and release.promised > 0:
        yield _metric("coverage", "", release.promised, "guaranteed, at least")

    # The privacy loss.
    privacy = release.privacy
    unit = {"neighbors": privacy.neighbors, "records_per_person": privacy.records_per_person}
    for kind, loss in (("epsilon", privacy.epsilon), ("rho", privacy.rho)):
        if loss is not None and math.isfinite(loss):
            yield _metric(kind, "", loss, str(privacy), **unit)


def _measured(release: Release, evaluation: Evaluation) -> Iterator[dict[str, Any]]:
    epsilon = evaluation.epsilon if evaluation.private else None
    law = {"private": evaluation.private, "confidence": evaluation.confidence, "epsilon": epsilon}
    for finding in evaluation.findings.values():
        total = finding.measured
        if total.value is None:
            continue
        records = evaluation.query.n if evaluation.private else total.n
        stated = {"low": total.low, "high": total.high, "records": records, **law}
        if release.loss is None:
            yield _metric("coverage", finding.label, total.value, "measured", **stated)
        else:
            yield _metric("expected loss", release.loss, total.value, "measured", **stated)


def _metric(kind: str, name: str, value: float, words: str, **stated: Any) -> dict[str, Any]:
    """A metric in the form of the Hub, with the arguments that are not None."""
    subject = f"{kind}, {name}" if name else kind
    arguments = {key: argument for key, argument in stated.items() if argument is not None}
    return {"type": kind.replace(" ", "_"), "name": f"{subject}, {words}", "value": value, "args": arguments}


# YAML: block style, texts in double quotes


def yaml_lines(value: Any) -> Iterator[str]:
    """The lines of a document in YAML, from mappings, lists, texts, booleans and finite numbers."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(item, Mapping | list):
                yield f"{key}: {_scalar(item)}"
                continue
            yield f"{key}:"
            margin = "  " if isinstance(item, Mapping) else ""  # a list begins below the first letter of its key
            yield from (f"{margin}{line}" for line in yaml_lines(item))
    elif isinstance(value, list):
        for item in value:
            for place, line in enumerate(yaml_lines(item)):
                yield f"{'  ' if place else '- '}{line}"
    else:
        yield _scalar(value)


def _scalar(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if isinstance(value, float) and "." not in text:
        return text.replace("e", ".0e")  # YAML 1.1 takes 1e-05 for a text
    return "".join(mark if mark.isprintable() else f"\\U{ord(mark):08x}" for mark in text)
