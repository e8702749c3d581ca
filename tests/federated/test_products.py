"""What is asked times how it travels: a release is signed by the coordinator's keys, whatever carries the messages."""

import json
from functools import partial

import numpy as np
import pytest

from confide import federated
from confide.candidates import Candidates
from confide.federated import nvflare
from confide.federated.remote import Round, SiloSetup, released, serve
from confide.releases import load_release
from tests.federated.helpers import Federation
from tests.federated.test_nvflare import python as python  # a fixture
from tests.federated.test_nvflare import simulate, sites

NAMES = ("young", "old")


def plan_of(made, asked):
    """A signed plan, of one threshold or several."""
    options = {"candidates": Candidates.unit(41), "method": "private-qq"}
    if asked == "one":
        return made.plan(**options)
    if asked == "levels":
        return federated.plan_levels(made.silos, [0.2, 0.1], 4.0, **options).sign(made.coordinator)
    by = {"groups": "group", "classes": "class"}[asked]
    silos, options = [keys.public() for keys in made.keys], {"candidates": Candidates.unit(41), "n_typical": 80}
    return federated.plan_groups(silos, NAMES, 0.1, 8.0, by=by, **options).sign(made.coordinator)


def groups_of(scores):
    return np.resize(np.array(NAMES), len(scores))


@pytest.fixture
def three(tmp_path):
    rng = np.random.default_rng(0)
    return Federation(tmp_path, [rng.random(n) for n in (200, 160, 180)])


def in_process(made, plan, asked, keys):
    groups = [groups_of(scores) if asked in ("groups", "classes") else None for scores in made.scores]
    answers = [made.answer(i, plan, groups=groups[i]) for i in range(len(made.keys))]
    return federated.aggregate(plan, answers, keys=keys)


def over_files(made, plan, asked, keys):
    """What an engine does, but for the engine: requests and replies are JSON texts."""
    found = Round()
    for i in range(len(made.keys)):
        setup = SiloSetup(
            made.scores[i], made.keys[i], made.policy, made.ledgers[i], partial(groups_of, made.scores[i])
        )
        request = json.loads(json.dumps({"plan": plan}))
        found.take(i, json.loads(json.dumps(serve(request, lambda own=setup: own, SILENT))))
    return released(plan, found, keys)


def over_flower(made, plan, asked, keys):
    pytest.importorskip("flwr", reason="needs the extra 'flower': pip install 'confide[flower]'")
    from flwr.clientapp import ClientApp

    from confide.federated import flower
    from tests.federated.in_process_grid import InProcessGrid

    def setup(context):
        i = int(context.node_config["silo"])
        return flower.SiloSetup(
            made.scores[i], made.keys[i], made.policy, made.ledgers[i], partial(groups_of, made.scores[i])
        )

    app = ClientApp()
    flower.register(app, setup)
    grid = InProcessGrid(app, {10 + i: {"silo": i} for i in range(len(made.keys))})
    return flower.calibrate(grid, plan, keys=keys, timeout=5, poll=0.01)[0]


class Silent:
    """A log that fails a test which it is written to."""

    def exception(self, text, *values):
        raise AssertionError(text)

    warning = exception


SILENT = Silent()


@pytest.mark.some(2)
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("asked", ["one", "levels", "groups", "classes"])
@pytest.mark.parametrize("carried", [in_process, over_files, over_flower])
def test_a_release_is_signed_by_the_keys_that_are_given(three, carried, asked, signed):
    plan = plan_of(three, asked)
    found = carried(three, plan, asked, three.coordinator if signed else None)
    assert (found.signature is not None) is signed
    assert federated.verify(type(found).from_json(found.to_json()), three.coordinator.public()).holds is signed
    if signed:
        assert len(found.sent) == 3
        said = federated.verify(found).found
        assert said[0] == "signed with the key that signed the plan"
        assert said[1] == "the threshold was made again from 3 signed answers"


@pytest.mark.parametrize("asked", ["one", "levels", "groups", "classes"])
def test_a_job_holds_every_kind_of_plan(three, tmp_path, asked):
    plan = plan_of(three, asked)
    folder = nvflare.write_job(tmp_path / "job", plan)
    assert (folder / "app" / "config" / nvflare.PLAN).read_text() == plan


def test_a_job_of_another_file_says_what_it_is(three, tmp_path):
    with pytest.raises(federated.Refusal, match="the message is a silo's public file, not a federated plan"):
        nvflare.write_job(tmp_path / "job", three.silos[0].to_json())
    assert not (tmp_path / "job").exists()


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["levels", "groups"])
def test_a_job_of_several_thresholds_is_run_and_its_release_signed(python, tmp_path, asked):
    made = sites(tmp_path, (200, 160, 180))
    for i, scores in enumerate(made.scores):
        np.save(tmp_path / "sites" / f"site-{i}" / "groups.npy", groups_of(scores))
    printed, run = simulate(python, tmp_path, plan_of(made, asked))
    assert (run / "released.json").exists(), printed
    found = load_release(run / "released.json")
    assert federated.verify(found, made.coordinator.public()).holds
    assert len(found.sent) == 3
