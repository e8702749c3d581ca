"""The bin of a score in PostgreSQL: j such that e_(j-1) < score <= e_j, by comparisons of doubles alone."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def bin_index(score: Any, edges: NDArray[np.float64]) -> Any:
    """The number of edges below a score, as an expression.

    `width_bucket(x, thresholds)` counts thresholds at or below x by exact binary search; at or below -x are the
    negated edges at or above x.
    """
    import ibis

    if not len(edges):
        return ibis.literal(0, "int32")
    at_or_above = _width_bucket()(-score, ibis.literal(_array(-edges[::-1])).cast("array<float64>"))
    return (ibis.literal(len(edges), "int32") - at_or_above).cast("int32")


def _array(values: NDArray[np.float64]) -> str:
    """PostgreSQL's text of an array, every number as the shortest text that reads back as it."""
    return "{" + ",".join(repr(value) for value in values.tolist()) + "}"


def _width_bucket() -> Any:
    import ibis
    import ibis.expr.datatypes as dt

    @ibis.udf.scalar.builtin(name="width_bucket", signature=((dt.float64, dt.Array(dt.float64)), dt.int32))
    def width_bucket(x, thresholds):  # type: ignore[no-untyped-def]
        """PostgreSQL's own."""

    return width_bucket
