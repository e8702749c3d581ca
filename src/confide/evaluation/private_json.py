"""Private evaluations as JSON. What follows from the noisy counts stands in the file, and is computed again on reading.

Numbers that follow are compared within 1e-6: other machines may round the last digits otherwise.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from confide.errors import FormatError
from confide.evaluation.private import KIND, PrivateEvaluation, Question
from confide.evaluation.private_findings import PrivateCoverage, PrivateFinding
from confide.evaluation.private_parts import Partition, size_parts, width_parts
from confide.releases import documents
from confide.support import MOST_RECORDS, Fields, optional_versions

_MOST_NOISY = 4 * MOST_RECORDS
_NEAR = 1e-6
_HEXADECIMAL = frozenset("0123456789abcdef")


def question_fields(question: Question) -> dict[str, Any]:
    """A question as JSON values: with the data, what makes two requests one."""
    fields: dict[str, Any] = {
        "calibration": question.calibration,
        "privacy": {
            "neighbors": question.neighbors,
            "epsilon": question.epsilon,
            "records_per_person": question.records_per_person,
        },
        "n": question.n,
        "outcome": question.outcome,
        "statements": dict(question.statements),
        "partitions": [_partition_fields(partition) for partition in question.partitions],
        "tables": [list(table) for table in question.tables],
    }
    if question.loss is not None:
        fields["loss"] = {"name": question.loss[0], "bound": question.loss[1]}
    return fields


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


def _partition_fields(partition: Partition) -> dict[str, Any]:
    if partition.kind == "size":
        return {"kind": "size", "classes": int(partition.most)}
    if partition.kind == "width":
        return {"kind": "width", "bins": list(partition.edges[1:])}
    own = {} if partition.promised is None else {"promised": list(partition.promised)}
    return {"kind": partition.kind, "names": list(partition.names), **own}


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
    if fields.take("private", bool) is not True:
        raise FormatError(f"the {fields.document} must be private")
    calibration = fields.take("calibration", str)
    if len(calibration) != 64 or set(calibration) - _HEXADECIMAL:
        raise FormatError(f"the {fields.document} must name its release by 64 hexadecimal digits")
    privacy = fields.group("privacy")
    stated = fields.take("statements", dict)
    question = Question(
        calibration=calibration,
        neighbors=privacy.take("neighbors", str),
        epsilon=float(privacy.take("epsilon", (float, int))),
        records_per_person=privacy.take("records_per_person", int),
        n=fields.optional("n", (int,), int),
        outcome=_outcome(fields),
        statements={name: _number(fields, level) for name, level in stated.items()},
        partitions=tuple(_partition(fields, one) for one in fields.take("partitions", list)),
        tables=tuple(tuple(_integers(fields, table, len(stated) + 10)) for table in fields.take("tables", list)),
        loss=_loss(fields) if "loss" in fields else None,
    )
    privacy.finish()
    counts = tuple(tuple(_integers(fields, cells, _MOST_NOISY)) for cells in fields.take("counts", list))
    versions = optional_versions(fields)
    made = PrivateEvaluation(question, float(fields.take("confidence", (float, int))), counts, versions)
    if not _same(fields.take("found", dict), found_fields(made)):
        raise FormatError(f"the {fields.document} claims what does not follow from its counts; do not use it")
    return made


def _outcome(fields: Fields) -> Any:
    outcome = fields.take("outcome", str)
    if outcome not in ("covered", "levels", "sides"):
        raise FormatError(f"the {fields.document} has an outcome that this version does not know")
    return outcome


def _partition(fields: Fields, content: Any) -> Partition:
    part = Fields(fields.document, content if isinstance(content, dict) else {}, "partitions")
    kind = part.take("kind", str)
    if kind == "size":
        made = size_parts(min(part.take("classes", int), 10**9))
    elif kind == "width":
        made = width_parts([_number(fields, one) for one in part.take("bins", list)])
    elif kind in ("class", "group"):
        names = part.take("names", list)
        if not all(isinstance(name, str) for name in names):
            raise FormatError(f"the {fields.document} must name its parts by texts")
        own = [_number(fields, one) for one in part.take("promised", list)] if "promised" in part else None
        made = Partition(kind, tuple(names), None if own is None else tuple(own))
    else:
        raise FormatError(f"the {fields.document} has parts that this version does not know")
    part.finish()
    return made


def _loss(fields: Fields) -> tuple[str, float]:
    loss = fields.group("loss")
    found = loss.take("name", str), float(loss.take("bound", (float, int)))
    loss.finish()
    return found


def _number(fields: Fields, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, float | int):
        raise FormatError(f"the {fields.document} has something else where a number must be")
    return float(value)


def _integers(fields: Fields, values: Any, most: int) -> list[int]:
    whole = isinstance(values, list) and all(isinstance(one, int) and not isinstance(one, bool) for one in values)
    if not whole or any(abs(one) > most for one in values):
        raise FormatError(f"the {fields.document} must have lists of integers in range where it counts")
    return list(values)


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
