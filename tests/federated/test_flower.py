"""The Flower adapter on a grid within the process."""

import numpy as np
import pytest

from confide import federated
from tests.federated.helpers import Federation

pytest.importorskip("flwr", reason="needs the extra 'flower': pip install 'confide[flower]'")

from confide.federated import flower


@pytest.fixture
def four(tmp_path):
    rng = np.random.default_rng(0)
    return Federation(tmp_path, [rng.random(n) for n in (200, 150, 120, 180)])


def grid_for(four, broken=(), dead=()):
    from flwr.clientapp import ClientApp

    from tests.federated.in_process_grid import InProcessGrid

    def setup(context):
        i = int(context.node_config["silo"])
        if i in broken:
            raise RuntimeError(f"patient records are {four.scores[i][:3]}")
        return flower.SiloSetup(four.scores[i], four.keys[i], four.policy, four.ledgers[i])

    app = ClientApp()
    flower.register(app, setup)
    return InProcessGrid(app, {10 + i: {"silo": i} for i in range(4)}, dead={10 + i for i in dead})


@pytest.mark.parametrize("method", ["private-qq", "secure-sum"])
def test_same_result_as_in_process(four, method):
    plan = four.plan(method=method)
    released, asked = flower.calibrate(grid_for(four), plan)
    assert not (asked.refused)
    assert not (asked.errors)
    assert not (asked.silent)
    # Asked again in process, every silo returns the answer that it gave before.
    again = federated.aggregate(plan, four.answers(plan))
    assert again == released


def test_failures_travel_as_codes_only(four):
    plan = four.plan(dropouts=2)
    grid = grid_for(four, broken=[1], dead=[3])
    released, asked = flower.calibrate(grid, plan, timeout=0.5, poll=0.05)
    assert asked.refused == {11: "internal"}
    assert asked.silent == [13]
    assert released.answered == ("silo 0", "silo 2")
    assert released.coverage >= 0.9
    assert not any("patient" in str(reply) for reply in grid.log)


def test_refusals_are_sorted_by_code(four):
    stranger = federated.SiloKeys.generate("stranger")
    from confide.federated.plan import FederatedPlan

    plan = FederatedPlan.read(four.plan())[0].sign(stranger)
    asked = flower.ask(grid_for(four), plan, [10, 11, 12, 13], timeout=1)
    assert set(asked.refused.values()) == {"coordinator-unknown"}
    with pytest.raises(federated.Refusal, match="missing"):
        flower.calibrate(grid_for(four), plan, timeout=1)


def test_waiting_for_nodes_ends(four):
    assert flower.wait_for_nodes(grid_for(four), 4) == [10, 11, 12, 13]
    assert len(flower.wait_for_nodes(grid_for(four), 9, timeout=0.1, poll=0.05)) == 4
