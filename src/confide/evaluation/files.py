"""Evaluations in files, as JSON: the query and the counts."""

import math
from dataclasses import replace
from typing import Any, Literal

import msgspec

from confide.core import documents
from confide.errors import FormatError
from confide.evaluation.evaluation import KIND, Evaluation, Example, without_none
from confide.evaluation.query import CountQuery
from confide.support import UNUSABLE, VERSIONS, Fields, refused_content, shapes


class _File(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The content of a file, without kind, schema and checksum."""

    private: bool
    query: CountQuery
    confidence: float
    counts: tuple[tuple[int | float, ...], ...]
    sums: tuple[tuple[float | Literal["+inf"], ...], ...] = ()
    examples: tuple[tuple[Example, ...], ...] = ()
    versions: dict[str, str] = {}


def query_fields(query: CountQuery) -> dict[str, Any]:
    """JSON values of a query; together with the data they identify a request."""
    fields: dict[str, Any] = without_none(msgspec.to_builtins(query))
    return fields


def _content(evaluation: Evaluation) -> dict[str, Any]:
    sums: Any = tuple(tuple("+inf" if math.isinf(one) else one for one in row) for row in evaluation.sums)
    e, versions = evaluation, dict(evaluation.versions)
    file = _File(e.private, e.query, e.confidence, e.counts, sums, e.examples, versions)
    fields: dict[str, Any] = without_none(msgspec.to_builtins(file))
    return fields


def _read_content(fields: Fields) -> Evaluation:
    """The evaluation of a file; raises `FormatError` if it was altered, or if its counts contradict each other."""
    content = fields.content.copy()
    fields.content.clear()
    with refused_content("evaluation", "evaluation"):
        file = msgspec.convert(content, _File, strict=True)
        VERSIONS.of(file.versions, "evaluation.versions")
        sums = tuple(tuple(map(float, row)) for row in file.sums)
        query = replace(file.query, partitions=tuple(map(replace, file.query.partitions)))  # with all defaults
        found = Evaluation(query, file.counts, file.confidence, sums, file.examples, file.versions)
    if shapes.checksum(content) != shapes.checksum(_content(found)):
        raise FormatError("evaluation", "must be written as its content is: it was altered", remedy=UNUSABLE)
    return found


documents.register(Evaluation, documents.Kind(documents.common_form(KIND, "evaluation"), _content, _read_content))
