"""Evaluations, releases of several thresholds, and silos' reports: what must hold whatever their files say."""

import hashlib
import json
from functools import cache
from typing import Any

import numpy as np

import confide
from confide.errors import ConfideError
from confide.evaluation import Evaluation, evaluate_intervals, evaluate_scores, evaluate_sets, read_evaluation
from confide.federated.silo_report import SiloReport
from confide.releases import Release, parts_of
from confide.reports.evaluation_section import evaluation_charts, evaluation_section
from confide.reports.promise import headline
from confide.reports.protection import report_row
from confide.reports.thresholds import worked_example
from confide.sets import coverage_from_counts
from fuzz.source import Source, change, one_line, with_checksum


@cache
def evaluated() -> tuple[tuple[Release, Any], ...]:
    """Releases, and the JSON of what was found on labelled records: one threshold, levels, groups, classes, sides."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet([4, 2, 1], size=600)
    y = (p.cumsum(axis=1) > rng.random((600, 1))).argmax(axis=1)
    scores, ward = confide.lac_score(p, y), np.array(["north", "south"])[rng.integers(0, 2, 600)]
    width, target = np.tile([-1.0, 1.0], (600, 1)), rng.normal(size=600)
    one = confide.calibrate(scores, 0.1, 2.0, score="lac")
    levels = confide.calibrate_levels(scores, [0.3, 0.1], epsilon=4.0, score="lac")
    groups = confide.calibrate_groups(scores, ward, ["north", "south"], 0.2, 4.0, score="lac")
    classes = confide.calibrate_groups(scores, y, [0, 1, 2], 0.3, 8.0, by="class", score="lac")
    sides = confide.calibrate_sides(width, target, 0.2, 4.0)
    found: list[tuple[Release, Any]] = [
        (one, evaluate_sets(one, p, y, examples=2)),
        (levels, evaluate_sets(levels, p, y, examples=2)),
        (groups, evaluate_sets(groups, p, y, groups=ward, examples=2)),
        (classes, evaluate_sets(classes, p, y)),
        (sides, evaluate_intervals(sides, width, target)),
        (levels, evaluate_scores(levels, scores)),
    ]
    return tuple((release, json.loads(one.to_json())) for release, one in found)


@cache
def several() -> tuple[Any, ...]:
    """Valid releases of several thresholds, as JSON values."""
    rng = np.random.default_rng(0)
    p = rng.random((400, 4))
    risk = confide.calibrate_false_negatives(p, rng.random(p.shape) < p, 0.2, 4.0)
    levels = confide.calibrate_levels(p[:, 0], [0.3, 0.1], 4.0, score="lac", neighbors="replace_one")
    sure = p / p.sum(axis=1, keepdims=True)
    noisy = confide.calibrate_noisy_labels(sure, rng.integers(0, 4, 400), 0.3, 4.0)
    releases = [*(release for release, _ in evaluated()[1:5]), risk, confide.recalibrate(levels, p[:, 1]), noisy]
    return tuple(json.loads(release.to_json()) for release in releases)


def evaluation_text(data: bytes) -> None:
    """`read_evaluation` on arbitrary text."""
    _read_evaluation(data.decode("utf-8", "surrogateescape"), evaluated()[0][0])


def evaluation_fields(data: bytes) -> None:
    """`read_evaluation`, and what a page says of it, on valid evaluations with changed fields."""
    source = Source(data)
    release, document = evaluated()[source.below(len(evaluated()))]
    _read_evaluation(json.dumps(change(document, source)), release)


def _read_evaluation(text: str, release: Release) -> None:
    try:
        read = read_evaluation(text)
    except ConfideError as error:
        one_line(error)
        return
    for one in [read] if isinstance(read, Evaluation) else read.levels.values():
        assert 0 <= one.coverage.low <= one.coverage.value <= one.coverage.high <= 1
        for part in (*one.classes, *one.sizes, *one.groups):
            assert 0 <= part.coverage.low <= part.coverage.high <= 1
    assert read_evaluation(read.to_json()) == read
    shown = json.dumps(
        [evaluation_section(read, release), evaluation_charts(read)], allow_nan=False, ensure_ascii=False
    )
    assert shown.encode()


def release_text(data: bytes) -> None:
    """`Release.from_json` on arbitrary text."""
    _read_several(data.decode("utf-8", "surrogateescape"))


def release_fields(data: bytes) -> None:
    """`Release.from_json` on valid releases of several thresholds, changed part by part, with right checksums."""
    source = Source(data)
    document = change(several()[source.below(len(several()))], source)
    _read_several(json.dumps(_signed_parts(document)))


def _signed_parts(document: Any) -> Any:
    parts = document.get("parts") if isinstance(document, dict) else None
    for part in parts if isinstance(parts, list) else []:
        if isinstance(part, dict) and isinstance(part.get("calibration"), dict):
            part["calibration"] = signed(part["calibration"])
    return signed(document)


def signed(document: dict[str, Any]) -> dict[str, Any]:
    """A document with a right checksum."""
    document.pop("sha256", None)
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return {**document, "sha256": hashlib.sha256(canonical.encode()).hexdigest()}


def _read_several(text: str) -> None:
    try:
        read = Release.from_json(text)
    except ConfideError as error:
        one_line(error)
        return
    assert read.privacy.epsilon >= 0
    assert all(0 <= part.guarantee.coverage <= 1 for part in parts_of(read).values())
    assert Release.from_json(read.to_json()) == read
    assert str(read).encode()
    assert headline(read)
    example = worked_example(read)
    assert example is None or example.answer or example.records


def silo_report(data: bytes) -> None:
    """`SiloReport.from_json` on a valid one with changed fields and a right checksum."""
    signed = with_checksum(
        change(json.loads(SiloReport("north", coverage_from_counts(90, 100), 1.0).to_json()), Source(data))
    )
    if signed is None:
        return
    try:
        read = SiloReport.from_json(signed)
    except ConfideError as error:
        one_line(error)
        return
    assert 0 <= read.estimate.low <= read.estimate.high <= 1
    assert SiloReport.from_json(read.to_json()) == read
    assert report_row(read)
