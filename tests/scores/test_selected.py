"""Sets and scores by selection equal those of all scores bit for bit, compiled or not."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import confide
import confide.arrays.blocks
from confide.arrays import loops
from confide.scores import class_sets, classification, own_class_scores, ranked, set_mask
from confide.scores.ranked import worth_selecting
from tests.refused import numbers, refused

DETERMINISTIC = [
    "aps_deterministic",
    "raps_deterministic(penalty=0.01,k_reg=2)",
    "saps_deterministic(penalty=0.1)",
    "top_k",
]
RANDOMISED = ["aps", "raps(penalty=0.3,k_reg=1)", "saps(penalty=0.1)"]
SCORES = [*DETERMINISTIC, *RANDOMISED]
SPECIAL = [0.0, -0.0, 5e-324, 1e-45, 1e-40, 1e-8, 2.0**-12, 0.1, 0.25, 0.5, 1.0]


@pytest.fixture(scope="module", params=["python", "numba"], autouse=True)
def selection(request):
    """Every call selects; in plain Python with cells for few entries, too."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (classification, class_sets):
            patch.setattr(module, "worth_selecting", lambda entries: True)
        if request.param == "python":
            patch.setattr(ranked, "machine_code", lambda loop: loop)
            patch.setattr(loops, "_FEW_ENTRIES", np.uint64(1))
            patch.setattr(ranked, "_CELLS", 3)
        else:
            pytest.importorskip("numba", reason='needs `pip install "confide[speed]"`')
        yield request.param


def assert_equal_to_all_scores(p, score, u, rng, several=4):
    """Every threshold at, right below and right above a score, one for all and one per row; and every class's score."""
    n, k = p.shape
    whole = confide.all_scores(p, score, u=u)
    for y in range(k) if k <= several else rng.choice(k, several, replace=False):
        np.testing.assert_array_equal(own_class_scores(p, np.full(n, y), score, u=u), whole[:, y])
        at = whole[:, y]
        for limits in (at, np.nextafter(at, np.inf), np.nextafter(at, -np.inf)):
            np.testing.assert_array_equal(set_mask(p, score, limits, u=u), whole <= limits[:, None])
    for limit in [*rng.choice(np.unique(whole), 3), -1.0, 0.0, 1.0, k, np.inf]:
        np.testing.assert_array_equal(set_mask(p, score, limit, u=u), whole <= limit)


@pytest.mark.slow
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_every_row_of_few_values(score, dtype, selection, monkeypatch):
    """All rows of three classes over special values: ties, zeros of both signs, subnormals, ones."""
    monkeypatch.setattr(confide.scores.classification, "refuse_other_sums", lambda name, p: None)
    values = SPECIAL if selection == "numba" else SPECIAL[::2]
    p = np.array(list(itertools.product(values, repeat=3))).astype(dtype)
    rng = np.random.default_rng(0)
    u = rng.choice([0.0, 0.25, rng.random(), 1.0], len(p)) if score in RANDOMISED else None
    assert_equal_to_all_scores(p, score, u, rng)


@st.composite
def tables(draw):
    """Rows of up to 80 classes: smooth, with ties, over many binades, or all equal."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, k = draw(st.integers(1, 6)), draw(st.integers(1, 80))
    kind = draw(st.sampled_from(["smooth", "ties", "binades", "equal", "special", "last digits"]))
    p = {
        "smooth": lambda: rng.dirichlet(np.ones(k) / 5, n),
        "ties": lambda: rng.integers(0, 4, (n, k)) / (3 * k),
        "binades": lambda: 2.0 ** -rng.integers(0, 160, (n, k)) * rng.random((n, k)),
        "equal": lambda: np.full((n, k), 1 / k),
        "special": lambda: rng.choice(SPECIAL, (n, k)),
        "last digits": lambda: np.full((n, k), 0.25) * (1 + rng.integers(0, 9, (n, k)) * 2.0**-23),
    }[kind]()
    return np.clip(p, 0, 1).astype(draw(st.sampled_from([np.float16, np.float32, np.float64]))), rng


@pytest.mark.long
@given(tables(), st.sampled_from(SCORES))
@settings(max_examples=60, deadline=None)
def test_any_rows(table, score):
    p, rng = table
    u = rng.choice([0.0, rng.random(), 1.0], len(p)) if score in RANDOMISED else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(confide.scores.classification, "refuse_other_sums", lambda name, p: None)
        assert_equal_to_all_scores(p, score, u, rng, several=3)


@pytest.mark.slow(unless=("numba-raps(penalty=0.3,k_reg=1)", "numba-top_k"))
@pytest.mark.parametrize("score", SCORES)
def test_alternating_sharp_and_flat_rows(score, selection):
    """Alternating sharp and flat rows, so that every guess is wrong, in several blocks and on threads."""
    if selection == "python":
        pytest.skip("600 rows of 500 classes take plain Python a minute")
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(500), 600)
    p[::2] = np.eye(500)[rng.integers(0, 500, 300)] * (1 - 1e-9) + 1e-9 * p[::2]
    p[::5] = 1 / 500
    u = rng.random(600) if score in RANDOMISED else None
    assert_equal_to_all_scores(p.astype(np.float32), score, u, rng)


@pytest.mark.slow(unless="python")
def test_invalid_probabilities_raise_as_with_sorting():
    for wrong in (np.nan, 1.5, -0.25):
        p = np.full((5, 20), 0.05)
        p[3, 7] = wrong
        for call in (
            lambda q=p: set_mask(q, "aps_deterministic", 0.5),
            lambda q=p: own_class_scores(q, np.zeros(5, int), "aps_deterministic"),
        ):
            with refused(confide.errors.InputError, "probabilities") as e:
                call()
            assert numbers(e) == [1, 3]


def test_small_batches_do_not_wait_for_a_compiler(monkeypatch):
    monkeypatch.setattr(ranked, "worth_compiling", lambda entries: True)
    assert not worth_selecting(2**16 - 1)
    assert worth_selecting(2**16)
    monkeypatch.setattr(ranked, "worth_compiling", lambda entries: False)
    assert not worth_selecting(2**30)
