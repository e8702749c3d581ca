"""Append sets or intervals to a model's graph, with the release in its metadata; and read the release."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError

from confide.core import FALSE_NEGATIVES, UNNAMED, ModelFingerprint, Release, facts_of, names_for, warn_about
from confide.errors import FormatError, InputError, InputTypeError
from confide.onnx.answers import GROUPS, append_intervals, append_sets
from confide.onnx.graph import OWN, AppendedGraph, Tensor, maker_of, names_of, opset_of, refuse_unless_model
from confide.scores import SCORES, ScoreKind, score_kind, unregistered
from confide.support import Classes, Level, column_order, exact_level, parse_object

KEY = "confide."
"""Prefix of the metadata's keys."""

_RELEASE, _APPENDED, _CLASSES = f"{KEY}release", f"{KEY}appended", f"{KEY}classes"


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
        A model of opset 13 or newer, or its path. It is not changed.
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
        If the score is another one, if the model has no such tensor, is too old or already has sets, if the release
        does not fit the tensor, if `logits` is not given for a tensor that may contain logits, or if the file of the
        model is not the one whose fingerprint the release states. For a fingerprint of outputs pass
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
    >>> [one.name for one in served.graph.output], read(served) == released
    (['p', 'sets'], True)
    """
    options = {
        "output": list(output) if isinstance(output, tuple) else output,
        "logits": logits,
        "classes": None if classes is None else list(classes),
        "alpha": None if alpha is None else str(exact_level("alpha", alpha)),
        "score": score,
    }
    copy = _copy(model)
    if isinstance(calibration, Release):
        _refuse_other_labels(copy, calibration.classes if classes is None else tuple(classes))
        stated = calibration.fingerprint
        if stated is not None and stated.decimals is None and isinstance(model, str | Path):
            calibration.for_model(ModelFingerprint.of_file(model))
    appended = _appended(copy, calibration, options)
    warn_about(calibration)
    return appended


def read(model: onnx.ModelProto | str | Path) -> Release:
    """The release in a model to which `append` appended it; its claims are verified.

    Raises
    ------
    FormatError
        If there is none, if it is damaged or a claim does not follow, or if the appended part does not follow from it:
        an altered threshold, node or option. The output of optimisers and quantisers cannot be compared; keep the
        model that `append` returned.
    """
    whole = _copy(model)
    kept = {entry.key: entry.value for entry in whole.metadata_props if isinstance(entry.key, str)}
    if _RELEASE not in kept or _APPENDED not in kept:
        raise FormatError("model", "contains no release", remedy="Append one with confide.onnx.append")
    release = Release.from_json(kept[_RELEASE])
    try:
        options = parse_object(kept[_APPENDED])
        again = _appended(_without_tail(whole, grouped=release.at(options["alpha"]).by == "group"), release, options)
    except (KeyError, TypeError, ValueError):
        raise FormatError("model", "was altered: its appended part cannot be made from its release") from None
    if _comparable(again) != _comparable(whole):
        raise FormatError(
            "model",
            "was altered: its appended part does not follow from its release",
            remedy="Get the original",
        )
    return release


def _appended(model: onnx.ModelProto, release: Release, options: dict[str, Any]) -> onnx.ModelProto:
    if not isinstance(release, Release):
        raise InputTypeError("calibration", "must be a release", got=type(release).__name__)
    chosen = release.at(options["alpha"])
    kind = _kind(chosen, options["score"])
    graph, taken = model.graph, names_of(model.graph)
    if any(entry.key.startswith(KEY) for entry in model.metadata_props) or any(n.startswith(OWN) for n in taken):
        raise InputError(
            "model", "must be one without appended sets", got="some", remedy="Append to the model that was exported"
        )
    output_names = options["output"]
    pair = [Tensor.of(model, name) for name in output_names] if isinstance(output_names, list) else []
    main = pair[0] if pair else Tensor.of(model, output_names)
    tail = AppendedGraph(opset_of(model), main.shape[0] if main.shape else None)
    words = facts_of(release) | {name: facts_of(chosen)[name] for name in ("alpha", "promise")}
    if kind.task == "classification":
        if pair:
            raise InputError("output", "must be one tensor for a score of classes", got="two")
        words |= _append_sets(model, tail, main, chosen, kind, options)
    else:
        for name in ("classes", "logits"):
            _refuse_given(name, options[name], "intervals")
        _append_intervals(tail, main, pair, chosen, kind)
    if clash := sorted(taken & {value_info.name for value_info in (*tail.inputs, *tail.outputs)}):
        raise InputError(
            "model", f"must not use the name {clash[0]!r}, which the appended part needs", remedy="Rename that tensor"
        )
    graph.node.extend(tail.nodes)
    graph.initializer.extend(tail.constants)
    graph.input.extend(tail.inputs)
    graph.output.extend(tail.outputs)
    if tail.uses_ml and not any(entry.domain == "ai.onnx.ml" for entry in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid("ai.onnx.ml", 2))
    options = {**options, "logits": bool(options["logits"])}
    own = {_RELEASE: release.to_json(), _APPENDED: _json(options), **{KEY + name: text for name, text in words.items()}}
    for key, value in own.items():
        model.metadata_props.append(onnx.StringStringEntryProto(key=key, value=value))
    return model


def _append_sets(
    model: onnx.ModelProto,
    tail: AppendedGraph,
    p: Tensor,
    release: Release,
    kind: ScoreKind,
    options: dict[str, Any],
) -> dict[str, str]:
    if len(p.shape) != 2 or not isinstance(p.shape[1], int):
        raise InputError(
            "output",
            f"{p.name!r} must have shape (n, K) with a known number of classes K",
            got=str(_shape(p)),
            remedy="Export the model with that dimension fixed",
        )
    k = p.shape[1]
    names = names_for(release, None if options["classes"] is None else tuple(options["classes"]), k)
    maker = maker_of(model.graph, p.name)
    if options["logits"] is None and maker != "LogSoftmax":
        _refuse_perhaps_logits(p.name, maker)
    if options["logits"]:
        if maker in ("Softmax", "Sigmoid"):
            raise InputError("logits", f"must be left out: {p.name!r} is made by {maker}, so it contains probabilities")
        converted = tail.node("Softmax", p.name, axis=1) if release.loss is None else tail.node("Sigmoid", p.name)
        tail.output("probabilities", converted, p.kind, k)
        p = Tensor(converted, p.kind, p.shape)
    elif maker == "LogSoftmax":
        raise InputError("logits", f"must be True: {p.name!r} is made by LogSoftmax, so it contains logarithms")
    append_sets(tail, p, k, kind, release, k if names is None else names)
    return {} if names is None else {"classes": _json({"names": list(names)})}


def _refuse_other_labels(model: onnx.ModelProto, classes: Classes | None) -> None:
    """Raise an error for class names in another order than that of the labels in a classifier's node."""
    if not isinstance(classes, tuple):
        return
    for node in model.graph.node:
        for attribute in node.attribute:
            labels = (
                [*(text.decode() for text in attribute.strings), *attribute.ints]
                if attribute.name.startswith("classlabels_")
                else []
            )
            if len(labels) == len(classes) and column_order("classes", classes, labels) != list(range(len(labels))):
                raise InputError(
                    "classes",
                    "must have the order of the model's columns",
                    got="its labels in another order",
                    remedy="Pass classes=[...] in the order of its labels",
                )


_MAKERS = ("Softmax", "Sigmoid", "LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier", "Normalizer")
"""Nodes that compute probabilities."""


def _refuse_perhaps_logits(name: str, maker: str | None) -> None:
    """Raise an error for a tensor that may contain logits, judged by its node, or by its name if it is an input."""
    if maker in _MAKERS or (maker is None and "logit" not in name.lower()):
        return
    origin = "has this name" if maker is None else f"is made by {maker}"
    raise InputError(
        "logits",
        f"must be given: {name!r} {origin} and may contain logits",
        remedy=("Pass logits=True, which appends a softmax or sigmoid, or logits=False if it contains probabilities"),
    )


def _append_intervals(tail: AppendedGraph, main: Tensor, pair: list[Tensor], release: Release, kind: ScoreKind) -> None:
    assert kind.score is not None
    if kind.score.quantiles:
        predictions = _quantiles(tail, main, pair)
    elif pair:
        raise InputError("output", f"must be one tensor for {kind.family}", got="two")
    else:
        predictions = (_vector(tail, main),)
    if release.by == "side":
        low, high = map(release.alone, release.parts)
        append_intervals(tail, predictions, (score_kind("cqr_low"), low), (score_kind("cqr_high"), high))
    else:
        both = kind, release
        append_intervals(tail, predictions, both, both)


def _quantiles(tail: AppendedGraph, main: Tensor, pair: list[Tensor]) -> tuple[str, ...]:
    """Lower and upper quantiles, float64, shape (n,) each."""
    if pair:
        low, high = (_vector(tail, tensor) for tensor in pair)
        return low, high
    if len(main.shape) != 2 or main.shape[1] != 2:
        raise InputError(
            "output",
            f"{main.name!r} must have shape (n, 2), lower and upper quantiles",
            got=str(_shape(main)),
            remedy="Name two outputs if they are separate",
        )
    wide = tail.double(main.name)
    low, high = (tail.flat(tail.columns(wide, i, i + 1), (None, 1)) for i in (0, 1))
    return low, high


def _vector(tail: AppendedGraph, one: Tensor) -> str:
    """One number per record, float64, shape (n,)."""
    if len(one.shape) not in (1, 2) or (len(one.shape) == 2 and one.shape[1] != 1):
        raise InputError(
            "output", f"{one.name!r} must have shape (n,) or (n, 1), one number per record", got=str(_shape(one))
        )
    return tail.double(tail.flat(one.name, one.shape))


def _kind(release: Release, said: str | None) -> ScoreKind:
    """The score of the sets or intervals."""
    if release.by == "side" or release.loss is not None:
        _refuse_given("score", said, "this release")
    if release.by == "side":
        return score_kind("cqr")
    if release.loss is not None:
        if release.loss != FALSE_NEGATIVES:
            raise InputError(
                "calibration", "must be one for sets or intervals", got=f"one that bounds {release.loss!r}"
            )
        return score_kind("lac")
    score = release.first.score
    if score is None and said is None:
        raise InputError(*UNNAMED)
    if score is not None and said not in (None, score):
        raise InputError("score", f"must be left out: the calibration was made for {score!r}", got=repr(said))
    kind = score_kind(score or said)
    if kind.score is None:
        raise unregistered(kind.name)
    if kind.score.onnx is None:
        raise InputError(
            "score",
            f"must be one of {', '.join(name for name, score in SCORES.items() if score.onnx)} for a graph",
            got=repr(kind.name),
            remedy="Predict in Python with confide.predict_set or confide.predict_interval",
        )
    return kind


def _refuse_given(name: str, value: Any, what: str) -> None:
    if value:
        raise InputError(name, f"must be left out: it is not for {what}")


def _shape(one: Tensor) -> str:
    return "(" + ", ".join("?" if size is None else str(size) for size in one.shape) + ")"


def _copy(model: Any) -> onnx.ModelProto:
    """A separate copy of a model, from a file or from another model."""
    if isinstance(model, str | Path):
        return _load(Path(model))
    refuse_unless_model(model)
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def _load(path: Path) -> onnx.ModelProto:
    try:
        return onnx.load(path)
    except OSError as error:
        raise InputError("path", f"{str(path)!r} cannot be read: {error.strerror or 'it is no file'}") from None
    except DecodeError:
        raise FormatError("path", f"{str(path)!r} is not an ONNX model, or is damaged") from None


def _without_tail(model: onnx.ModelProto, *, grouped: bool) -> onnx.ModelProto:
    """The model as it was before something was appended, as far as names show it."""
    bare = _copy(model)
    graph = bare.graph
    appended = {name for node in graph.node if node.name.startswith(OWN) for name in node.output}
    for entries, unwanted in (
        (graph.node, lambda entry: entry.name.startswith(OWN)),
        (graph.initializer, lambda entry: entry.name.startswith(OWN)),
        (graph.input, lambda entry: grouped and entry.name == GROUPS),
        (graph.output, lambda entry: entry.name in appended),
        (bare.metadata_props, lambda entry: entry.key.startswith(KEY)),
    ):
        kept = [entry for entry in entries if not unwanted(entry)]
        del entries[:]
        entries.extend(kept)
    return bare


def _comparable(model: onnx.ModelProto) -> tuple[bytes, ...]:
    """The appended part, as bytes."""
    graph = model.graph
    parts = (graph.node, graph.initializer, graph.input, graph.output, model.metadata_props)
    return tuple(message.SerializeToString(deterministic=True) for part in parts for message in part)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
