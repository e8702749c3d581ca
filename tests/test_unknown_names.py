"""Calls that take choices by name refuse a name that is none of them, and tell the nearest one."""

import numpy as np
import pyarrow
import pytest

import confide
from confide import federated
from confide.tables import ScoreColumn
from tests.refused import refused

SILOS = [federated.SiloKeys.generate(f"clinic {i}").public() for i in range(5)]
CALLS = {
    "budget_plan": lambda **x: confide.budget_plan(1.0, releases=2, **x),
    "plan by a method": lambda **x: federated.plan(SILOS, 0.1, 1.0, method="private-qq", **x),
    "plan by the best method": lambda **x: federated.plan(SILOS, 0.1, 1.0, **x),
    "plan of levels": lambda **x: federated.plan(SILOS, [0.1, 0.2], 1.0, **x),
    "plan of groups": lambda **x: federated.plan(SILOS, 0.1, 1.0, by="group", names=["a", "b"], **x),
    "compare": lambda **x: federated.compare(SILOS, 0.1, 1.0, **x),
}
WRONG = {"budget_plan": ("evaluation", "evaluations")}


@pytest.mark.parametrize("call", CALLS)
def test_a_name_that_is_no_choice_is_refused(call):
    wrong, near = WRONG.get(call, ("dropout", "dropouts"))
    with refused(confide.errors.InputTypeError, wrong) as caught:
        CALLS[call](**{wrong: 1})
    assert repr(near) in caught.value.remedy


def test_a_watch_refuses_it_before_anything_is_read(tmp_path):
    released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    state = tmp_path / "watch.json"
    with refused(confide.errors.InputTypeError, "batches"):
        records, look = pyarrow.table({"s": [0.1]}), {"state": state, "look": "a", "epsilon": 1.0, "batch": 1}
        confide.watch(records, ScoreColumn("s"), released, **look, batches=2)
    assert not state.exists()
