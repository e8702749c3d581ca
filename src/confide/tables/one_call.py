"""One call for whatever there is to evaluate: arrays or a table, as it is or privately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from numpy.typing import ArrayLike

from confide.arrays import Uniforms
from confide.errors import InputError, InputTypeError
from confide.evaluation import Asking, Evaluation, LevelEvaluation, PrivateEvaluation, evaluate_arrays
from confide.releases import Release
from confide.tables.evaluate import evaluate_table, evaluate_table_privately
from confide.tables.people import People
from confide.tables.what import What

_OPTIONS = tuple(field.name for field in fields(Asking) if field.name != "epsilon")


def evaluate(
    release: Release,
    *unnamed: object,
    probabilities: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    classes: Sequence[object] | None = None,
    predictions: ArrayLike | None = None,
    targets: ArrayLike | None = None,
    difficulty: ArrayLike | None = None,
    scores: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    u: Uniforms = None,
    table: Any = None,
    what: What | None = None,
    by: str | None = None,
    people: People | None = None,
    skip_incomplete: bool = False,
    examples: int = 0,
    epsilon: float | None = None,
    **options: Any,
) -> Evaluation | LevelEvaluation | PrivateEvaluation:
    """Coverage on labelled records; with an epsilon privately, so that it may be published.

    Parameters
    ----------
    release
        What is evaluated; all else is given by name.
    probabilities, labels, classes, u
        Of sets, as in `evaluate_sets`.
    predictions, targets, difficulty
        Of intervals, as in `evaluate_intervals`.
    scores
        Of ready-made scores, as in `evaluate_scores`.
    groups
        Of arrays: the group of each record, shape (n,).
    table, what, by, people, skip_incomplete
        Instead of arrays: whatever `confide.tables.open_table` opens, the columns, that of the group, and what bounds
        the records of a person (with epsilon only).
    examples
        Records to keep as they are; not with epsilon.
    epsilon
        Privacy loss per person. None: the numbers of `evaluate_sets`, `evaluate_intervals`, `evaluate_scores` or
        `evaluate_table`, which are not private.
    **options
        With epsilon: `neighbors`, `records_per_person`, `confidence`, `n`, `parts`, `group_names`, `width_bins`,
        `ledger`, `dataset` and `again`, as in `confide.evaluation.Asking`.

    Returns
    -------
    PrivateEvaluation, or without epsilon Evaluation or LevelEvaluation
        Coverage over all and by part; private ones with intervals that hold all at once, noise included.

    Warns
    -----
    EarlierReleaseWarning
        If it is the ledger's earlier evaluation; nothing was charged.
    CoverageWarning
        If the ledger has a calibration on the same data set, or several records of one person are counted.

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used; then nothing was released.
    BudgetError, OtherDataError, LedgerError
        As in `calibrate`.

    Examples
    --------
    >>> import confide, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> released = confide.calibrate(rng.random(2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> scores, ward = rng.random(4000), rng.choice(["a", "b"], 4000)
    >>> found = evaluate(released, scores=scores, groups=ward, epsilon=1.0, group_names=["a", "b"])
    >>> [part.name for part in found.groups], all(part.low < 0.91 < part.high for part in found.groups[:2])
    (['a', 'b', '(other)'], True)
    """
    if unnamed:
        raise InputTypeError(
            "evaluate takes arrays by name: evaluate(release, probabilities=p, labels=y), predictions= with targets=, "
            f"or scores=; found {len(unnamed)} without a name"
        )
    if unknown := sorted(set(options) - set(_OPTIONS)):
        raise InputError(f"options must be those of confide.evaluation.Asking; found {', '.join(unknown)}")
    if epsilon is None and (options or people is not None):
        named = ", ".join([*options, *([] if people is None else ["people"])])
        raise InputError(f"{named} must be left out without epsilon: the numbers are not private")
    asking = None if epsilon is None else Asking(epsilon, **options)
    given = {
        "probabilities": probabilities, "labels": labels, "predictions": predictions, "targets": targets,
        "scores": scores,
    }  # fmt: skip
    arrays = {name: value for name, value in given.items() if value is not None}
    more = {"classes": classes, "u": u, "difficulty": difficulty, "examples": examples or None}
    said = {name: value for name, value in more.items() if value is not None}
    if table is None and what is None:
        if by is not None or people is not None or skip_incomplete:
            raise InputError("by, people and skip_incomplete belong to a table; give groups for arrays")
        return evaluate_arrays(release, asking, arrays, groups, **said)
    if table is None or what is None or arrays or groups is not None or set(said) - {"examples"}:
        raise InputError("table and what must be given together, and no arrays with them")
    if asking is None:
        return evaluate_table(table, what, release, by=by, examples=examples, skip_incomplete=skip_incomplete)
    if examples:
        raise InputError("examples must be left out with epsilon: records as they are cannot be private")
    return evaluate_table_privately(table, what, release, asking, by=by, people=people, skip_incomplete=skip_incomplete)
