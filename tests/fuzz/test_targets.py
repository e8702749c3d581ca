"""The fuzzing targets on random bytes, and on inputs that once broke something (without a fuzzer's guidance)."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.targets import RUNS, TARGETS

SLOW = {
    "ledger_database": 40,
    "ledger_sealed": 40,
    "calibration_fields": 150,
    "evaluation_fields": 150,
    "release_fields": 100,
    "several_released": 60,
    "several_plans": 150,
    "private_evaluation_fields": 150,
    "watch_fields": 150,
    "weighted_fields": 60,
    "ledger_head": 80,
    "onnx_model": 150,
    "mlflow_model": 60,
    "examined_file": 150,
    "replied_answer": 100,
    "replied_calibration": 100,
    "own_share_fields": 100,
}


@pytest.mark.some(2)
@pytest.mark.slow_cases(
    "evaluation_text",
    "calibration_fields",
    "several_plans",
    "sealed_answer",
    "opening_for_a_silo",
    "answer_to_several",
    "federated_text",
    "part_of_an_opener",
    "opened_plan",
    "opened_calibration",
    "private_evaluation_text",
    "private_evaluation_fields",
    "watch_text",
    "watch_fields",
    "weighted_fields",
    "replied_answer",
    "replied_calibration",
    "own_share_fields",
    "private_keys",
    "examined_file",
    *{"onnx_model", "mlflow_model"} & set(TARGETS),  # where ONNX is installed
)
@pytest.mark.parametrize("name", TARGETS)
def test_target_survives(name):
    @settings(
        max_examples=SLOW.get(name, 400), deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
    )
    @given(st.binary(max_size=200))
    def survives(data):
        TARGETS[name](data)

    survives()


def test_make_fuzz_runs_a_million_times():
    assert RUNS.keys() == TARGETS.keys()
    assert sum(RUNS.values()) >= 10**6


@pytest.mark.long
@pytest.mark.parametrize("name", ["sealed_answer", "opening_for_a_silo", "part_of_an_opener", "opened_calibration"])
def test_ten_thousand_messages_of_a_secure_sum_with_missing_silos(name):
    rng = random.Random(0)
    for _ in range(10_000):
        TARGETS[name](rng.randbytes(rng.randrange(80)))
