"""Classification scores, computed from the class probabilities of a model.

One function computes the score of the true class for calibration, and one all scores. Both agree bit for bit with each
other and with the sets for prediction (class_sets.py), for every score, dtype and tie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import (
    ELEMENTS,
    Uniforms,
    all_valid,
    as_labels,
    as_probabilities,
    as_uniforms,
    class_columns,
    in_blocks,
    refuse_other_rows,
    refuse_other_sums,
    refuse_outside_unit,
    unit_check,
    warn_of_unknown_labels,
)
from confide.scores.kinds import ScoreKind
from confide.scores.named_scores import NamedScores
from confide.scores.names import kind_of_task, score_name
from confide.scores.ranked import (
    COMPILED_ELEMENTS,
    true_class_scores,
    worth_selecting,
)


def class_score(
    probabilities: ArrayLike,
    labels: ArrayLike,
    score: str = "lac",
    *,
    u: Uniforms = None,
    classes: Sequence[object] | None = None,
) -> NamedScores:
    """The nonconformity score of each record's own class, for any of the classification scores.

    Parameters
    ----------
    probabilities
        Shape (n, K), values in [0, 1], any float dtype, or a data frame, whose columns name the classes. Only the
        first rows are checked to sum to one, within rounding. For `lac` only the entries of the records' own classes
        are used, so only their range is checked.
    labels
        Shape (n,): integers in [0, K), or class names if `classes` or a data frame names the columns. A label that is
        not among the classes is one that the model never learned: no set covers its record, so its score is +inf.
    score
        `lac`, `aps`, `raps(penalty=...,k_reg=...)`, `saps(penalty=...)`, `margin`, `top_k`, `aps_deterministic`,
        `raps_deterministic(...)` or `saps_deterministic(...)`; see the functions of these names. All but `top_k` may
        also have a public `temperature`, such as `lac(temperature=2)` and `raps(penalty=0.01,k_reg=5,temperature=2)`:
        probabilities are first raised to the power 1/temperature and rescaled.
    u
        For the randomised scores `aps`, `raps` and `saps`: your own numbers in [0, 1], shape (n,). By default they are
        drawn. Each number must be stored with its record like a column, and not depend on its position: if a record is
        removed, the others must keep theirs. `confide.ExperimentalUniforms` draws reproducible numbers.
    classes
        The K class names, in the order of the columns; a data frame with these columns may have another order.

    Returns
    -------
    NamedScores
        A numpy array, float64, shape (n,), with its score's name and classes, which `calibrate` records.

    Raises
    ------
    InputError, InputTypeError
        If probabilities leave [0, 1] or do not sum to one, labels are missing or of another type than the class names,
        lengths differ, or the score is unknown.

    Warns
    -----
    CoverageWarning
        If labels are not among the classes: how many. Like the scores, the number is private.

    Examples
    --------
    >>> class_score([[0.75, 0.25], [0.5, 0.5]], [0, 1], "aps_deterministic")
    array([0.75, 1.  ])
    """
    classification_kind(score)
    p, names = class_columns(probabilities, classes)
    refuse_other_rows(probabilities=probabilities, labels=labels, u=u)
    y = as_labels("labels", labels, p.shape[0], p.shape[1], names, unknown=True)
    warn_of_unknown_labels("labels", y, range(p.shape[1]) if names is None else names)
    scores = own_class_scores(p, y, score, u=u)
    refuse_other_sums("probabilities", p)
    return NamedScores.of(scores, score, p.shape[1] if names is None else names)


def classification_kind(score: str) -> ScoreKind:
    """The kind of a classification score; raises an error for every other name."""
    return kind_of_task(score, "classification", "a classification score, such as 'lac' or 'aps'")


def own_class_scores(p: NDArray[Any], y: NDArray[np.int64], score: str, *, u: Uniforms = None) -> NDArray[np.float64]:
    """`class_score` for arrays that are validated except for their range: p of shape (n, K), y of shape (n,).

    The score of a record whose y is -1, a label that is not among the classes, is +inf.
    """
    # No set covers a label that is not among the classes.
    kind = classification_kind(score)
    shares = as_uniforms("u", u, len(p), kind.randomised)
    known = y >= 0
    if not known.all():
        scores = np.full(len(p), np.inf)
        scores[known] = own_class_scores(p[known], y[known], score, u=shares[known] if kind.randomised else None)
        return scores
    if kind.of_one_entry:
        return _entry_scores(p, y)

    # Compute block by block.
    out = np.empty(len(p))
    rule = kind.rule
    compiled = rule is not None and worth_selecting(p.size)

    def work(rows: slice) -> None:
        if rule is None:
            out[rows] = kind.own_scores(p[rows], y[rows], shares[rows])
        else:
            out[rows] = true_class_scores(kind.rows(p[rows]), y[rows], shares[rows], rule, compiled=compiled)

    if not checked_blocks(work, p, COMPILED_ELEMENTS if compiled else ELEMENTS):
        refuse_outside_unit("probabilities", p)
    return out


def checked_blocks(work: Callable[[slice], object], p: NDArray[Any], elements: int = ELEMENTS) -> bool:
    """Call `work` for every block in [0, 1], while it is in the cache; return whether all blocks are."""
    in_unit = unit_check(p)

    def check_and_work(rows: slice) -> bool:
        if not in_unit(rows):
            return False
        work(rows)
        return True

    return all_valid(check_and_work, len(p), p[:1].size, elements)


def _entry_scores(p: NDArray[Any], y: NDArray[np.int64]) -> NDArray[np.float64]:
    """1 - p_y; only the entries of the records' own classes are read."""
    out = np.empty(len(p))

    def work(rows: slice) -> bool:
        class_probabilities = p[np.arange(rows.start, rows.stop), y[rows]]
        np.subtract(1.0, class_probabilities, out=out[rows], dtype=np.float64)
        return unit_check(class_probabilities)(slice(None))

    if not all_valid(work, len(p)):
        refuse_outside_unit("probabilities", p[np.arange(len(p)), y][:, None])
    return out


def all_scores(probabilities: ArrayLike, score: str = "lac", *, u: Uniforms = None) -> NDArray[np.float64]:
    """The scores of all classes for all records, float64, shape (n, K): `predict_set` is `all_scores <= threshold`.

    Parameters and errors as in `class_score`.

    Examples
    --------
    >>> all_scores([[0.5, 0.25, 0.25]], "top_k")
    array([[1., 3., 3.]])
    """
    kind = classification_kind(score)
    refuse_other_rows(probabilities=probabilities, u=u)
    p = as_probabilities("probabilities", probabilities)
    refuse_other_sums("probabilities", p)
    shares = as_uniforms("u", u, len(p), kind.randomised)
    out = np.empty(p.shape)

    def work(rows: slice) -> None:
        out[rows] = kind.class_scores(p[rows], shares[rows])

    in_blocks(work, *p.shape)
    return out


# Each score by its name.

# Public defaults of `raps_score` and `saps_score`, which the command line suggests
RAPS_PENALTY = 0.01
RAPS_K_REG = 5
SAPS_PENALTY = 0.1


def lac_score(
    probabilities: ArrayLike,
    labels: ArrayLike,
    classes: Sequence[object] | None = None,
    *,
    temperature: float | None = None,
) -> NamedScores:
    """LAC (also called THR or hinge): one minus the probability of the true class, in [0, 1].

    Sadinle, Lei and Wasserman, "Least ambiguous set-valued classifiers with bounded error levels", JASA 2019.
    Parameters, result and errors as in `class_score`.

    Examples
    --------
    >>> lac_score([[0.75, 0.25], [0.5, 0.5]], [0, 1])
    array([0.25, 0.5 ])
    >>> lac_score([[0.64, 0.04, 0.32]], [0], temperature=2).score
    'lac(temperature=2)'
    """
    return class_score(probabilities, labels, score_name("lac", temperature=temperature), classes=classes)


def aps_score(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    randomised: bool = True,
    u: Uniforms = None,
    classes: Sequence[object] | None = None,
    temperature: float | None = None,
) -> NamedScores:
    """APS: the probability of the likelier classes, and a random share u of that of the equally likely ones.

    Romano, Sesia and Candes, "Classification with valid and adaptive coverage", NeurIPS 2020. The true class is one of
    the equally likely ones. With `randomised=False` u is 1: this is the score `aps_deterministic`, whose sets are
    larger and can be empty for the surest records. Values are non-negative and exceed 1 as far as rows do. Parameters
    and errors as in `class_score`.

    Examples
    --------
    >>> aps_score([[0.5, 0.25, 0.25]], [1], u=[0.5]), aps_score([[0.5, 0.25, 0.25]], [1], randomised=False)
    (array([0.75]), array([1.]))
    """
    name = score_name("aps", deterministic=not randomised, temperature=temperature)
    return class_score(probabilities, labels, name, u=u, classes=classes)


def raps_score(
    probabilities: ArrayLike,
    labels: ArrayLike,
    penalty: float = RAPS_PENALTY,
    k_reg: int = RAPS_K_REG,
    *,
    randomised: bool = True,
    u: Uniforms = None,
    classes: Sequence[object] | None = None,
    temperature: float | None = None,
) -> NamedScores:
    """RAPS: APS plus `penalty` for every rank beyond `k_reg`.

    Angelopoulos, Bates, Malik and Jordan, "Uncertainty sets for image classifiers using conformal prediction", ICLR
    2021. The rank of a class counts the classes that are at least as likely. Its name is `raps(penalty=...,k_reg=...)`,
    or `raps_deterministic(...)` with `randomised=False`. `penalty` and `k_reg` must be public.

    Examples
    --------
    >>> raps_score([[0.5, 0.25, 0.125, 0.125]], [1], penalty=0.5, k_reg=1, u=[0.5])
    array([1.125])
    """
    name = score_name("raps", deterministic=not randomised, penalty=penalty, k_reg=k_reg, temperature=temperature)
    return class_score(probabilities, labels, name, u=u, classes=classes)


def saps_score(
    probabilities: ArrayLike,
    labels: ArrayLike,
    penalty: float = SAPS_PENALTY,
    *,
    randomised: bool = True,
    u: Uniforms = None,
    classes: Sequence[object] | None = None,
    temperature: float | None = None,
) -> NamedScores:
    """SAPS: u * max(p) for the likeliest class, max(p) + (rank - 2 + u) * penalty for others, with a random u.

    Huang, Xi, Zhang, Yao, Qiu and Wei, "Conformal prediction for deep classifier via label ranking", ICML 2024. Its
    name is `saps(penalty=...)`, or with `randomised=False` `saps_deterministic(penalty=...)`, where u is 1.

    Examples
    --------
    >>> saps_score([[0.5, 0.25, 0.125, 0.125]], [1], penalty=0.25, u=[0.5])
    array([0.625])
    """
    name = score_name("saps", deterministic=not randomised, penalty=penalty, temperature=temperature)
    return class_score(probabilities, labels, name, u=u, classes=classes)


def margin_score(
    probabilities: ArrayLike,
    labels: ArrayLike,
    classes: Sequence[object] | None = None,
    *,
    temperature: float | None = None,
) -> NamedScores:
    """Margin: the largest probability among the other classes minus that of the true one, in [-1, 1].

    Linusson, Johansson, Bostrom and Lofstrom, "Classification with reject option using conformal prediction", 2018.

    Examples
    --------
    >>> margin_score([[0.75, 0.25], [0.75, 0.25]], [0, 1])
    array([-0.5,  0.5])
    """
    return class_score(probabilities, labels, score_name("margin", temperature=temperature), classes=classes)


def top_k_score(probabilities: ArrayLike, labels: ArrayLike, classes: Sequence[object] | None = None) -> NamedScores:
    """Top-k: the number of classes that are at least as likely as the true one, so that no set exceeds the threshold.

    Angelopoulos, Bates, Malik and Jordan, ICLR 2021, section 2.

    Examples
    --------
    >>> top_k_score([[0.75, 0.25], [0.5, 0.5]], [1, 0])
    array([2., 2.])
    """
    return class_score(probabilities, labels, "top_k", classes=classes)
