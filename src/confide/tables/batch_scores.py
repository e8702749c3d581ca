"""Scores of a batch of columns, for what a SQL engine cannot compute: every score of the library, in numpy.

Records that have no score say why, like those that an engine counts: a number that is missing, a label that is no
class, a list of another length.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError, InputTypeError
from confide.scores.classification import class_score
from confide.scores.kinds import ScoreKind
from confide.scores.regression import interval_score
from confide.tables.batch_columns import matrix_column, number_column, positions_among
from confide.tables.engine_findings import Finding
from confide.tables.what import Classified, Regressed, Scored, Source

FINDING, GROUP = "confide_finding", "confide_group"
"""Columns that an engine adds to a source's own: what it found wrong with a row, and the position of its group."""


def source_scores(batch: Any, source: Source) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """The scores of a batch, and why records have none.

    Parameters
    ----------
    batch
        An Arrow record batch or table, or a mapping of arrays, with the columns that the source names.
    source
        `Scored`, `Classified` or `Regressed`. Randomised scores draw fresh numbers.

    Returns
    -------
    tuple
        Scores, float64, shape (n,), NaN where there is none; and a `Finding` per record, int8, 0 where it is usable.

    Examples
    --------
    >>> import pyarrow as pa
    >>> batch = pa.record_batch({"low": [1.0, 1.0], "high": [2.0, None], "y": [2.5, 0.0]})
    >>> source_scores(batch, Regressed(("low", "high"), "y", "cqr"))
    (array([0.5, nan]), array([0, 1], dtype=int8))
    """
    if isinstance(source, Classified):
        scores, findings = _class_scores(batch, source)
    elif isinstance(source, Regressed):
        scores, findings = _interval_scores(batch, source)
    elif isinstance(source, Scored):
        scores = number_column(batch, source.column).astype(np.float64)
        findings = np.zeros(len(scores), dtype=np.int8)
    else:
        raise InputTypeError(f"source must be Scored, Classified or Regressed; found {type(source).__name__}")
    return scores, np.where(findings == 0, _unusable(scores, source.kind), findings).astype(np.int8)


def scored_batch(batch: Any, source: Scored | Classified | Regressed) -> Any:
    """A record batch of `score`, `finding` and, if the batch has `GROUP`, `group`: what `Counters` count.

    Rows with a `FINDING` of their own keep it.
    """
    import pyarrow as pa

    scores, findings = source_scores(batch, source)
    columns: dict[str, Any] = {"score": scores}
    names = batch.schema.names
    if FINDING in names:
        own = number_column(batch, FINDING)
        findings = np.where(own != 0, own, findings)
    if GROUP in names:
        columns["group"] = batch.column(GROUP).fill_null(0)
    return pa.record_batch(columns | {"finding": findings.astype(np.int32)})


def source_columns(source: Scored | Classified | Regressed) -> list[str]:
    """The columns that a source reads.

    Examples
    --------
    >>> source_columns(Classified("p", "y"))
    ['p', 'y']
    """
    if isinstance(source, Scored):
        return [source.column]
    first, last = (
        (source.probabilities, source.label) if isinstance(source, Classified) else (source.prediction, source.target)
    )
    return [*([first] if isinstance(first, str) else first), last]


def _class_scores(batch: Any, source: Classified) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    names = _names(source)
    if isinstance(source.probabilities, str):
        p, whole = matrix_column(batch, source.probabilities, len(names))
    else:
        p = np.stack([number_column(batch, name) for name in source.probabilities], axis=1)
        whole = np.ones(len(p), dtype=np.bool_)
    place = positions_among(batch, source.label, names)
    looked_at = p[np.arange(len(p)), np.maximum(place, 0)][:, None] if source.kind.family == "lac" else p
    findings = np.zeros(len(p), dtype=np.int8)
    findings[~((looked_at >= 0) & (looked_at <= 1)).all(axis=1)] = Finding.OUTSIDE
    findings[np.isnan(looked_at).any(axis=1)] = Finding.MISSING
    findings[place < 0] = Finding.LABEL
    findings[~whole] = Finding.LENGTH
    good = findings == 0
    scores = np.full(len(p), np.nan)
    if good.any():
        u = np.random.default_rng() if source.kind.randomised else None
        rows, labels = (p, place) if good.all() else (p[good], place[good])
        scores[good] = class_score(rows, labels, str(source.kind.name), u=u)
    return scores, findings


def _names(source: Classified) -> tuple[str | int, ...]:
    if source.classes is not None:
        return source.classes
    if isinstance(source.probabilities, str):
        raise InputError("classes must be given for a list of probabilities: their names, or 0 .. K-1, in its order")
    return tuple(range(len(source.probabilities)))


def _interval_scores(batch: Any, source: Regressed) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    names = (source.prediction,) if isinstance(source.prediction, str) else tuple(source.prediction)
    columns = np.stack([number_column(batch, name).astype(np.float64) for name in (*names, source.target)], axis=1)
    findings = np.zeros(len(columns), dtype=np.int8)
    findings[~np.isfinite(columns).all(axis=1)] = Finding.OUTSIDE
    findings[np.isnan(columns).any(axis=1)] = Finding.MISSING
    good = findings == 0
    scores = np.full(len(columns), np.nan)
    if good.any():
        rows = columns[good]
        scores[good] = interval_score(rows[:, :2] if len(names) == 2 else rows[:, 0], rows[:, -1], source.score)
    return scores, findings


def _unusable(scores: NDArray[np.float64], kind: ScoreKind) -> NDArray[np.int8]:
    usable = (scores >= kind.low) & (scores <= kind.high)
    return np.where(usable, 0, np.where(np.isnan(scores), Finding.MISSING, Finding.OUTSIDE)).astype(np.int8)
