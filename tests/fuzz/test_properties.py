"""Public functions answer rightly or raise an error of the library, for all arguments; the fuzzing targets."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import confide
from confide.cli import main
from confide.errors import ConfideError
from confide.ledger import Cost, Group, compose
from fuzz.kinds import KINDS
from fuzz.source import one_line
from fuzz.targets import RUNS, TARGETS, seeds

ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 2**70), st.floats(), st.text(max_size=12), st.binary(max_size=4),
    st.lists(st.integers(-3, 3), max_size=3), st.just(np.float32(0.1)), st.just(np.array([0.1])), st.fractions(0, 1),
)  # fmt: skip
VALID = {
    "scores": arrays.arrays(np.float64, st.integers(1, 40), elements=st.floats(0, 1)),
    "alpha": st.sampled_from([0.1, "1/3"]),
    "epsilon": st.sampled_from([1, 4.0]),
}
CHOICES = {
    "neighbors": st.sampled_from(["add_remove", "replace_one"]),
    "delta": st.just(0.2),
    "records_per_person": st.integers(1, 2),
    "score": st.sampled_from(["lac", "absolute_residual"]),
}
OTHERS = {
    "scores": st.one_of(
        arrays.arrays(np.float64, st.integers(0, 40), elements=st.floats()),
        arrays.arrays(np.float32, st.integers(1, 40), elements=st.floats(0, 1, width=32)),
        arrays.arrays(np.int16, st.integers(1, 20)),
        st.lists(ODD, max_size=6),
        ODD,
    ),
    "n_min": st.one_of(st.integers(1, 100), ODD),
    "mechanism": st.one_of(st.sampled_from(["pps", "noisy-histogram", "opendp-quantile", "none"]), ODD),
    **dict.fromkeys([*VALID, *CHOICES, "rho", "ledger", "dataset"][1:], ODD),
}


@st.composite
def calls(draw):
    """The arguments of a correct call, with up to two of them changed."""
    asked = draw(st.fixed_dictionaries(VALID, optional=CHOICES))
    names = draw(st.lists(st.sampled_from(sorted(OTHERS)), max_size=2))
    return asked | {name: draw(OTHERS[name]) for name in names}


def settled(call):
    """The result of a call; None if it raised an error of one line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", confide.CoverageWarning)
        try:
            return call()
        except ConfideError as error:
            one_line(error)
            return None


@pytest.mark.long
@pytest.mark.parametrize("examples", [50, 500])
def test_calibrate(examples):
    """At least a quarter of the calls are accepted: a library that refuses everything would pass the rest."""
    accepted = []

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(calls())
    def tried(asked):
        released = settled(lambda: confide.calibrate(candidates=confide.Candidates.unit(20), **asked))
        accepted.append(released is not None)
        if released is not None:
            assert not math.isnan(released.threshold)
            assert 0 <= released.guarantee.coverage <= 1
            assert released.epsilon >= 0
            if released.candidates == 20:
                assert released.threshold in confide.Candidates.unit(20).values

    tried()
    assert sum(accepted) >= len(accepted) / 4


@pytest.mark.long
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.lists(st.tuples(ODD, ODD, ODD, ODD), max_size=4), ODD)
def test_costs(rows, dp_delta):
    costs = [settled(lambda row=row: Cost(row[0], "add_remove", "m", row[1], None)) for row in rows]
    groups = [settled(lambda row=row: Cost(1.0, "add_remove", "m", None, Group(row[2], row[3]))) for row in rows]
    total = settled(lambda: compose([c for c in [*costs, *groups] if c is not None], dp_delta))
    if total is not None:
        assert total.epsilon >= 0


WORDS = st.sampled_from(
    ["calibrate", "predict", "show", "plan", "ledger", "list", "limit", "export", "evaluate", "--alpha", "0.1",
     "--epsilon", "1", "-1", "nan", "--out", "--ledger", "--dataset", "x", "budget.db", "--json", "--n", "100",
     "--dp-delta", "--mechanism", "no:thing", "/", ".", "", "*", "../..", "\x00", "ü" * 30, "--candidates", "unit:5"]
)  # fmt: skip


@pytest.mark.long
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.lists(WORDS, min_size=1, max_size=7))
def test_command_lines(folder_for_words, words):
    code = main(words)
    assert code in (0, 2, 3, 4), words
    inside = {path.name for path in folder_for_words.iterdir()}
    assert all(name in words or name.removesuffix("-wal").removesuffix("-shm") in words for name in inside), inside


COSTLY = ("ledger_database", "ledger_sealed", "checkpoint")


@pytest.mark.slow(unless="silo_fields")
@pytest.mark.parametrize("name", TARGETS)
def test_target_survives(name):
    kind = KINDS.get(name.removesuffix("_fields"))
    costly = kind is not None or name in COSTLY

    @settings(
        max_examples=60 if costly else 400, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
    )
    @given(st.binary(max_size=200))
    def survives(data):
        TARGETS[name](data)

    survives()


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_valid_inputs_of_targets_are_read(name):
    """Valid inputs are read: a reader that rejects everything would pass every target."""
    kind = KINDS[name]
    for document in kind.valid()[:2]:
        assert kind.check(kind.write(document))
    assert seeds(f"{name}_text")


def test_make_fuzz_runs_a_million_times():
    assert RUNS.keys() == TARGETS.keys()
    assert sum(RUNS.values()) >= 10**6
