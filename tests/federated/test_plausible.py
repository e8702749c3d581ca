"""A reconstructed sum that honest silos cannot produce, and noise that no honest plan has."""

import numpy as np
import pytest

from confide import federated
from confide.errors import InputError
from confide.federated.messages import sign
from confide.federated.plausible import LEVEL, check_plausible, most_noise
from confide.federated.refusals import Refusal
from confide.federated.sharing import check_scale, noise_law
from tests.federated.helpers import Federation, content_of
from tests.refused import refused


@pytest.mark.parametrize(("scale", "parameter"), [(0.3, 1.0), (1.0, 1.5), (2.0, 40.0), (10.0, 2.5), (0.01, 3.0)])
@pytest.mark.parametrize("level", [1e-2, 1e-6, 1e-12])
def test_noise_exceeds_its_bound_as_rarely_as_stated(scale, parameter, level):
    law = noise_law(scale, parameter)
    beyond = np.arange(len(law)) - len(law) // 2 > most_noise(scale, parameter, level)
    assert law[beyond].sum() <= level
    looser = np.arange(len(law)) - len(law) // 2 > most_noise(scale, parameter, level) / 2
    assert law[looser].sum() > level or scale < 0.1  # the bound is within a factor of two


def test_an_honest_sum_is_refused_at_the_stated_level_at_most():
    """Test the bounds of all counts and of their total together, by exact distributions."""
    m, n, scale, parameter = 40, 500, 1.5, 2.0
    cell, whole = noise_law(scale, parameter), noise_law(scale, parameter * m)
    room, total = most_noise(scale, parameter, LEVEL / (4 * m)), most_noise(scale, parameter * m, LEVEL / 4)
    x, y = (np.abs(np.arange(len(law)) - len(law) // 2) for law in (cell, whole))
    assert m * cell[x > room].sum() + whole[y > total].sum() <= LEVEL
    for counts in (np.full(m, 12) + np.eye(m, dtype=int)[3] * 20, np.eye(m, dtype=int)[m - 1] * n):
        check_plausible(counts, n, scale, parameter)
        check_plausible(counts + np.eye(m, dtype=int)[5] * int(room), n, scale, parameter)


@pytest.mark.parametrize("change", [-2000, -25, "swap"])
def test_a_wrong_message_of_a_secure_sum_shows(tmp_path, change):
    three = Federation.uniform(tmp_path, *[400] * 3)
    plan = three.plan(method="secure-sum")
    answers = three.answers(plan)
    assert 0 < federated.aggregate(plan, answers).threshold <= 1
    content = content_of(answers[1])
    moved = np.array(content["sent"], dtype=np.int64)
    if change == "swap":  # the total is right, one count is not
        moved += np.where(np.arange(len(moved)), 60, -60 * (len(moved) - 1))
    else:  # -25: every count is plausible, the total is not
        moved += change
    wrong = sign("answer", content | {"sent": (moved % 2**32).tolist()}, three.keys[1].signing)
    with refused(Refusal, "implausible"):
        federated.aggregate(plan, [answers[0], wrong, answers[2]], drop_refused=True)


def test_noise_beyond_all_records_is_refused_before_it_is_paid_for(tmp_path):
    three = Federation.uniform(tmp_path, *[100] * 3)
    with refused(InputError, "epsilon"):
        three.plan(epsilon=1e-6, method="secure-sum")
    assert check_scale(300.0, 300) == 300.0
