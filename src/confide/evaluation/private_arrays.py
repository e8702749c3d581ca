"""Labelled records in arrays, evaluated as they are or privately: what they are says how they are counted."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_array, refuse_other_rows
from confide.errors import InputError
from confide.evaluation.covered_tally import (
    IntervalTally,
    ScoreTally,
    evaluate_intervals,
    evaluate_scores,
    known_scores,
    known_targets,
)
from confide.evaluation.private import PrivateEvaluation
from confide.evaluation.private_release import Asking, answer
from confide.evaluation.result import Evaluation, LevelEvaluation
from confide.evaluation.set_tally import SetTally, evaluate_sets, labelled_sets
from confide.evaluation.subgroups import group_names
from confide.evaluation.tally import Tally
from confide.releases import Release
from confide.support import canonical

_TRUTHS = {"probabilities": "labels", "predictions": "targets", "scores": None}


def evaluate_arrays(
    release: Release, asking: Asking | None, arrays: dict[str, Any], groups: ArrayLike | None, **more: Any
) -> Evaluation | LevelEvaluation | PrivateEvaluation:
    """Evaluate a release on arrays, privately if something is asked at a price.

    Parameters
    ----------
    release
        Whatever can be evaluated.
    asking
        The price and what is asked for it; None for numbers that are not private.
    arrays
        `probabilities` and `labels`, `predictions` and `targets`, or `scores`, as the calls for each take them.
    groups
        The group of each record.
    **more
        Of these calls: `classes`, `u`, `difficulty`, `examples`.

    Examples
    --------
    >>> import confide
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> evaluate_arrays(released, None, {"scores": [0.1, 0.99]}, None).coverage.value
    0.5
    """
    given = [name for name in _TRUTHS if name in arrays]
    if len(given) != 1 or set(arrays) - {given[0], _TRUTHS[given[0]]}:
        raise InputError("one of probabilities with labels, predictions with targets, and scores must be given")
    truth = _TRUTHS[given[0]]
    if truth is not None and truth not in arrays:
        raise InputError(f"{truth} must be given with {given[0]}: the truth of each record")
    refuse_other_rows(**arrays, groups=groups, u=more.get("u"), difficulty=more.get("difficulty"))
    if asking is None:
        calls: dict[str, Callable[..., Any]] = {
            "probabilities": evaluate_sets, "predictions": evaluate_intervals, "scores": evaluate_scores,
        }  # fmt: skip
        found: Evaluation | LevelEvaluation = calls[given[0]](release, *arrays.values(), groups=groups, **more)
        return found
    if more.pop("examples", 0):
        raise InputError("examples must be left out with epsilon: records as they are cannot be private")
    tally, records = _counted(release, arrays, more)
    n = len(records[0])
    own = release.asks_groups(sets=isinstance(tally, SetTally))
    if (groups is not None) != (own or asking.group_names is not None):
        raise InputError("groups, that of each record, and group_names, the public list of them, belong together")
    listed: Sequence[Any] = list(release.parts) if own else ()
    places = None if groups is None else _places(groups, n, listed or asking.group_names or ())

    def count(add: Callable[..., None]) -> None:
        add(*records, groups=groups if own else None, places=places, **more)

    return answer(asking, release, tally, count)


def _counted(release: Release, arrays: dict[str, Any], more: dict[str, Any]) -> tuple[Tally, tuple[Any, ...]]:
    """What counts records, and the records, checked; there may be none."""
    if "probabilities" in arrays:
        p, y, names = labelled_sets(release, arrays["probabilities"], arrays["labels"], more.pop("classes", None))
        return SetTally(release, names), (p, y)
    if "predictions" in arrays:
        predictions = as_array("predictions", arrays["predictions"])
        return IntervalTally(release), (predictions, known_targets(arrays["targets"], empty=True))
    return ScoreTally(release), (known_scores(arrays["scores"], empty=True),)


def _places(groups: ArrayLike, n: int, names: Sequence[Any]) -> NDArray[np.int64]:
    """The position of each record's group in the public list, -1 where it is not in it."""
    found, place = group_names(groups, n)
    public = {canonical(name): i for i, name in enumerate(names)}
    return np.array([public.get(name, -1) for name in found], dtype=np.int64)[place]
