"""Under add_remove no number of records is special: none, one and many are released in the same way."""

import numpy as np
import pytest

import confide
from tests.exact import law, worst_log_ratio
from tests.refused import refused

NONE = np.zeros(0)
GRID = confide.Candidates.unit(50)
FEW = pytest.mark.filterwarnings("ignore::confide.CoverageWarning")

CALLS = {
    "threshold": lambda s, **o: confide.calibrate(s, 0.1, 1.0, score="lac", **o),
    "levels": lambda s, **o: confide.calibrate(s, [0.1, 0.2], 2.0, score="lac", **o),
    "groups": lambda s, **o: confide.calibrate(s, 0.1, 1.0, groups=["a"] * len(s), names=["a", "b"], score="lac", **o),
    "sides": lambda s, **o: confide.calibrate_sides(np.tile(s[:, None], (1, 2)), s, 0.1, 2.0, **o),
    "false negatives": lambda s, **o: confide.calibrate_false_negatives(
        np.tile(s[:, None], (1, 3)), np.ones((len(s), 3), dtype=bool), 0.1, 1.0, **o
    ),
    "losses": lambda s, **o: confide.calibrate_losses(np.zeros((len(s), 49)), GRID, 0.1, 1.0, loss="own", **o),
    "histogram": lambda s, **o: confide.calibrate_histogram(
        confide.ScoreHistogram.from_scores(s, GRID), 0.1, 1.0, score="lac", **o
    ),
    "noisy histogram": lambda s, **o: confide.calibrate(s, 0.1, 1.0, mechanism="noisy-histogram", **o),
}


@pytest.mark.slow
@FEW
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("n", [0, 1])
def test_no_record_and_one_record_are_released(name, n):
    released = CALLS[name](np.full(n, 0.5))
    assert type(released).from_json(released.to_json()) == released
    assert released.privacy.epsilon <= (2 if name in ("levels", "sides") else 1)


@pytest.mark.parametrize("name", ["threshold", "levels", "sides", "false negatives", "losses", "histogram"])
def test_no_record_raises_if_n_is_public(name):
    with refused(confide.InputError, "n"):
        CALLS[name](NONE, neighbors="replace_one")


def test_loss_between_no_record_and_one():
    """The exact laws with no record, with one in each bin, and with two."""
    mechanism = confide.plan(0.1, 1.0, candidates=4).mechanism

    def output(h):
        return law(mechanism.utilities(np.array(h)), mechanism.scale)

    ones = [tuple(int(i == j) for j in range(4)) for i in range(4)]
    assert worst_log_ratio(output, [(0, 0, 0, 0)], lambda h: iter(ones)) <= 1 + 1e-9
