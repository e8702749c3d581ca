"""Invalid arguments of mechanisms, and their results over a single candidate."""

from fractions import Fraction

import numpy as np
import pytest

from confide.errors import InputError
from confide.mechanisms import privacy_statement
from confide.mechanisms.pps import pps_for, pps_of_secret_size
from confide.mechanisms.pps_laplace import pps_laplace_for
from confide.mechanisms.privacy import sequential_composition
from tests.refused import Refused

TENTH = Fraction(1, 10)
MANY = np.array([2**61, 2**61, 0])


ONE, TWO = (privacy_statement(None, "replace_one", number) for number in (1, 2))
FULL = [pps_for(1000, TENTH, 1.0, 3), pps_laplace_for(1000, TENTH, 1.0, 3)]
STATED = {"mechanism": pps_for(100, TENTH, 1.0, 3), "neighbors": "replace_one", "records_per_person": 1}
REFUSED = [
    *(Refused(one.choose, {}, {"counts": MANY}, "counts", kind=InputError) for one in FULL),
    Refused(sequential_composition, {"parts": [ONE]}, {"parts": []}, "parts", kind=InputError),
    Refused(sequential_composition, {"parts": [ONE]}, {"parts": [ONE, TWO]}, "parts", kind=InputError),
    Refused(privacy_statement, STATED, {"neighbors": "add_remove"}, "neighbors", kind=InputError),
]


@pytest.mark.parametrize("row", REFUSED, ids=str)
def test_refusals(row):
    row.check()


def test_one_candidate_has_no_competitors():
    """The rank is the target rounded up, with probability 1."""
    for mechanism in (pps_of_secret_size(TENTH, 1.0, 1, 100), pps_for(100, TENTH, 1.0, 1)):
        target = mechanism.target(100) if hasattr(mechanism, "target") else mechanism.level * 100
        ranks, probabilities, bottom = mechanism.rank_law(100, 1)
        assert ranks[np.argmax(probabilities)] == -(-target // 1)
        assert probabilities.max() == pytest.approx(1.0)
        assert bottom == pytest.approx(0.0)
