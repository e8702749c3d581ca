"""Tuning of a score's parameters on separate data: those of RAPS, and the temperature.

Tuning on the calibration records would void both guarantees.

A score must be a function of one record and of public information. Parameters that were fitted to the calibration
records depend on all of them. Then the threshold is no longer protected by its epsilon, and calibration and new records
are no longer exchangeable. The tuning records themselves have no protection, so use public ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import ExperimentalUniforms, as_array, as_labels, as_probabilities, refuse_other_rows
from confide.errors import InputError
from confide.scores.classification import class_score, set_mask
from confide.scores.kinds import COLDEST, HOTTEST, score_name
from confide.support import Level, exact_level


@dataclass(frozen=True)
class RapsParameters:
    """The chosen parameters, and the mean size of non-private sets with them on the tuning records.

    Examples
    --------
    >>> RapsParameters(0.01, 5, 2.5).score
    'raps(penalty=0.01,k_reg=5)'
    """

    penalty: float
    k_reg: int
    mean_size: float

    @property
    def score(self) -> str:
        """The name of the score, for `calibrate`."""
        return score_name("raps", penalty=self.penalty, k_reg=self.k_reg)


def tune_raps(
    probabilities: ArrayLike,
    labels: ArrayLike,
    alpha: Level,
    *,
    calibration: ArrayLike,
    penalties: Sequence[float] = (0.0, 0.001, 0.01, 0.1, 0.2, 0.5),
    k_regs: Sequence[int] = (1, 2, 5, 10, 20),
) -> RapsParameters:
    """Choose penalty and k_reg by the mean size of the non-private sets on tuning records.

    Angelopoulos et al., ICLR 2021, appendix E, with both parameters on a grid.

    Parameters
    ----------
    probabilities, labels
        Tuning records, shapes (n, K) and (n,), which are not calibration records.
    alpha
        Miscoverage level in (0, 1).
    calibration
        The probabilities of the calibration records, shape (c, K). Their values are not read. The call raises an error
        if they are the same object as the tuning records, or share memory with them. It cannot detect a copy, because
        a comparison of values would reveal which records calibrate.
    penalties, k_regs
        The grid.

    Raises
    ------
    InputError
        If tuning and calibration records are the same array, or too few for the level, or an argument is wrong.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p, other = rng.dirichlet(np.ones(8) / 4, 400), rng.dirichlet(np.ones(8) / 4, 400)
    >>> y = np.array([rng.choice(8, p=row) for row in p])
    >>> tune_raps(p, y, 0.1, calibration=other).mean_size < 4
    True
    """
    p, y = _tuning_records(probabilities, labels, calibration)
    rank = math.ceil((len(p) + 1) * (1 - exact_level("alpha", alpha)))
    if rank > len(p):
        raise InputError("probabilities", f"must hold at least {rank} tuning records for this alpha", got=str(len(p)))
    if not len(penalties) or not len(k_regs):
        raise InputError("k_regs" if len(penalties) else "penalties", "must not be empty")
    results: list[RapsParameters] = []
    mask, u = np.empty(p.shape, dtype=np.bool_), ExperimentalUniforms(0).draw(len(p))
    for penalty in penalties:
        for k_reg in k_regs:
            name = score_name("raps", penalty=penalty, k_reg=k_reg)
            threshold = np.partition(class_score(p, y, name, u=u), rank - 1)[rank - 1]
            size = float(np.count_nonzero(set_mask(p, name, threshold, u=u, out=mask))) / len(p)
            results.append(RapsParameters(float(penalty), int(k_reg), size))
    return min(results, key=lambda choice: choice.mean_size)


def tune_temperature(probabilities: ArrayLike, labels: ArrayLike, *, calibration: ArrayLike) -> float:
    """The temperature of least log loss on tuning records, rounded to three digits: a public number for any score.

    Guo, Pleiss, Sun and Weinberger, "On calibration of modern neural networks", ICML 2017, section 4.2. It does not
    change the order of the labels. It moves the scores of an over-confident model away from the ends of [0, 1], where
    equally spaced candidates are too coarse.

    Parameters
    ----------
    probabilities, labels
        Tuning records, shapes (n, K) and (n,), which are not calibration records. Entries of 0 count as 1e-300.
    calibration
        The probabilities of the calibration records, as in `tune_raps`; their values are not read.

    Returns
    -------
    float
        Between 0.01 and 100; above 1 for an over-confident model.

    Raises
    ------
    InputError
        If tuning and calibration records are the same array, or an argument is wrong.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p, other = rng.dirichlet(np.ones(4), 2000), rng.dirichlet(np.ones(4), 10)
    >>> y = np.array([rng.choice(4, p=row) for row in p])
    >>> sure = p**3 / (p**3).sum(axis=1, keepdims=True)
    >>> 2.7 < tune_temperature(sure, y, calibration=other) < 3.3
    True
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import logsumexp

    p, y = _tuning_records(probabilities, labels, calibration)
    if not len(y):
        raise InputError("probabilities", "must hold tuning records", got="none")
    logs = np.log(np.maximum(p.astype(np.float64), 1e-300))

    def loss(log_temperature: float) -> float:
        z = logs / math.exp(log_temperature)
        return float(np.mean(logsumexp(z, axis=1) - z[np.arange(len(y)), y]))

    minimum = minimize_scalar(loss, bounds=(math.log(COLDEST), math.log(HOTTEST)), method="bounded")
    return float(f"{math.exp(minimum.x):.3g}")


def _tuning_records(
    probabilities: ArrayLike, labels: ArrayLike, calibration: ArrayLike
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Probabilities, shape (n, K), and positions of the labels, of records that do not calibrate."""
    _refuse_same(probabilities, calibration)
    refuse_other_rows(probabilities=probabilities, labels=labels)
    p = as_probabilities("probabilities", probabilities)
    return p, as_labels("labels", labels, *p.shape)


def _refuse_same(tuning: ArrayLike, calibration: ArrayLike) -> None:
    """Raise an error for one object, or arrays over the same memory; contents are never compared."""
    first, second = as_array("probabilities", tuning), as_array("calibration", calibration)
    if tuning is calibration or np.shares_memory(first, second):
        raise InputError(
            "probabilities",
            "must not be the calibration records: parameters fitted to them make each score depend on all of them, "
            "which voids privacy and coverage",
            got="shared memory",
            remedy="Tune on other records",
        )
