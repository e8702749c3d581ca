"""The fuzzing targets on random bytes, and on inputs that once caused a failure (without a fuzzer's guidance)."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.kinds import KINDS
from fuzz.targets import RUNS, TARGETS, seeds

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
