"""All methods by name: rejection of inflated claims, stated losses, and coverage claims."""

import math

import numpy as np
import pytest
from scipy import stats

import confide
from confide.mechanisms.interface import MECHANISMS
from confide.selection import zcdp_of_range
from tests.files import resealed
from tests.refused import refused

SCORES = np.random.default_rng(0).random(4000)
FEW = confide.Candidates.unit(40)
NEIGHBORS = {"pps": "replace_one", "pps-laplace": "replace_one", "none": "replace_one"}
CLAIMING = [name for name in MECHANISMS if name != "opendp-quantile"]


def run(name, scores=SCORES, **options):
    epsilon = None if name == "none" else 3.0
    options = {"candidates": FEW, "epsilon": epsilon, "neighbors": NEIGHBORS.get(name, "add_remove"), **options}
    return confide.calibrate(scores, 0.1, mechanism=name, **options)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize(
    ("place", "change"),
    [
        ("threshold", {"coverage": 0.95}),
        ("file", {"epsilon": 0.1}),
        ("request", {"epsilon": 0.1}),
        ("request", {"delta": "1/20"}),
        ("mechanism", {"name": "another"}),
        ("mechanism", {"scale": -1.0, "rank": 0}),
        ("mechanism", {"extra": 1}),
    ],
)
def test_inflated_claims_raise_an_error(name, place, change):
    released = run(name)
    assert released.mechanism.name == name
    if "scale" in change:
        change = {key: value for key, value in change.items() if hasattr(released.mechanism, key)}
    with pytest.raises(confide.errors.FormatError):
        confide.Release.from_json(resealed(released, place, change))


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name != "slopes"])
@pytest.mark.parametrize("option", [{"delta": 0.1}, {"rho": 0.1}])
def test_options_of_slopes_raise_an_error(name, option):
    with refused(confide.errors.InputError, next(iter(option))):
        run(name, **option)


def test_methods_that_need_a_public_n_raise_an_error():
    with refused(confide.errors.InputError, "neighbors"):
        run("pps-laplace", neighbors="add_remove")
    with refused(confide.errors.InputError, "mechanism"):
        run("best")


def test_losses_are_stated_in_every_unit():
    pps = run("pps").privacy
    assert pps.claimed == pytest.approx(3.0)
    assert pps.epsilon == pps.replace_one < 0.6 * pps.claimed
    assert pps.rho == zcdp_of_range(pps.epsilon)
    assert "the published analysis states 3" in str(pps)
    for name in ("noisy-histogram", "opendp-quantile"):
        secret = run(name).privacy
        assert secret.add_remove == pytest.approx(3.0)
        assert secret.replace_one == pytest.approx(6.0 if name == "opendp-quantile" else 2 * 0.95 * 3.0)
        public = run(name, neighbors="replace_one").privacy
        assert public.add_remove is None
        assert public.replace_one == pytest.approx(3.0)
    assert run("pps", records_per_person=2).privacy.claimed == pytest.approx(3.0)


@pytest.mark.parametrize("name", CLAIMING)
def test_conditional_statement(name):
    released = run(name)
    if name == "noisy-histogram":
        for one, n in ((released, 1000), (run(name, neighbors="replace_one"), None)):
            with refused(confide.errors.InputError, "delta"):
                one.conditional_coverage(0.05, n)
        return
    n = released.size.counted if name == "slopes" else None
    assert 0.7 < released.conditional_coverage(0.05, n) < 1


EVERYDAY = [("slopes", "atoms"), ("pps", "atoms"), ("none", "uniform")]
ATOMS = {
    "uniform": lambda rng, size: rng.random(size),
    "atoms": lambda rng, size: np.where(rng.random(size) < 0.85, 0.2, 0.9),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "scores"),
    [
        *EVERYDAY,
        *((name, scores) for name in CLAIMING for scores in ATOMS if (name, scores) not in EVERYDAY),
    ],
)
def test_every_claim_holds(name, scores):
    """One fresh point per calibration, exact binomial test at level 1e-6; the claim of the release is tested."""
    rng, hits, claim = np.random.default_rng(13), 0, 0.0
    for _ in range(300):
        points = ATOMS[scores](rng, 1001)
        released = run(name, points[1:])
        hits += points[0] <= released.threshold
        claim = released.coverage
    assert claim >= 0.9 or name == "none"
    assert stats.binomtest(hits, 300, claim, alternative="less").pvalue > 1e-6
    assert not math.isinf(released.threshold)
