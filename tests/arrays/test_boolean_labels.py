"""Boolean labels: named by classes=[False, True]; without names an error recommends this."""

import numpy as np

import confide
from tests.refused import refused

P = np.random.default_rng(0).dirichlet([1, 1], 200)
Y = np.arange(200) % 2 == 1


def test_boolean_labels_need_class_names():
    named = confide.lac_score(P, Y, classes=[False, True])
    np.testing.assert_array_equal(named, confide.lac_score(P, Y.astype(int)))
    with refused(confide.InputTypeError, "labels"):
        confide.lac_score(P, Y)
