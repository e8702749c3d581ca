"""What mechanisms refuse, and what they say of too few and too many records."""

from fractions import Fraction

import numpy as np
import pytest

from confide.errors import InputError
from confide.mechanisms import privacy_statement
from confide.mechanisms.pcoqs import pcoqs_for
from confide.mechanisms.pps import pps_for, pps_of_secret_size
from confide.mechanisms.pps_laplace import pps_laplace_for
from confide.mechanisms.privacy import in_sequence

TENTH = Fraction(1, 10)
MANY = np.array([2**61, 2**61, 0])


@pytest.mark.parametrize(
    "mechanism",
    [pcoqs_for(1000, 1 - TENTH, 0.5, 3), pps_for(1000, TENTH, 1.0, 3), pps_laplace_for(1000, TENTH, 1.0, 3)],
    ids=lambda mechanism: mechanism.name,
)
def test_more_records_than_64_bits_hold(mechanism):
    with pytest.raises(InputError, match=r"counts hold more records than 64-bit .*; use mechanism='slopes'"):
        mechanism.choose(MANY)


def test_one_candidate_has_no_rivals():
    """The rank is the target's, rounded up, and surely."""
    for mechanism in (pps_of_secret_size(TENTH, 1.0, 1, 100), pps_for(100, TENTH, 1.0, 1)):
        target = mechanism.target(100) if hasattr(mechanism, "target") else mechanism.level * 100
        ranks, probabilities, bottom = mechanism.rank_law(100, 1)
        assert ranks[np.argmax(probabilities)] == -(-target // 1)
        assert probabilities.max() == pytest.approx(1.0)
        assert bottom == pytest.approx(0.0)


def test_statements_that_do_not_belong_together():
    with pytest.raises(InputError, match="parts must not be empty"):
        in_sequence([])
    one, two = (privacy_statement(None, "replace_one", number) for number in (1, 2))
    with pytest.raises(InputError, match="parts must state the same neighbours and records_per_person"):
        in_sequence([one, two])
    public = pps_for(100, TENTH, 1.0, 3)
    with pytest.raises(InputError, match="neighbors must be 'replace_one' for mechanism='pps'"):
        privacy_statement(public, "add_remove", 1)
