"""The noisy number and the threshold together, for random requests, in utilities of our own and in exact integers."""

import math
import random
from dataclasses import dataclass, replace
from fractions import Fraction

import pytest

from confide.candidates import Candidates, Spread
from confide.core import RecordWeights
from confide.core.design import sized_design
from confide.core.promised import sized_privacy
from confide.errors import InputError
from confide.mechanisms import NoisySize
from tests.designs import terms as terms_of


def own_utilities(mechanism, counts):
    """Integer utilities by the formulas of docs/theory.md, section 2, in Python's integers."""
    heaviest = mechanism.weight or 1
    unit = math.lcm(mechanism.rate.denominator, mechanism.offset.denominator)
    target = (mechanism.rate * (Fraction(sum(counts), heaviest) + 1) + mechanism.offset) * heaviest * unit
    assert target.denominator == 1
    start, parts = mechanism.flat.numerator, mechanism.flat.denominator
    steps, last = max(parts * len(counts) - start, 1), len(counts) - 1
    below, utilities = 0, []
    for place, count in enumerate(counts):
        above = mechanism.right * max(unit * below - int(target), 0)
        below += count
        short = mechanism.left * max(int(target) - unit * below, 0) if place < last else 0
        rise = mechanism.rise * min(max(parts * (place + 1) - start, 0), steps) // steps
        utilities.append(rise - max(above, short))
    utilities[-1] += max(0, mechanism.head_start - mechanism.fade * sum(counts))
    return utilities


def distance(one, other):
    """The length of an interval of all differences: scale times the largest log-ratio of two laws, or more."""
    apart = [a - b for a, b in zip(one, other, strict=True)]
    return max(apart) - min(apart)


def random_request(rng):
    """Level, epsilon or rho, candidates and choices; and how many records a person has."""
    choices = {}
    alpha = rng.choice(["1/10", "1/2", "1/20", "1/3", "3/4", "9/10", "1/100", f"{rng.randint(1, 999)}/1000"])
    if rng.random() < 0.2:
        choices["delta"] = rng.choice([0.05, 0.1, 0.3, 0.01])
    if rng.random() < 0.3:
        choices["records_per_person"] = rng.choice([2, 3, 10, 1000])
    if "delta" not in choices and rng.random() < 0.2:
        choices["population"] = RecordWeights.bounded(rng.choice([1, 2, 3.5, 25]))
    elif rng.random() < 0.3:
        choices["n_min"] = rng.choice([2, 5, 17, 100, 3000, 10**6])
    epsilon = math.exp(rng.uniform(math.log(0.05), math.log(40)))
    if rng.random() < 0.25:
        return alpha, None, choices | {"rho": epsilon**2 / 8}
    return alpha, epsilon, choices


def neighbouring_counts(rng, mechanism, m):
    """Counts near the target of few and of many records, small ones, and some of any size."""
    heaviest = mechanism.weight or 1
    for _ in range(60):
        n = rng.choice([rng.randint(0, 5), rng.randint(1, 60), rng.randint(60, 3000)])
        target = float(mechanism.target(n))
        cuts = sorted(max(0, min(n, int(target + rng.gauss(0, 6)))) for _ in range(m - 1))
        yield [heaviest * (high - low) for low, high in zip([0, *cuts], [*cuts, n], strict=True)]
        yield [rng.choice([0, 0, 1, 2, rng.randint(0, 200), rng.randint(0, 10**6), 10**12]) for _ in range(m)]


@dataclass
class Audit:
    """What was compared, and the largest loss over the stated one."""

    pairs: int = 0
    designs: int = 0
    added: float = 0.0
    replaced: float = 0.0


def compare(rng, pairs):
    """Compare as many pairs of neighbours; raise AssertionError if one loses more than stated."""
    audit = Audit()
    while audit.pairs < pairs:
        alpha, epsilon, choices = random_request(rng)
        m = rng.randint(2, 6)
        listed = Candidates.of(sorted(rng.sample(range(1, 60), m - 1)))
        spread = listed if rng.random() < 0.6 else Spread(rng.choice(["probability", "residual", "any"]))
        try:
            terms = terms_of(alpha, spread, epsilon, **choices)
        except InputError:  # a budget too small for so many records
            continue
        for _ in range(2):
            counted = rng.choice([-(2**40), 3, rng.randint(0, 3000), int(10 ** rng.uniform(2, 14)), 2**48, 2**62])
            design = sized_design(terms, NoisySize.of(counted, terms.size_scale, terms.n_min))
            compare_design(rng, design, epsilon, audit)
    return audit


def compare_design(rng, design, epsilon, audit):
    """Compare counts with those of one record more, and with those of another record instead."""
    terms, mechanism, stated = design.terms, design.mechanism, design.privacy
    audit.designs += 1
    people, number = terms.records_per_person, 1 / Fraction(terms.size_scale)
    limit = sized_privacy(terms)
    assert epsilon is None or Fraction(stated.epsilon) <= Fraction(epsilon)
    assert stated.epsilon <= limit.epsilon
    assert stated.replace_one <= limit.replace_one
    if mechanism is None:
        return
    heaviest, m = mechanism.weight or 1, min(design.candidates.size, 6)
    added = replaced = 0
    for counts in neighbouring_counts(rng, mechanism, m):
        utilities = own_utilities(mechanism, counts)
        for place in range(m):
            changed = [
                [*counts[:at], counts[at] + rng.choice([1, heaviest // 2, heaviest]), *counts[at + 1 :]]
                for at in (place, rng.randrange(m))
            ]
            more, other = (own_utilities(mechanism, one) for one in changed)
            added = max(added, distance(more, utilities))
            replaced = max(replaced, distance(more, other))
            audit.pairs += 2
    scale = Fraction(mechanism.scale)
    joint = (added / scale + number) * people
    assert joint <= Fraction(stated.epsilon), (terms, design.size)
    assert replaced / scale <= Fraction(stated.replace_one), (terms, design.size)
    audit.added = max(audit.added, float(joint / Fraction(stated.epsilon)))
    audit.replaced = max(audit.replaced, float(replaced / scale / Fraction(stated.replace_one)))


@pytest.mark.slow
def test_no_pair_of_neighbours_loses_more_than_stated():
    audit = compare(random.Random(0), 100_000)
    assert audit.added > 0.999  # the statement is sharp
    assert audit.replaced > 0.999


@pytest.mark.slow
def test_a_loss_above_the_stated_one_is_noticed():
    """A control: the same designs with a noise of a tenth less fail."""
    terms = terms_of("1/10", Candidates.of([1, 2, 3]), 1.0)
    design = sized_design(terms, NoisySize.of(1000, terms.size_scale, 1))
    louder = replace(design, mechanism=replace(design.mechanism, scale=0.9 * design.mechanism.scale))
    compare_design(random.Random(0), design, 1.0, Audit())
    with pytest.raises(AssertionError):
        compare_design(random.Random(0), louder, 1.0, Audit())
