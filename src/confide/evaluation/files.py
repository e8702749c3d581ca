"""Evaluations in files, as JSON: the query and the counts."""

import math
from dataclasses import replace
from typing import Any, Literal

import msgspec

from confide.core import documents
from confide.evaluation.consistency import Example
from confide.evaluation.evaluation import KIND, Evaluation
from confide.evaluation.query import CountQuery, without_none
from confide.support import check_version_texts


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
    sums: Any = tuple(tuple("+inf" if math.isinf(total) else total for total in row) for row in evaluation.sums)
    e, versions = evaluation, dict(evaluation.versions)
    file = _File(e.private, e.query, e.confidence, e.counts, sums, e.examples, versions)
    fields: dict[str, Any] = without_none(msgspec.to_builtins(file))
    return fields


def _read_content(content: dict[str, Any]) -> Evaluation:
    """The evaluation of a file; raises an error if its counts contradict each other."""
    file = msgspec.convert(content, _File, strict=True)
    check_version_texts("evaluation.versions", file.versions)
    sums = tuple(tuple(map(float, row)) for row in file.sums)
    query = replace(file.query, partitions=tuple(map(replace, file.query.partitions)))  # with all defaults
    return Evaluation(query, file.counts, file.confidence, sums, file.examples, file.versions)


documents.register(Evaluation, documents.Kind(documents.common_form(KIND, "evaluation"), _content, _read_content))
