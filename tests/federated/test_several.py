"""Several thresholds from one message of each silo, and a silo's own guarantee by its answer or by its records."""

import copy
import itertools
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from scipy import stats

import confide
from confide import federated
from confide.candidates import Candidates
from confide.cli import main
from confide.core import Release
from confide.errors import FormatError, InputError, InputTypeError
from confide.federated import Refusal
from confide.federated.messages import sign
from confide.federated.own_share import _certified
from confide.federated.reply_laws import any_size_reply
from confide.mechanisms import slopes_for
from confide.scores import interval_score
from tests.exact import added, histograms, mechanism_law, replaced, worst_log_ratio
from tests.federated.exact_coverage import choice_laws, coverage, populations, reply_law
from tests.federated.helpers import Federation, altered, content_of, kth_reply
from tests.refused import refused

LEVELS = ["0.2", "0.1"]


RECORDS = [np.random.default_rng(i).random(160) for i in range(5)]


@pytest.fixture(scope="module")
def federation(tmp_path_factory):
    return Federation(tmp_path_factory.mktemp("several"), RECORDS)


@pytest.fixture
def five(federation, tmp_path):
    """Plans are made once."""
    return federation.renewed(tmp_path)


@lru_cache
def made(federation, epsilon=4.0, **options):
    options = {"method": "private-qq", "candidates": Candidates.unit(51), **options}
    return federated.plan(federation.silos, LEVELS, epsilon, **options)


def test_levels_of_a_sum(five):
    """One sum serves all levels of noisy counts."""
    text = made(five, 2.0, method="secure-sum", candidates=Candidates.unit(21)).sign(five.coordinator)
    answers = five.answers(text)
    released = federated.aggregate(text, answers, keys=five.coordinator)
    assert released["0.1"].threshold >= released["0.2"].threshold
    assert released == copy.deepcopy(released)
    changed = content_of(released.to_json()) | {"refused": [["silo 0", "because"]]}  # a code that is none
    with pytest.raises(FormatError):
        Release.from_json(sign("release", changed, five.coordinator.signing))
    alone = released.at("0.1")
    assert (alone.threshold, alone.levels) == (released["0.1"].threshold, released.levels[1:])
    with refused(InputError, "calibration"):
        alone.to_json()
    with refused(Refusal, "missing"):
        federated.aggregate(text, answers[1:])


@pytest.mark.slow
def test_levels_of_a_sum_are_covered_as_one_threshold_is(five):
    """The guarantee of each level is that of a plan of this level alone, with the same noise."""
    several = made(five, 2.0, method="secure-sum", candidates=Candidates.unit(21))
    assert len(several.parts) == len(LEVELS)
    for level, part in several.parts.items():
        alone = federated.plan(five.silos, level, 2.0, method="secure-sum", candidates=Candidates.unit(21))
        assert part == alone.first
        assert part.promises() == alone.promises()


@pytest.mark.long
def test_loss_of_a_message_about_two_levels_by_enumeration():
    """For all pairs of replies over all adjacent histograms the privacy loss is at most the ledger's charge."""
    silos = [federated.SiloKeys.generate(f"s{i}").public(7) for i in range(4)]
    several = federated.plan(
        silos, ["0.7", "0.6"], 3.0, shares=["1/3", "2/3"], method="private-qq", candidates=Candidates.unit(4)
    )
    mechanisms = [plan.mechanism(0) for plan in several.parts.values()]

    def joint(h):
        return np.outer(*(mechanism_law(mechanism, h) for mechanism in mechanisms)).ravel()

    worst = worst_log_ratio(joint, histograms(7, 4), replaced)
    single = max(plan.loss(0) for plan in several.parts.values())
    assert single < worst <= several.loss(0) + 1e-9  # a single level would understate the loss
    assert several.loss(0) <= 3.0


@pytest.mark.slow
def test_every_level_is_covered_as_promised_after_nesting():
    """Compute the exact joint distribution of both thresholds, over all histograms of two silos and all replies."""
    bins, sizes = 3, (6, 5)
    silos = [federated.SiloKeys.generate(f"s{i}").public(n) for i, n in enumerate(sizes)]
    several = federated.plan(silos, ["0.6", "0.5"], 6.0, method="private-qq", candidates=Candidates.unit(bins))
    plans = list(several.parts.values())
    certified = [plan.certify() for plan in plans]
    assert all(k <= 2 for k, _ in certified)
    pairs = list(itertools.product(range(bins), repeat=2))
    laws = []  # distribution of the threshold's index for every pair of histograms, one table per level
    for plan, (k, _) in zip(plans, certified, strict=True):
        a, b = (choice_laws(plan.mechanism(i), n, bins) for i, n in enumerate(sizes))
        table = np.zeros((len(a), len(b), bins))
        for x, y in pairs:
            table[:, :, sorted((x, y))[k - 1]] += np.outer(a[:, x], b[:, y])
        laws.append(table)
    for population in populations(bins, 0.5):
        weights = [stats.multinomial.pmf(histograms(n, bins), n, population) for n in sizes]
        covers = np.cumsum(population)
        joint = np.einsum("a,b,abi,abj->ij", *weights, *laws)  # replies to the levels share only the records
        nested = np.array([[covers[max(i, j)] for j in range(bins)] for i in range(bins)])
        assert joint.sum() == pytest.approx(1)
        assert (joint.sum(axis=1) @ covers) >= certified[0][1].coverage - 1e-9
        assert (joint * nested).sum() >= max((joint.sum(axis=0) @ covers), certified[1][1].coverage) - 1e-9


SIDES = ("cqr_low", "cqr_high")
ENDS = np.tile([-1.0, 1.0], (200, 1))
TARGETS = [np.random.default_rng(i).normal(size=200) for i in range(5)]
BOTH_SIDES = [{side: interval_score(ENDS, truth, side) for side in SIDES} for truth in TARGETS]
FEW = Candidates.of(np.linspace(-2, 2, 41))


@pytest.fixture
def two_sided(tmp_path):
    made = Federation(tmp_path, [records["cqr_low"] for records in BOTH_SIDES], budget=99.0)
    made.scores = BOTH_SIDES
    return made


@pytest.mark.slow
def test_loss_of_a_message_about_both_sides_by_enumeration():
    """Test all pairs of replies over all histograms of pairs of scores that differ in one record."""
    silos = [federated.SiloKeys.generate(f"s{i}").public(3) for i in range(4)]
    several = federated.plan(silos, 0.9, 6.0, by="side", method="private-qq", candidates=Candidates.of([0.0, 1.0]))
    low, high = (part.mechanism(0) for part in several.single_plans)

    def joint(pairs):
        cells = np.reshape(pairs, (3, 3))
        return np.outer(mechanism_law(low, cells.sum(axis=1)), mechanism_law(high, cells.sum(axis=0))).ravel()

    worst = worst_log_ratio(joint, histograms(3, 9), replaced)
    single = max(
        worst_log_ratio(lambda h, one=one: mechanism_law(one, h), histograms(3, 3), replaced) for one in (low, high)
    )
    assert single + 0.5 < worst <= several.loss(0) + 1e-9 <= 6.0 + 2e-9  # a single side would understate the loss


def test_what_a_silo_must_give(two_sided):
    text = federated.plan(two_sided.silos, 0.2, 8.0, by="side", candidates=FEW, method="private-qq").sign(
        two_sided.coordinator
    )
    for wrong in (BOTH_SIDES[0]["cqr_low"], {"cqr_low": BOTH_SIDES[0]["cqr_low"]}):
        with refused(InputError, "scores"):
            federated.answer(text, wrong, two_sided.keys[0], two_sided.policy, two_sided.ledgers[0])
    short = {**BOTH_SIDES[0], "cqr_high": BOTH_SIDES[0]["cqr_high"][:-1]}
    half = {side: scores[:100] for side, scores in BOTH_SIDES[0].items()}
    with refused(InputError, "scores"):
        federated.answer(text, short, two_sided.keys[0], two_sided.policy, two_sided.ledgers[0])
    with refused(Refusal, "size-differs"):
        federated.answer(text, half, two_sided.keys[0], two_sided.policy, two_sided.ledgers[0])
    assert two_sided.ledgers[0].spent == 0.0
    with refused(InputError, "score"):
        federated.plan(two_sided.silos, 0.2, 8.0, by="side", score="cqr")


NAMES = ("women", "men", "unknown")
RNG = np.random.default_rng(5)
GROUP_RECORDS = [RNG.random(400) for _ in range(3)]
GROUPS = [np.array(["women"] * 200 + ["men"] * 200)[RNG.permutation(400)] for _ in range(3)]


@pytest.fixture(scope="module")
def of_groups(tmp_path_factory):
    return Federation(tmp_path_factory.mktemp("groups"), GROUP_RECORDS, secret=True, budget=50.0)


@pytest.fixture
def three(of_groups, tmp_path):
    """Plans are made once."""
    return of_groups.renewed(tmp_path)


@lru_cache
def by_group(of_groups, epsilon=20.0, names=NAMES, **options):
    options = {"candidates": Candidates.unit(21), "n_typical": 150, **options}
    return federated.plan(of_groups.silos, 0.2, epsilon, by="group", names=names, **options)


def group_answers(of_groups, text, who=(0, 1, 2)):
    return [of_groups.answer(i, text, groups=GROUPS[i]) for i in who]


@pytest.mark.long
def test_an_empty_group_gets_infinity(three):
    """A reply without records is finite with probability at most 1e-6, by its exact distribution."""
    several = by_group(three)
    plan = several.first
    k, _ = plan.certify()
    finite = 1 - mechanism_law(plan.mechanism(0), (0,) * 21)[-1]
    assert 3 * finite ** (4 - k) < 1e-6 or k == 3
    assert 3 * finite**k < 1e-6
    text = several.sign(three.coordinator)
    with pytest.warns(confide.CoverageWarning, match="the threshold of group unknown is \\+inf"):
        released = federated.aggregate(text, group_answers(three, text))
    assert released.infinite == ("unknown",)


def test_what_groups_cannot_be_planned_with(three):
    public = [keys.public(300) for keys in three.keys]
    with refused(InputError, "silos"):
        federated.plan(public, 0.2, 4.0, by="group", names=NAMES)
    with refused(InputError, "method"):
        federated.plan(three.silos, 0.2, 4.0, by="group", names=NAMES, method="secure-sum")
    with refused(InputError, "names"):
        federated.plan(three.silos, 0.2, 4.0, by="group", names=["a", "a"])


@pytest.mark.long
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_loss_of_a_message_about_two_groups_by_enumeration(neighbors):
    """Test every pair of histograms, with every record added, replaced in its group, or moved to the other one."""
    silos = [federated.SiloKeys.generate(f"s{i}").public() for i in range(4)]
    several = federated.plan(
        silos, 0.5, 3.0, by="group", names=["a", "b"], neighbors=neighbors, candidates=Candidates.unit(3), n_typical=6
    )
    mechanism = several.first.mechanism(0)
    logs = {h: np.log(mechanism_law(mechanism, h)) for n in range(6) for h in histograms(n, 3)}
    small = [h for h in logs if sum(h) < 5]
    one = max(np.abs(logs[h] - logs[g]).max() for h in small for g in added(h))
    pairs = list(itertools.product(small[:: 1 if len(small) < 40 else 2], repeat=2))
    moved = 0.0
    for kept, left in pairs:  # a record leaves group b (a histogram of `added(left)`) and enters group a
        into = max(float((logs[g] - logs[kept]).max()) for g in added(kept))
        out = max(float((logs[left] - logs[g]).max()) for g in added(left))
        moved = max(moved, into + out)
    assert one <= several.first.loss(0) + 1e-9
    if neighbors == "add_remove":
        assert one <= several.loss(0) + 1e-9
        assert several.privacy().replace_one >= moved - 1e-9
    assert one < moved <= several.privacy().replace_one + 1e-9  # a move costs more than adding or removing one record
    if neighbors == "replace_one":
        assert moved <= several.loss(0) + 1e-9
        assert several.loss(0) <= 3.0


@pytest.mark.long
def test_every_group_is_covered_whatever_silos_have_of_it():
    """Compute the exact distribution of a group's threshold for all its sizes in three silos, including 0."""
    bins = 4
    silos = [federated.SiloKeys.generate(f"s{i}").public() for i in range(3)]
    several = federated.plan(
        silos, 0.4, 5.0, by="group", names=["a", "b"], candidates=Candidates.unit(bins), n_typical=8
    )
    plan = several.first
    k, guarantee = plan.certify()
    assert k <= 3
    mechanism = plan.mechanism(0)
    index = np.array([kth_reply(list(replies), k, bins) for replies in np.ndindex(bins, bins, bins)])
    worst = 1.0
    for population in populations(bins, 0.6):
        law = {n: reply_law(mechanism, n, population) for n in (0, 1, 2, 6, 11)}
        for sizes in itertools.combinations_with_replacement(law, 3):
            joint = np.multiply.outer(np.multiply.outer(law[sizes[0]], law[sizes[1]]), law[sizes[2]])
            worst = min(worst, coverage(np.bincount(index, joint.ravel(), minlength=bins), population))
    assert guarantee.coverage - 1e-9 <= worst < 0.95


@pytest.mark.slow
def test_the_reply_without_records_is_part_of_the_certificate(three):
    """At low scores a silo without records replies with a higher probability than the certificate of other silos."""
    mechanism = slopes_for(Fraction(37, 40), Fraction(9, 2), 14, 2, "add_remove", 1.0)
    empty = mechanism.rank_law(0, 50)[2]
    low = np.array([1e-3])
    some, none = (any_size_reply(mechanism, 50, n_min, Fraction(9, 10)) for n_min in (1, 0))
    assert some.below(low)[0] < empty == none.below(low)[0]
    assert 0 < 1 - mechanism_law(mechanism, (0,) * 40)[-1] <= empty
    plan = by_group(three).first
    assert plan.n_min == 0
    assert "for every number of records, also none" in str(plan.certify()[1])


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
    certified = _certified(plan.first.reply_law(2), None)
    others = np.array([0.97, 0.01, 0.01, 0.01])
    replies = list(np.ndindex(bins, bins, bins))
    common = np.array([kth_reply(list(reply), k, bins) for reply in replies])
    larger = np.maximum(common, [reply[2] for reply in replies])
    least, alone = 1.0, 1.0
    for population in populations(bins, certified):
        laws = [reply_law(plan.first.mechanism(i), sizes[i], (others, others, population)[i]) for i in range(3)]
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
    law = plan.first.reply_law(0)
    level = _certified(law, 0.1)
    assert law.below(np.array([level]))[0] <= 0.1 < law.below(np.array([level + 1e-6]))[0]
    assert 0.4 < level < 0.9
