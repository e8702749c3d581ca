"""A release's later life - private evaluations, watches, heads of ledgers, known shifts: what must hold of any file."""

import json
import math
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import confide
from confide.cli.choices import ClassShiftOptions
from confide.errors import ConfideError
from confide.evaluation import PrivateEvaluation
from confide.ledger import check_head
from confide.ledger.state import State
from confide.planning import ClassShift
from confide.releases import Document
from confide.reports.private_section import private_charts, private_section
from confide.watching import Watch
from fuzz.release_targets import signed
from fuzz.source import Source, change, one_line


@cache
def privately_evaluated() -> tuple[Any, ...]:
    """Valid private evaluations, as JSON values: by class and size, of groups, levels, sides, and of a loss."""
    rng = np.random.default_rng(0)
    p, ward = rng.dirichlet([4, 2, 1], size=300), np.array(["north", "south"])[rng.integers(0, 2, 300)]
    y = (p.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
    scores, truth = confide.lac_score(p, y), rng.random(p.shape) < p
    width, target = np.tile([-1.0, 1.0], (300, 1)), rng.normal(size=300)
    public = confide.Candidates.unit(20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = confide.calibrate(scores, 0.1, 2.0, score="lac", candidates=public)
        levels = confide.calibrate_levels(scores, [0.3, 0.1], epsilon=4.0, score="lac", candidates=public)
        sides = confide.calibrate_sides(width, target, 0.2, 4.0)
        risk = confide.calibrate_false_negatives(p, truth, 0.2, 4.0)
        found = (
            confide.evaluate(one, probabilities=p, labels=y, epsilon=1.0),
            confide.evaluate(
                one, scores=scores, epsilon=1.0, groups=ward, group_names=["north", "south"], neighbors="replace_one"
            ),
            confide.evaluate(levels, probabilities=p, labels=y, epsilon=1.0),
            confide.evaluate(sides, predictions=width, targets=target, epsilon=1.0),
            confide.evaluate(risk, scores=scores, epsilon=0.5, records_per_person=2),
        )
    return tuple(json.loads(each.to_json()) for each in found)


@cache
def watches() -> tuple[Any, ...]:
    """Valid states of watches, as JSON values: of coverage, of groups, of sizes, and of sizes with a reference."""
    rng = np.random.default_rng(0)
    scores, ward = rng.random(300), np.array(["north", "south"])[rng.integers(0, 2, 300)]
    public = confide.Candidates.unit(20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = confide.calibrate(scores, 0.1, 2.0, score="lac", classes=3, candidates=public)
        groups = confide.calibrate_groups(scores, ward, ["north", "south"], 0.2, 4.0, candidates=public)
        p = rng.dirichlet([4, 2, 1], size=300)
        known = confide.evaluate(one, probabilities=p, labels=p.argmax(axis=1), epsilon=1.0, parts=["size"])
    begun: dict[str, Any] = {"epsilon": 1.0, "batch": 300}
    of_sizes = Watch.start(one, **begun, bins=(0, 1, 2, 3))
    made = (
        Watch.start(one, **begun).with_look("a", [260, 40]).with_look("b", [200, 100]),
        Watch.start(groups, **begun, neighbors="replace_one").with_look("a", [130, 20, 120, 30]),
        of_sizes.with_look("a", [3, 200, 80, 20]).with_look("b", [-1, 100, 100, 100]),
        Watch.start(one, **begun, bins=(0, 1, 2, 3), reference=known).with_look("a", [3, 200, 80, 20]),
    )
    return tuple(json.loads(each.to_json()) for each in made)


@cache
def weighted() -> tuple[Any, ...]:
    """Valid releases for populations that are a known shift away, as JSON values: of classes, and of records."""
    rng = np.random.default_rng(0)
    scores, labels = rng.random(400), np.array(["a", "b"])[rng.integers(0, 2, 400)]
    ways: dict[str, Any] = {"score": "lac", "classes": ["a", "b"], "candidates": confide.Candidates.unit(20)}
    shift = ClassShift.of_shares({"a": 0.5, "b": 0.5}, {"a": 0.2, "b": 0.8})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = (
            confide.calibrate(scores, 0.1, 2.0, class_weights=shift, labels=labels, **ways),
            confide.calibrate(scores, 0.1, 2.0, weights=rng.choice([0.5, 1.0], 400), weight_bound=1.0, **ways),
        )
    return tuple(json.loads(each.to_json()) for each in made)


def private_evaluation_text(data: bytes) -> None:
    """`PrivateEvaluation.from_json` on arbitrary text."""
    _read_private(data.decode("utf-8", "surrogateescape"))


def private_evaluation_fields(data: bytes) -> None:
    """`PrivateEvaluation.from_json`, and what a page says of it, on valid ones with changed fields, signed again."""
    _changed(privately_evaluated(), data, _read_private)


def _read_private(text: str) -> None:
    try:
        read = PrivateEvaluation.from_json(text)
    except ConfideError as error:
        one_line(error)
        return
    assert read.question.epsilon > 0
    assert read.privacy.epsilon > 0
    for found in read.findings.values():
        assert 0 <= found.coverage.low <= found.coverage.high <= 1
    assert PrivateEvaluation.from_json(read.to_json()) == read
    assert str(read).encode()
    shown = json.dumps([private_section(read), private_charts(read)], allow_nan=False, ensure_ascii=False)
    assert shown.encode()


def watch_text(data: bytes) -> None:
    """`Watch.from_json` on arbitrary text."""
    _read_watch(data.decode("utf-8", "surrogateescape"))


def watch_fields(data: bytes) -> None:
    """`Watch.from_json`, and what follows from it, on valid states with changed fields and a right checksum."""
    _changed(watches(), data, _read_watch)


def _read_watch(text: str) -> None:
    try:
        read = Watch.from_json(text)
    except ConfideError as error:
        one_line(error)
        return
    assert 0 < read.settings.noise_epsilon <= read.settings.epsilon
    assert len(read.points) == len(read.looks)
    for point in read.points:
        assert not math.isnan(point.log_evidence)
        assert point.low is None or (0 <= point.low <= 1 and 0 <= point.high <= 1)  # crossed: coverage has changed
    assert Watch.from_json(read.to_json()) == read
    assert str(read).encode()


def ledger_head(data: bytes) -> None:
    """`check_head` on a file of arbitrary text, and on a valid head with changed fields: no ledger, only a file."""
    source = Source(data)
    text = json.dumps(change({"kind": "confide.ledger-head", "schema": 1, "number": 2, "seal": SEALS[1]}, source))
    for content in (data, text.encode("utf-8", "surrogatepass")):
        path = _heads() / "head.json"
        path.write_bytes(content)
        try:
            head = check_head(_Ledger(), path)  # type: ignore[arg-type]
        except ConfideError as error:
            one_line(error)
            assert path.read_bytes() == content, "a head that was refused has been replaced"
            continue
        assert (head.number, head.seal) == (len(SEALS), SEALS[-1])
        assert check_head(_Ledger(), path) == head  # type: ignore[arg-type]


SEALS = ("1" * 64, "2" * 64, "3" * 64)


class _Ledger:
    """What is asked of a ledger to compare its head."""

    path = "budget.db"

    def snapshot(self) -> State:
        read = State()
        read.seals = list(SEALS)
        return read


@cache
def _heads() -> Path:
    return Path(tempfile.mkdtemp())


def shift_texts(data: bytes) -> None:
    """The texts of --class-weights, --source-shares and --target-shares."""
    text = data.decode("latin-1")
    half = len(text) // 2
    for given in (
        ClassShiftOptions(class_weights=text),
        ClassShiftOptions(source_shares=text[:half], target_shares=text[half:]),
        ClassShiftOptions(source_shares=text, target_shares=text),
    ):
        _shifted(given)


def _shifted(given: ClassShiftOptions) -> None:
    from click import ClickException

    try:
        shift = given.shift
    except ConfideError as error:
        one_line(error)
        return
    except ClickException:  # which `confide` prints in one line, made harmless
        return
    assert shift is not None
    assert all(0 <= ratio <= 10**4 for ratio in shift.ratios)
    assert len(shift.steps) == len(shift.classes)
    assert max(shift.steps) > 0
    assert str(shift)


def weighted_fields(data: bytes) -> None:
    """`Calibration.from_json` on valid releases with weights, with changed fields and a right checksum."""
    _changed(weighted(), data, _read_weighted)


def _read_weighted(text: str) -> None:
    try:
        read = Document.from_json(text)
    except ConfideError as error:
        one_line(error)
        return
    assert Document.from_json(read.to_json()) == read
    assert str(read).encode()


def _changed(documents: tuple[Any, ...], data: bytes, read: Any) -> None:
    source = Source(data)
    read(json.dumps(signed(change(documents[source.below(len(documents))], source))))
