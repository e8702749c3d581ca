"""Membership inference: certain without privacy, bounded with it; on thresholds and on prediction sets."""

import numpy as np
import pytest

from confide.audit.membership import demonstrate, split_conformal

pytestmark = pytest.mark.xdist_group("membership")


@pytest.fixture(scope="module")
def games():
    return demonstrate(1.0, 800, np.random.default_rng(5))


@pytest.mark.slow
def test_split_conformal_identifies_person(games):
    plain = [game for who, game in games if who == "split conformal"]
    assert [game.release for game in plain] == ["threshold", "prediction sets"]
    assert all(game.accuracy == 1.0 for game in plain)


@pytest.mark.slow
def test_privacy_bounds_every_attacker(games):
    private = [game for who, game in games if who == "confide"]
    assert [game.release for game in private] == ["threshold", "prediction sets"]
    for game in private:
        assert game.bound == pytest.approx(0.7310586)
        assert game.interval[0] <= game.bound
        assert game.accuracy < 0.75


def test_split_conformal_rank():
    assert split_conformal(0.1)(np.arange(1.0, 10.0)) == 9.0
    assert split_conformal(0.1)(np.arange(1.0, 9.0)) == np.inf
    assert split_conformal(0.5)(np.array([3.0, 1.0, 2.0])) == 2.0
