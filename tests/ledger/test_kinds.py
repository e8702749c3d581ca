"""All kinds of releases are paid for the same way, and the ledger records their kind."""

import pytest

from confide.errors import BudgetError, EarlierReleaseWarning, InputError, OtherDataError
from confide.ledger import Ledger, make_payment, pay
from confide.mechanisms import PrivacyStatement
from tests.refused import refused

PRIVACY = PrivacyStatement("add_remove", 0.5, 1, 0.5, 1.0, None)


@pytest.fixture
def ledger(place):
    return Ledger(place, limit=1.0)


def released(ledger, counts, *, week=3, mechanism="look by discrete-laplace", charge_first=False, **options):
    """A release about a week; `steps` records the steps in their order."""
    steps = []

    def look():
        steps.append(("looked", ledger.account("patients").spent().epsilon if ledger.accounts() else 0.0))
        return counts

    def draw(seen):
        steps.append(("drawn", ledger.account("patients").spent().epsilon))
        return f"week {week}: {len(steps)}"

    payment = make_payment(PRIVACY, mechanism, {"week": week}, ledger, "patients", **options)
    return pay(payment, look, bytes, draw, charge_first=charge_first), steps


def test_a_release_of_any_kind_is_charged_before_it_is_drawn_and_answered_again_for_nothing(ledger):
    text, steps = released(ledger, [4, 1])
    assert (text, steps) == ("week 3: 2", [("looked", 0.0), ("drawn", 0.5)])
    with pytest.warns(EarlierReleaseWarning):
        assert released(ledger, [4, 1]) == ("week 3: 2", [("looked", 0.5)])
    with refused(OtherDataError, "dataset"):
        released(ledger, [4, 2])
    assert ledger.account("patients").spent().epsilon == 0.5
    assert released(ledger, [4, 1], week=4, charge_first=True)[1] == [("looked", 1.0), ("drawn", 1.0)]
    with refused(BudgetError, "dataset"):
        released(ledger, [4, 1], again=True)
    with refused(InputError, "ledger"):
        make_payment(PRIVACY, "look by discrete-laplace", {}, ledger, None)
