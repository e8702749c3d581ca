"""Records of five classes in two wards, and calibrations of any score on them."""

import numpy as np

import confide

K, N = 5, 2500
NAMES = tuple("abcde")
RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.full(K, 0.4), N).astype(np.float32)
Y, WARD = RNG.integers(0, K, N), RNG.choice(["north", "south"], N)


def calibrated(score, by=None):
    """One threshold, or one per `group` (the ward) or per `class`."""
    scores = confide.class_score(P, Y, score)
    if by is None:
        return confide.calibrate(scores, 0.2, 10.0, score=score)
    groups, names = (WARD, ["north", "south"]) if by == "group" else (np.array(NAMES)[Y], list(NAMES))
    return confide.calibrate(scores, 0.2, 10.0, groups=groups, names=names, by=by, score=score)
