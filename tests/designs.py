"""Terms and plans over any number of candidates, also with slopes and a rise that no public option offers."""

from dataclasses import replace

from confide.candidates import Candidates
from confide.core import Plan, make_plan, plan
from confide.core.design import Design, sized_design, slopes_design
from confide.core.request import Request
from confide.core.terms import Terms
from confide.core.tuning import tune
from confide.mechanisms import NoisySize


def terms(alpha, candidates, epsilon=None, *, rho=None, **choices) -> Terms:
    """The terms of one threshold; a number of candidates stands for equal steps."""
    listed = Candidates.unit(candidates) if isinstance(candidates, int) else candidates
    return Request(alpha=alpha, epsilon=epsilon, rho=rho, candidates=listed, **choices).terms[None]


def noisy_size(asked: Terms, counted: int) -> NoisySize:
    """This noisy number of records."""
    return NoisySize.of(counted, asked.size_scale, asked.n_min)


def design_of(asked: Terms, counted: int) -> Design:
    """The design for this noisy number of records."""
    return sized_design(asked, noisy_size(asked, counted))


def planned(asked: Terms, n: int, *, slopes=None, rise=None) -> Plan:
    """The plan for n records; with these slopes (left, right) and this rise, instead of the best ones."""
    if slopes is None and rise is None:
        return make_plan(asked, n)
    chosen_for = asked.records_of_design(n)
    tuning = tune(asked.spread, asked.tuning_inputs(chosen_for))
    left, right = slopes or (tuning.left, tuning.right)
    tuning = replace(tuning, left=left, right=right, rise=tuning.rise if rise is None else rise)
    size = noisy_size(asked, n) if asked.moves else None
    return Plan(slopes_design(asked, chosen_for, tuning, size), n)


def overridden(alpha, epsilon=None, n=1000, *, slopes=None, rise=None, **options) -> Plan:
    """The plan of these options with other slopes and another rise."""
    return planned(plan(alpha, epsilon, n, **options).terms, n, slopes=slopes, rise=rise)
