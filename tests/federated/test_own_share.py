"""A silo's own guarantee: by its answer in the common round, exactly, and by other records of its own."""

import numpy as np
import pytest

import confide
from confide import federated
from confide.candidates import Candidates
from confide.cli import main
from confide.core import Release
from confide.errors import FormatError, InputTypeError
from confide.federated import Refusal
from confide.federated.own_share import _certified
from tests.federated.exact_coverage import populations, reply_law
from tests.federated.helpers import Federation, altered, content_of, kth_reply
from tests.refused import refused


@pytest.fixture(scope="module")
def round_(tmp_path_factory):
    """Three silos, of which the last has the largest scores, with plan, answers and calibration."""
    rng = np.random.default_rng(2)
    records = [rng.random(150) / 4, rng.random(150) / 4, rng.random(150)]
    three = Federation(tmp_path_factory.mktemp("own"), records, budget=60.0)
    plan = three.plan(0.2, 6.0, method="private-qq")
    answers = three.answers(plan)
    return three, answers, federated.aggregate(plan, answers)


@pytest.mark.long
def test_the_larger_threshold_and_nothing_is_charged(round_):
    three, answers, released = round_
    spent = three.ledgers[2].spent
    assert released[None].k == 1  # the common threshold is the smallest reply
    for i, answer in enumerate(answers):
        own = federated.own_share(released, answer)
        replied = released.plan.candidates.values[content_of(answer)["sent"][0]]
        assert own.threshold == max(released.threshold, float(replied))
        assert own.silo == f"silo {i}"
        assert 0.5 < own.coverage < 1
        assert own.guarantee.n == 150
    assert three.ledgers[2].spent == spent
    assert "for all distributions of the other silos" in str(own)
    assert own.privacy == released.privacy


def test_a_separate_file_is_computed_again(round_, tmp_path):
    _, answers, released = round_
    own = federated.own_share(released, answers[2])
    own.save(tmp_path / "own.json")
    assert Release.load(tmp_path / "own.json") == own
    assert len(confide.predict_set([[0.5, 0.5]], own, score="lac")) == 1
    assert own.conditional_coverage(0.05) > 0
    assert "silo 2" in str(Release.load(tmp_path / "own.json"))
    with pytest.raises(FormatError):
        Release.from_json(own.to_json().replace("silo 2", "silo 1"))
    with refused(Refusal, "altered"):
        federated.own_share(released, altered(answers[2], silo="silo 1"))


def test_the_command_reads_two_files_and_no_records(round_, tmp_path, monkeypatch, capsys):
    _, answers, released = round_
    monkeypatch.chdir(tmp_path)
    released.save("released.json")
    (tmp_path / "answer.json").write_text(answers[2])
    assert main(["federated", "own", "answer.json", "--calibration", "released.json", "--out", "own.json"]) == 0
    assert "new records: those of 'silo 2'" in capsys.readouterr().out
    assert Release.load("own.json") == federated.own_share(released, answers[2])
    assert main(["show", "own.json"]) == 0
    assert "for all distributions of the other silos" in capsys.readouterr().out


@pytest.mark.long
def test_a_silo_calibrates_by_the_request_of_the_plan(round_, tmp_path):
    three, _, _ = round_
    plan = three.plan(0.2, 6.0, score="lac", classes=["a", "b"])
    common = federated.aggregate(plan, three.answers(plan))
    ledger = confide.Ledger(tmp_path / "own.db")
    own = federated.local(common, np.random.default_rng(0).random(600), 1.5, ledger=ledger, dataset="new")
    assert (own.alpha, own.epsilon, own.score, own.classes) == (common.alpha, 1.5, "lac", ("a", "b"))
    assert own.recipe == Candidates.unit(51).recipe
    assert ledger.balance("new").totals.epsilon == 1.5
    assert own.threshold > common.threshold
    assert own.coverage == 0.8
    assert type(own) is confide.Release


def test_a_silo_calibrates_at_one_level_with_other_candidates_and_a_delta(round_):
    three, _, _ = round_
    plan = three.plan([0.4, 0.2], 6.0, score="lac", delta=0.1)
    levels, scores = federated.aggregate(plan, three.answers(plan)), np.random.default_rng(0).random(600)
    with refused(InputTypeError, "release"):
        federated.local(levels, scores, 1.0)
    with refused(InputTypeError, "released"):
        federated.local(confide.calibrate(np.ones(5) / 2, 0.1, 1.0), scores, 1.0)
    common = levels.alone(levels.level_of(0.4))
    own = federated.local(common, scores, 2.0, candidates=Candidates.around(common.threshold))
    assert own.recipe["around"] == common.threshold
    assert (own.coverage, own.guarantee.kind, own.guarantee.delta) == (0.6, "training_conditional", 0.05)  # half of 0.1


@pytest.mark.slow(unless="8.0-0.3")
@pytest.mark.parametrize(("epsilon", "alpha"), [(4.0, 0.4), (8.0, 0.3)])
def test_local_population_is_covered_as_certified_by_enumeration(epsilon, alpha):
    """Enumerate the replies of three non-IID silos. The common threshold alone may undercover the third."""
    bins, sizes = 4, (9, 8, 9)
    silos = [federated.SiloKeys.generate(f"s{i}").public(n) for i, n in enumerate(sizes)]
    plan = federated.plan(silos, alpha, epsilon, method="private-qq", candidates=Candidates.unit(bins))
    k, _ = plan.certify()
    assert k <= 3
    certified = _certified(plan.protocol.reply_law(plan.first, 2), None)
    others = np.array([0.97, 0.01, 0.01, 0.01])
    replies = list(np.ndindex(bins, bins, bins))
    common = np.array([kth_reply(list(reply), k, bins) for reply in replies])
    larger = np.maximum(common, [reply[2] for reply in replies])
    least, alone = 1.0, 1.0
    for population in populations(bins, certified):
        laws = [
            reply_law(plan.protocol.mechanism(plan.first, i), sizes[i], (others, others, population)[i])
            for i in range(3)
        ]
        joint = np.multiply.outer(np.multiply.outer(laws[0], laws[1]), laws[2]).ravel()
        covers = np.cumsum(population)
        least = min(least, float(joint @ covers[larger]))
        alone = min(alone, float(joint @ covers[common]))
    assert certified - 1e-9 <= least < 0.98
    assert 0.4 < certified < 1
    assert k == 3 or alone < certified


def test_with_delta_the_promise_is_given_the_records():
    """The largest coverage that a reply misses with probability at most delta, by its distribution."""
    silos = [federated.SiloKeys.generate(f"s{i}").public(60) for i in range(3)]
    plan = federated.plan(silos, 0.3, 8.0, method="private-qq", delta=0.1, candidates=Candidates.unit(21))
    law = plan.protocol.reply_law(plan.first, 0)
    level = _certified(law, 0.1)
    assert law.below(np.array([level]))[0] <= 0.1 < law.below(np.array([level + 1e-6]))[0]
    assert 0.4 < level < 0.9
