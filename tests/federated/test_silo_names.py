"""Names of silos: found in one pass, and distinguished by more than a space."""

import warnings

import pytest

from confide import federated
from confide.candidates import Candidates
from confide.errors import InputError, SimilarNameWarning
from confide.federated import Refusal
from tests.refused import refused


def planned(names):
    silos = [federated.SiloKeys.generate(name).public(size=200) for name in names]
    return federated.plan(silos, 0.1, 5.0, method="private-qq", candidates=Candidates.unit(21))


@pytest.mark.slow
def test_a_place_is_found_without_walking_over_the_silos():
    plan = planned(["north", "south", "east"])
    assert [plan.position(name) for name in ("north", "south", "east")] == [0, 1, 2]
    object.__setattr__(plan, "silos", None)  # any iteration over the silos now fails
    assert plan.position("east") == 2
    with refused(Refusal, "foreign"):
        plan.position("west")


@pytest.mark.parametrize("other", ["north ", "n-orth", "n0rth"])
def test_names_that_look_similar_are_pointed_out(other):
    with pytest.warns(SimilarNameWarning):
        planned(["north", other])


def test_one_name_in_two_cases_is_refused():
    with refused(InputError, "silos"):
        planned(["north", "South", "North"])


@pytest.mark.slow
def test_numbered_silos_are_as_they_are():
    with warnings.catch_warnings():
        warnings.simplefilter("error", SimilarNameWarning)
        planned([f"school {i}" for i in range(12)])


def test_a_plan_of_0_2_with_such_names_is_read():
    """Names are checked when a plan is made, so that earlier plans stay valid."""
    with pytest.warns(SimilarNameWarning):
        plan = planned(["north", "north "])
    text = plan.sign(federated.SiloKeys.generate("coordinator"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", SimilarNameWarning)
        assert federated.read_plan(text).digest
