"""`append`: sets or intervals in a model's graph, with the release in its metadata; `read` returns the release."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError

from confide.core import FALSE_NEGATIVES, ModelFingerprint, Release, facts_of, names_for, warn_about
from confide.errors import FormatError, InputError, InputTypeError
from confide.onnx.graph import (
    GROUPS,
    OWN,
    AppendedGraph,
    Tensor,
    append_intervals,
    append_sets,
    names_of,
    operator_of,
    with_operators,
)
from confide.scores import SCORES, ScoreKind, score_kind
from confide.sets import score_of
from confide.support import Classes, Level, column_order, exact_level, parse_object, require

KEY = "confide."
"""Prefix of the metadata's keys."""

_RELEASE = f"{KEY}release"
_APPENDED = f"{KEY}appended"


@dataclass(frozen=True)
class _Options:
    """The options of `append` as JSON values. They are stored, so that a reader can append the same again."""

    output: str | list[str] | None
    logits: bool | None
    classes: list[str | int] | None
    alpha: str | None
    score: str | None


def append(
    model: onnx.ModelProto | str | Path,
    calibration: Release,
    *,
    output: str | tuple[str, str] | None = None,
    logits: bool | None = None,
    classes: Sequence[str | int] | None = None,
    alpha: Level | None = None,
    score: str | None = None,
) -> onnx.ModelProto:
    """A copy of a model whose graph also returns prediction sets or intervals, with the release in its metadata.

    A classifier's graph gets the output `sets`, bool, shape (n, K), a regressor's `lower` and `upper`, float64, shape
    (n,). They are those of `predict_set`, `predict_labels` and `predict_interval` for the numbers in `output`.

    Parameters
    ----------
    model
        A model or its path. It is not changed; the copy of a model of an opset older than 13 is converted.
    calibration
        A release for the score `lac`, `margin`, `absolute_residual`, `cqr`, `cqr_low` or `cqr_high`. With thresholds
        per group the graph gets an input `groups`, the names of the groups, int64 if all of them are integers, else
        strings; an unknown group gets every class, or the whole line.
    output
        The tensor with probabilities, shape (n, K), predictions, shape (n,) or (n, 1), or for CQR quantiles, shape
        (n, 2), or two tensors, lower and upper; by default the only output.
    logits
        True for logits: then a softmax is appended first, for `calibrate_false_negatives` a sigmoid, and the output
        `probabilities`. False for probabilities. By default they are probabilities if the graph computes them by
        Softmax, Sigmoid or a classifier of `ai.onnx.ml`. For all other nodes, `logits` is required.
    classes
        The K class names in the order of the columns, if thresholds per class were calibrated for names.
    alpha
        One of the levels of a release with several.
    score
        Only for a calibration without a score name: the score of the calibration.

    Raises
    ------
    InputError, InputTypeError
        If the score is another one, if the model has no such tensor, cannot be converted or already has sets, if the
        release does not fit the tensor, if `logits` is not given for a tensor that may contain logits, or if the file
        of the model is not the one whose fingerprint the release states. For a fingerprint of outputs pass
        `calibration.for_model(...)`.

    Notes
    -----
    A graph cannot raise the errors of `predict_set`: a record with NaN or a number outside [0, 1] gets every class, and
    one without a usable prediction the whole line. The sums of rows are not checked.

    Examples
    --------
    >>> import confide, numpy as np, onnx
    >>> from onnx import TensorProto, helper
    >>> shape = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3]) for name in ("logits", "p")]
    >>> graph = helper.make_graph([helper.make_node("Softmax", ["logits"], ["p"])], "model", shape[:1], shape[1:])
    >>> model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    >>> released = confide.calibrate(np.linspace(0, 0.5, 2000), alpha=0.1, epsilon=1.0, score="lac", classes=3)
    >>> served = append(model, released)
    >>> [tensor.name for tensor in served.graph.output], read(served) == released
    (['p', 'sets'], True)
    """
    if not isinstance(calibration, Release):
        raise InputTypeError("calibration", "must be a release", got=type(calibration).__name__)
    options = _Options(
        output=list(output) if isinstance(output, tuple) else output,
        logits=logits,
        classes=None if classes is None else list(classes),
        alpha=None if alpha is None else str(exact_level("alpha", alpha)),
        score=score,
    )

    # The model must be the calibrated one, with its columns in the order of the classes.
    copy = _copy(model)
    _refuse_other_labels(copy, calibration.classes if classes is None else tuple(classes))
    stated = calibration.fingerprint
    if stated is not None and stated.decimals is None and isinstance(model, str | Path):
        calibration.for_model(ModelFingerprint.of_file(model))
    served = _with_answers(with_operators(copy), calibration, options)
    warn_about(calibration)
    return served


def read(model: onnx.ModelProto | str | Path) -> Release:
    """The release in a model to which `append` appended it; its claims are verified.

    Raises
    ------
    FormatError
        If the model has no release, if the release is damaged or a claim does not follow, or if the appended part does
        not follow from the release: an altered threshold, node or option. The output of optimisers and quantisers
        cannot be compared; keep the model that `append` returned.
    """
    # What is stored.
    whole = _copy(model)
    stored = {entry.key: entry.value for entry in whole.metadata_props if isinstance(entry.key, str)}
    if _RELEASE not in stored or _APPENDED not in stored:
        raise FormatError("model", "contains no release", remedy="Append one with confide.onnx.append")

    # Append it again to the bare model: the result must be the same.
    release = Release.from_json(stored[_RELEASE])
    try:
        options = _Options(**parse_object(stored[_APPENDED]))
        bare = _without_answers(whole, grouped=release.at(options.alpha).by == "group")
        again = _with_answers(bare, release, options)
    except (KeyError, TypeError, ValueError):
        raise FormatError("model", "was altered: its appended part cannot be made from its release") from None
    if _comparable(again) != _comparable(whole):
        altered = "was altered: its appended part does not follow from its release"
        raise FormatError("model", altered, remedy="Get the original")
    return release


def _with_answers(model: onnx.ModelProto, release: Release, options: _Options) -> onnx.ModelProto:
    """The model, changed in place: with the answer of a release, and with the release and the options as metadata."""
    # A model without a release.
    of_level = release.at(options.alpha)
    kind = _score_kind(of_level, options.score)
    names = names_of(model.graph)
    if any(entry.key.startswith(KEY) for entry in model.metadata_props) or any(n.startswith(OWN) for n in names):
        must = "must be one without appended sets"
        raise InputError("model", must, got="some", remedy="Append to the model that was exported")

    # The nodes that make the answer.
    tail, names_of_classes = _answer(model, of_level, kind, options)
    if clash := sorted(names & {value_info.name for value_info in (*tail.inputs, *tail.outputs)}):
        must = f"must not use the name {clash[0]!r}, which the appended part needs"
        raise InputError("model", must, remedy="Rename that tensor")

    # The model with these nodes, and with what they follow from.
    tail.append_to(model)
    facts = facts_of(release) | {name: facts_of(of_level)[name] for name in ("alpha", "promise")} | names_of_classes
    stored = asdict(replace(options, logits=bool(options.logits)))
    metadata = {_RELEASE: release.to_json(), _APPENDED: _json(stored)}
    for key, value in (metadata | {f"{KEY}{name}": fact for name, fact in facts.items()}).items():
        model.metadata_props.append(onnx.StringStringEntryProto(key=key, value=value))
    return model


def _answer(
    model: onnx.ModelProto, release: Release, kind: ScoreKind, options: _Options
) -> tuple[AppendedGraph, dict[str, str]]:
    """The appended part of a graph for a release of one level, and the names of classes for the metadata."""
    outputs = options.output if isinstance(options.output, list) else [options.output]
    tensors = [Tensor.of(model, name) for name in outputs]
    rows, *_ = tensors[0].shape or (None,)
    tail = AppendedGraph(rows)
    if len(tensors) > 1 and (kind.score is None or not kind.score.quantiles):
        what = "a score of classes" if kind.task == "classification" else kind.family
        raise InputError("output", f"must be one tensor for {what}", got="two")
    if kind.task == "classification":
        return tail, _append_answer_of_classifier(model.graph, tail, tensors[0], release, kind, options)
    _refuse_given("classes", options.classes, "intervals")
    _refuse_given("logits", options.logits, "intervals")
    sides = [(score_kind(f"cqr_{side}"), release.alone(side)) for side in release if release.by == "side"]
    append_intervals(tail, _predictions(tail, tensors, kind), sides or [(kind, release)])
    return tail, {}


def _append_answer_of_classifier(
    graph: onnx.GraphProto, tail: AppendedGraph, tensor: Tensor, release: Release, kind: ScoreKind, options: _Options
) -> dict[str, str]:
    """Append sets, after probabilities if the tensor contains logits; returns the names of classes for the metadata."""
    # A matrix with a known number of classes.
    *_, k = tensor.shape or (None,)
    if len(tensor.shape) != 2 or not isinstance(k, int):
        must = f"{tensor.name!r} must have shape (n, K) with a known number of classes K"
        raise InputError("output", must, got=tensor.text, remedy="Export the model with that dimension fixed")
    names = names_for(release, None if options.classes is None else tuple(options.classes), k)

    # Probabilities: a softmax, or a sigmoid for several true labels.
    _refuse_wrong_logits(tensor.name, operator_of(graph, tensor.name), options.logits)
    if options.logits:
        p = tail.node("Softmax", tensor.name, axis=1) if release.loss is None else tail.node("Sigmoid", tensor.name)
        tail.output("probabilities", p, tensor.kind, k)
        tensor = replace(tensor, name=p)
    append_sets(tail, tensor, k, kind, release, k if names is None else names)
    return {} if names is None else {"classes": _json({"names": list(names)})}


def _refuse_other_labels(model: onnx.ModelProto, classes: Classes | None) -> None:
    # A classifier's node states its labels.
    if not isinstance(classes, tuple):
        return
    for attribute in chain.from_iterable(node.attribute for node in model.graph.node):
        if attribute.name.startswith("classlabels_"):
            labels = [*(text.decode() for text in attribute.strings), *attribute.ints]
            if len(labels) == len(classes) and column_order("classes", classes, labels) != list(range(len(labels))):
                must = "must have the order of the model's columns"
                got = "its labels in another order"
                raise InputError("classes", must, got=got, remedy="Pass classes=[...] in the order of its labels")


_OF_PROBABILITIES = ("Softmax", "Sigmoid", "LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier", "Normalizer")
"""Operators that compute probabilities."""


def _refuse_wrong_logits(name: str, operator: str | None, logits: bool | None) -> None:
    # A statement that contradicts the node of the tensor.
    if logits and operator in ("Softmax", "Sigmoid"):
        raise InputError("logits", f"must be left out: {name!r} is made by {operator}, so it contains probabilities")
    if not logits and operator == "LogSoftmax":
        raise InputError("logits", f"must be True: {name!r} is made by LogSoftmax, so it contains logarithms")

    # No statement about a tensor that may contain logits, judged by its node, or by its name if it is an input.
    if logits is not None or operator in _OF_PROBABILITIES or (operator is None and "logit" not in name.lower()):
        return
    origin = "has this name" if operator is None else f"is made by {operator}"
    must = f"must be given: {name!r} {origin} and may contain logits"
    remedy = "Pass logits=True, which appends a softmax or sigmoid, or logits=False if it contains probabilities"
    raise InputError("logits", must, remedy=remedy)


def _predictions(tail: AppendedGraph, tensors: list[Tensor], kind: ScoreKind) -> tuple[str, ...]:
    """One number per record, or lower and upper quantiles, float64, shape (n,) each."""
    if kind.score is not None and kind.score.quantiles and len(tensors) == 1:
        (pair,) = tensors
        if len(pair.shape) != 2 or pair.shape[1] != 2:
            must = f"{pair.name!r} must have shape (n, 2), lower and upper quantiles"
            raise InputError("output", must, got=pair.text, remedy="Name two outputs if they are separate")
        return tuple(tail.vector(tail.columns(pair.name, i, i + 1), 2) for i in (0, 1))
    for tensor in tensors:
        if len(tensor.shape) not in (1, 2) or (len(tensor.shape) == 2 and tensor.shape[1] != 1):
            must = f"{tensor.name!r} must have shape (n,) or (n, 1), one number per record"
            raise InputError("output", must, got=tensor.text)
    return tuple(tail.vector(tensor.name, len(tensor.shape)) for tensor in tensors)


def _score_kind(release: Release, given: str | None) -> ScoreKind:
    # Sides and a bound on missed labels have one score each.
    got = f"one that bounds {release.loss!r}"
    require("calibration", release.loss in (None, FALSE_NEGATIVES), "must be one for sets or intervals", got=got)
    if release.by == "side" or release.loss is not None:
        _refuse_given("score", given, "this release")
        return score_kind("lac" if release.loss else "cqr")

    # Any other needs a form in ONNX.
    kind = score_of(release, given)
    must = f"must be one of {', '.join(name for name, score in SCORES.items() if score.onnx)} for a graph"
    remedy = "Predict in Python with confide.predict_set or confide.predict_interval"
    require("score", kind.score is not None and kind.score.onnx is not None, must, got=repr(kind.name), remedy=remedy)
    return kind


def _refuse_given(name: str, value: Any, what: str) -> None:
    require(name, not value, f"must be left out: it is not for {what}")


def _copy(model: Any) -> onnx.ModelProto:
    if isinstance(model, onnx.ModelProto):
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        return copy
    if not isinstance(model, str | Path):
        raise InputTypeError("model", "must be an onnx.ModelProto or the path of one", got=type(model).__name__)
    try:
        return onnx.load(model)
    except OSError as error:
        raise InputError("path", f"{str(model)!r} cannot be read: {error.strerror or 'it is no file'}") from None
    except DecodeError:
        raise FormatError("path", f"{str(model)!r} is not an ONNX model, or is damaged") from None


def _without_answers(model: onnx.ModelProto, *, grouped: bool) -> onnx.ModelProto:
    """The model as it was before something was appended, as far as names show it."""
    bare = _copy(model)
    graph = bare.graph
    appended = {name for node in graph.node if node.name.startswith(OWN) for name in node.output}
    for entries, is_appended in (
        (graph.node, lambda entry: entry.name.startswith(OWN)),
        (graph.initializer, lambda entry: entry.name.startswith(OWN)),
        (graph.input, lambda entry: grouped and entry.name == GROUPS),
        (graph.output, lambda entry: entry.name in appended),
        (bare.metadata_props, lambda entry: entry.key.startswith(KEY)),
    ):
        rest = [entry for entry in entries if not is_appended(entry)]
        del entries[:]
        entries.extend(rest)
    return bare


def _comparable(model: onnx.ModelProto) -> tuple[bytes, ...]:
    """The parts of a model in which a copy with the same answer is the same."""
    graph = model.graph
    parts = (graph.node, graph.initializer, graph.input, graph.output, model.metadata_props)
    return tuple(message.SerializeToString(deterministic=True) for entries in parts for message in entries)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
