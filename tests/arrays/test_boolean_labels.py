"""Labels that are true or false: named by classes=[False, True], and refused with that remedy without names."""

import numpy as np

import confide
from tests.refused import refused

P = np.random.default_rng(0).dirichlet([1, 1], 200)
Y = np.arange(200) % 2 == 1


def test_booleans_are_names_if_that_is_said():
    named = confide.lac_score(P, Y, classes=[False, True])
    np.testing.assert_array_equal(named, confide.lac_score(P, Y.astype(int)))
    with refused(confide.InputTypeError, "labels"):
        confide.lac_score(P, Y)
