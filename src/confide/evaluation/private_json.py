"""Private evaluations as JSON. What follows from the noisy counts stands in the file, and is computed again on reading.

Numbers that follow are compared within 1e-6: other machines may round the last digits otherwise.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from confide.errors import FormatError
from confide.evaluation.private import KIND, PrivateEvaluation, Question
from confide.evaluation.private_findings import Partition, PrivateCoverage, PrivateFinding, size_parts, width_parts
from confide.releases import documents
from confide.support import MOST_RECORDS, VERSIONS, Fields, shapes

_MOST_NOISY = 4 * MOST_RECORDS
_NEAR = 1e-6
_HEXADECIMAL = frozenset("0123456789abcdef")
_KINDS = ("class", "group", "size", "width")


def _partition_shape(content: Mapping[str, Any]) -> shapes.Shape:
    """Which fields a partition has, by its kind."""
    kind = {"kind": shapes.choice(*_KINDS)}
    match content.get("kind"):
        case "size":
            return {**kind, "classes": shapes.INTEGER}
        case "width":
            return {**kind, "bins": shapes.listed(shapes.number())}
        case "class" | "group":
            promised = shapes.optional(shapes.listed(shapes.number()))
            return {**kind, "names": shapes.listed(shapes.TEXT), "promised": promised}
    return kind


def _partition(values: dict[str, Any]) -> Partition:
    match values["kind"]:
        case "size":
            return size_parts(min(values["classes"], 10**9))
        case "width":
            return width_parts(values["bins"])
    return Partition(**values)


def _write_partition(partition: Partition) -> dict[str, Any]:
    if partition.kind == "size":
        return {"kind": "size", "classes": int(partition.most)}
    if partition.kind == "width":
        return {"kind": "width", "bins": list(partition.edges[1:])}
    own = {} if partition.promised is None else {"promised": list(partition.promised)}
    return {"kind": partition.kind, "names": list(partition.names), **own}


def _statements(stated: dict[str, Any]) -> dict[str, float]:
    if not all(type(coverage) in (int, float) for coverage in stated.values()):
        raise ValueError
    return {name: float(coverage) for name, coverage in stated.items()}


_QUESTION: shapes.Shape = {
    "calibration": shapes.Field(
        "64 hexadecimal digits", (str,), shapes.within(lambda text: len(text) == 64 and not set(text) - _HEXADECIMAL)
    ),
    "privacy": shapes.Field(
        "a relation and a loss",
        (dict,),
        attribute="",
        shape={
            "neighbors": shapes.TEXT,
            "epsilon": shapes.number(),
            "records_per_person": shapes.INTEGER,
        },
    ),
    "n": shapes.nullable(shapes.INTEGER),
    "outcome": shapes.choice("covered", "levels", "sides"),
    "statements": shapes.Field("names with a number each", (dict,), _statements, dict),
    "partitions": shapes.listed(
        shapes.Field("a partition", (dict,), _partition, _write_partition, shape=_partition_shape)
    ),
    "tables": shapes.listed(shapes.listed(shapes.integer(_MOST_NOISY, -_MOST_NOISY))),
    "loss": shapes.Field(
        "a loss and its bound",
        (dict,),
        lambda loss: (loss["name"], loss["bound"]),
        lambda loss: {"name": loss[0], "bound": loss[1]},
        optional=True,
        shape=lambda _: {"name": shapes.TEXT, "bound": shapes.number()},
    ),
}
_ANSWER: shapes.Shape = {
    "private": shapes.Field("true, for the evaluation must be private", (bool,), shapes.within(bool)),
    **_QUESTION,
    "confidence": shapes.number(),
    "counts": shapes.listed(shapes.listed(shapes.integer(_MOST_NOISY, -_MOST_NOISY))),
    "found": shapes.Field("an object", (dict,)),
    "versions": shapes.optional(VERSIONS),
}


def question_fields(question: Question) -> dict[str, Any]:
    """A question as JSON values: with the data, what makes two requests one."""
    return shapes.write_shape(question, _QUESTION)


def found_fields(evaluation: PrivateEvaluation) -> dict[str, Any]:
    """What follows from the counts, as JSON values by statement."""
    return {name or "release": _finding_fields(finding) for name, finding in evaluation.findings.items()}


def _fields(evaluation: PrivateEvaluation) -> dict[str, Any]:
    return {
        "private": True,
        **question_fields(evaluation.question),
        "confidence": evaluation.confidence,
        "counts": [list(cells) for cells in evaluation.counts],
        "found": found_fields(evaluation),
        **({"versions": dict(evaluation.versions)} if evaluation.versions else {}),
    }


def _finding_fields(finding: PrivateFinding) -> dict[str, Any]:
    fields: dict[str, Any] = {"coverage": _coverage_fields(finding.coverage)}
    fields["parts"] = {kind: [_coverage_fields(part) for part in parts] for kind, parts in finding.parts.items()}
    if finding.shares:
        fields["shares"] = {kind: [dict(vars(share)) for share in shares] for kind, shares in finding.shares.items()}
    if finding.mean_size is not None:
        fields["mean_size"] = dict(vars(finding.mean_size))
    return fields


def _coverage_fields(part: PrivateCoverage) -> dict[str, Any]:
    return {name: value for name, value in vars(part).items() if name != "name" or value}


def _read(fields: Fields) -> PrivateEvaluation:
    values = shapes.read_shape(fields, _ANSWER)
    asked = values["privacy"] | {name: values[name] for name in _QUESTION if name != "privacy"}
    made = PrivateEvaluation(Question(**asked), values["confidence"], values["counts"], values["versions"] or {})
    if not _same(values["found"], found_fields(made)):
        raise FormatError(f"the {fields.document} claims what does not follow from its counts; do not use it")
    return made


def _same(stated: Any, found: Any) -> bool:
    """Whether two JSON values are the same, numbers within 1e-6."""
    if isinstance(found, Mapping):
        same_keys = isinstance(stated, Mapping) and stated.keys() == found.keys()
        return same_keys and all(_same(stated[key], value) for key, value in found.items())
    if isinstance(found, Sequence) and not isinstance(found, str):
        same_length = isinstance(stated, list) and len(stated) == len(found)
        return same_length and all(map(_same, stated, found))
    if isinstance(found, float) and isinstance(stated, float | int) and not isinstance(stated, bool):
        return math.isclose(stated, found, rel_tol=_NEAR, abs_tol=_NEAR)
    return bool(stated == found and type(stated) is type(found))


documents.register(
    PrivateEvaluation, documents.Kind(KIND, "private evaluation", _fields, _read, since_2=frozenset({"versions"}))
)
