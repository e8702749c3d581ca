"""secure-sum with dropouts: one survivor set, share holders that send one part each, and attacks on this protocol."""

import base64
import dataclasses
import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from confide import federated
from confide.candidates import Candidates
from confide.errors import FormatError, InputError
from confide.federated import Refusal
from confide.federated.envelope import sign_message
from confide.federated.openings import list_digest, shared_channel
from confide.federated.plan import FederatedPlan
from confide.federated.protocols.channels import MOST_OPENERS, least_needed
from confide.federated.sharing import P
from confide.guarantee import chosen_by_last_rule
from tests.federated.helpers import Federation
from tests.refused import refused

SILOS = 7
"""With one colluding silo, 6 of 7 must send parts: one may drop out of both rounds."""


class Opened:
    """One round of seven silos that all answer and send parts, for tests of its messages."""

    def __init__(self, folder):
        rng = np.random.default_rng(0)
        self.team = Federation(folder, [rng.random(100 + 10 * i) for i in range(SILOS)])
        self.plan = self.team.opened_plan()
        self.answers = self.team.answers(self.plan)
        self.texts = asked(self.team, self.plan, self.answers)
        self.parts = [part(self.team, self.plan, self.texts, i) for i in range(SILOS)]


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    return Opened(tmp_path_factory.mktemp("opened"))


def asked(federation, plan, answers):
    return federated.openings(plan, answers, federation.coordinator)


def part(federation, plan, texts, i):
    text = texts[f"silo {i}"]
    return federated.open_part(plan, text, federation.keys[i], federation.policy, federation.ledgers[i])


def changed(text, key, kind, **changes):
    """Change the content of a message and sign it again."""
    return sign_message(kind, {**json.loads(text)["content"], **changes}, key.signing)


def quiet(monkeypatch):
    """Remove the noise, so that sums are exact."""
    monkeypatch.setattr(
        "confide.federated.protocols.secure_sum.noise_share", lambda size, *_: np.zeros(size, dtype=np.int64)
    )


def test_a_missing_silo_does_not_stop_the_round(seven, monkeypatch):
    """One silo drops out and another after its answer; the threshold is that of the plain sum of the six answers."""
    quiet(monkeypatch)
    plan = seven.opened_plan()
    read, _ = FederatedPlan.read(plan)
    there, helping = [0, 1, 2, 3, 5, 6], [0, 2, 3, 4, 5, 6]
    answers = seven.answers(plan, there)
    texts = asked(seven, plan, answers)
    assert set(texts) == {f"silo {i}" for i in range(SILOS)}
    parts = [part(seven, plan, texts, i) for i in helping]  # silo 4 has not answered, and sends a part
    released = federated.aggregate(plan, answers, parts=parts)
    assert released.answered == tuple(f"silo {i}" for i in there)
    scores = np.concatenate([seven.scores[i] for i in there])
    counts = np.diff(
        np.searchsorted(np.sort(scores), read.candidates.edges, side="right"), prepend=0, append=len(scores)
    )
    target = read.protocol.target_of(read, there)
    assert released.threshold == read.candidates.values[chosen_by_last_rule(counts, len(scores) - target)]
    assert (released.coverage, released.guarantee.n, released.epsilon) == (0.9, len(scores), 2.0)
    assert [ledger.spent for ledger in seven.ledgers] == [2.0, 2.0, 2.0, 2.0, 0.0, 2.0, 2.0]
    with refused(Refusal, "late"):
        seven.answer(4, plan)
    assert seven.ledgers[4].spent == 0
    assert federated.FederatedRelease.from_json(released.to_json()) == released
    with refused(InputError, "delta"):
        released.coverage_failure()


def test_it_costs_nothing_to_help_when_everything_is_spent(tmp_path):
    poor = Federation.uniform(tmp_path, *[100] * 5, budget=2.0)
    plan = poor.opened_plan()
    answers = poor.answers(plan)
    texts = asked(poor, plan, answers)
    parts = [part(poor, plan, texts, i) for i in range(4)]
    assert federated.aggregate(plan, answers, parts=parts).epsilon == 2.0
    assert [ledger.spent for ledger in poor.ledgers] == [2.0] * 5


def total_law(protocol, silos, reach):
    """The law of the noise in one count of this many silos, on -reach..reach, by scipy's negative binomials."""
    one = stats.nbinom.pmf(np.arange(900), silos / protocol.honest, -np.expm1(-1 / protocol.scale))
    law = np.convolve(one, one[::-1])
    return law[899 - reach : 900 + reach]


def cost_of(protocol, silos):
    """E[X | X > 0] of that noise."""
    above = total_law(protocol, silos, 899)[900:]
    return np.arange(1, 900) @ above / above.sum()


def test_the_certificate_is_that_of_the_list(seven):
    """n, target rank and noise follow from the survivor set; the target is the least for the requested level."""
    read, _ = FederatedPlan.read(seven.opened_plan(epsilon=0.5))
    assert read.protocol.honest == 5  # of at least 6 silos, one may collude
    for who in ([0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6], list(range(7))):
        n = sum(len(seven.scores[i]) for i in who)
        covered = (read.protocol.target_of(read, who) - 1 - cost_of(read.protocol, len(who))) / n  # Theorem F7
        assert 0.9 <= covered < 0.9 + 1 / n
        assert read.certify(who) == (0, read.protocol.guarantee(read, 0.9, who))
    with refused(Refusal, "missing"):
        read.certify([0, 1, 2, 3, 4])
    assert {count: promise.infinite for count, promise in read.promises().items()} == {7: "never", 6: "never"}


def test_more_shares_of_noise_cost_more(seven):
    """So the shortest list with the noise of all silos is the hardest."""
    protocol = FederatedPlan.read(seven.opened_plan())[0].protocol
    costs = [protocol.cost(silos) for silos in range(5, 30)]
    assert costs == pytest.approx([cost_of(protocol, silos) for silos in range(5, 30)], rel=1e-9)
    assert (np.diff(costs) > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("who", [(0, 1, 2, 3, 4), (0, 1, 2, 3), (1, 2, 3, 4)])
def test_coverage_of_every_list_by_enumeration(who):
    """Exact coverage for silos of one record each, which may differ, over all noise.

    The new record comes from each silo in proportion to its size. Within a silo the record and the new record are
    exchangeable. The test takes the worst of all pairs of bins.
    """
    silos = [federated.SiloKeys.generate(f"s{i}").public(1) for i in range(5)]
    few = {"method": "secure-sum", "dropouts": 1, "colluding": 1, "candidates": Candidates.unit(3)}
    plan = federated.plan(silos, 0.6, 8.0, **few)
    bins, size, reach, values = plan.candidates.size, len(who), 5, plan.candidates.values
    law = total_law(plan.protocol, size, reach)
    covers = np.zeros((bins,) * (size + 1))  # records' bins by silo, then the new record's bin
    for records in itertools.product(range(bins), repeat=size):
        if list(records) == sorted(records):
            counts, tail = np.bincount(records, minlength=bins), np.zeros(bins)
            for noise in itertools.product(range(-reach, reach + 1), repeat=bins - 1):
                chosen = plan.protocol.read_off(plan, who, counts + np.array([0, *noise]), 0)
                tail[: values.searchsorted(chosen) + 1] += np.prod([law[reach + x] for x in noise])
            for order in set(itertools.permutations(records)):
                covers[order] = tail
    low, high = np.array(list(itertools.combinations_with_replacement(range(bins), 2))).T
    covered = 0.0
    for j in range(size):
        swapped = np.moveaxis(covers, j, 0)  # silo j first, the new record's bin last
        both = (swapped[low, ..., high] + swapped[high, ..., low]) / 2
        for axis in range(1, size):
            both = (both.take(low, axis) + both.take(high, axis)) / 2
        covered = covered + np.moveaxis(both, 0, j) / size
    promised = (plan.protocol.target_of(plan, who) - 1 - cost_of(plan.protocol, size)) / size
    assert plan.certify(who)[1].coverage == 0.4
    assert 0.4 <= promised <= covered.min() + 1e-9 < promised + 2 / size


def test_promises_hold_for_the_smallest_silos():
    """No plan exists if the smallest survivor set has too few records for a finite threshold."""

    def made(largest, size=5):
        silos = [federated.SiloKeys.generate(f"s{i}").public(size if i else largest) for i in range(7)]
        few = {"method": "secure-sum", "dropouts": 1, "colluding": 1, "candidates": Candidates.unit(21)}
        return federated.plan(silos, 0.1, 2.0, **few)

    with refused(InputError, "silos"):
        made(10_000, size=4)  # 24 records without the largest silo; 0.1 n - 1 must be the cost, 1.64 ranks
    for largest, infinite in ((50, {7: "never", 6: "perhaps"}), (12, {7: "always", 6: "always"})):
        plan = made(largest)
        assert {count: promise.infinite for count, promise in plan.promises().items()} == {7: "never", 6: "never"}
        higher = dataclasses.replace(plan, alpha=Fraction(1, 20))
        promises = higher.promises()
        assert {count: promise.infinite for count, promise in promises.items()} == infinite
        assert [promise.coverage for promise in promises.values()] == [0.95 if largest == 50 else 1.0] * 2
        smallest = sorted(range(7), key=lambda i: higher.silos[i].size)[:6]
        assert higher.certify(smallest)[1].coverage == 1.0
        assert higher.protocol.read_off(higher, smallest, np.zeros(21, dtype=np.int64), 0) == math.inf


def test_share_holders_are_the_largest_silos_and_at_most_64():
    sizes = [30 + (7 * i) % 80 for i in range(70)]
    silos = [federated.SiloKeys.generate(f"s{i}").public(size) for i, size in enumerate(sizes)]
    made = federated.plan(silos, 0.2, 4.0, method="secure-sum", dropouts=10, candidates=Candidates.unit(11))
    openers = made.channel.openers
    assert len(openers) == MOST_OPENERS
    assert min(sizes[i] for i in openers) >= max(sizes[i] for i in range(70) if i not in openers)
    assert (made.channel.colluding, made.channel.needed) == (21, least_needed(64, 21))
    with refused(InputError, "candidates"):
        federated.plan(silos, 0.2, 4.0, method="secure-sum", dropouts=1, candidates=Candidates.unit(1025))


def test_up_to_four_silos_every_silo_is_needed(seven):
    few = {"method": "secure-sum", "dropouts": 1, "candidates": Candidates.unit(21)}
    for m in (2, 3, 4):
        with refused(InputError, "dropouts"):
            federated.plan(seven.silos[:m], 0.1, 2.0, **few)
    assert federated.plan(seven.silos[:5], 0.1, 2.0, **few).channel.needed == 4
    with refused(InputError, "dropouts"):
        federated.plan(seven.silos, 0.1, 2.0, **few | {"dropouts": 2})


@pytest.mark.parametrize(
    "change",
    [{"needed": 5}, {"needed": 8}, {"needed": 0}, {"openers": [0, 1, 2]}, {"openers": [1, 0, 2, 3, 4, 5, 6]},
     {"openers": [0, 0, 1, 2, 3, 4, 5]}, {"openers": []}, {"openers": [0, 1, 2, 3, 4, 5, 7]}, {"colluding": 5},
     {"dropouts": 2}, {"dropouts": 0}, {"scale": 0.5}, {"scale": 1e6}, {"missing": "arbitrary"}, {"targets": ["5"]},
     {"openers": [True, 1, 2, 3, 4, 5, 6]}],
)  # fmt: skip
def test_a_plan_that_does_not_protect_is_malformed(seven, change):
    """These plans are refused before a charge: too few parts, no tolerated colluding silos, too little noise."""
    text = changed(seven.opened_plan(), seven.coordinator, "plan", **change)
    with refused(Refusal, "malformed"):
        seven.answer(0, text)
    assert seven.ledgers[0].spent == 0


def test_a_plan_is_read_from_its_fields(seven):
    read, _ = FederatedPlan.read(seven.opened_plan())
    assert FederatedPlan.from_fields(read.fields()) == read


@pytest.mark.slow
def test_a_share_holder_refuses_by_name(seven):
    plan = seven.opened_plan()
    answers = seven.answers(plan)
    texts, boss = asked(seven, plan, answers), seven.coordinator
    text = texts["silo 0"]
    content = json.loads(text)["content"]
    counted, shares = content["counted"], content["shares"]

    def opening(key=boss, **changes):
        return {"silo 0": changed(text, key, "opening", **changes)}

    stranger = federated.SiloKeys.generate("stranger")
    exchanged = [shares[0], shares[2], shares[1], *shares[3:]]
    other_plan = FederatedPlan.read(seven.opened_plan())[0]
    with refused(Refusal, "coordinator-unknown"):
        part(seven, plan, opening(stranger), 0)
    for code, wrong in [
        ("foreign", {"plan": other_plan.digest}),
        ("foreign", {"session": other_plan.session}),
        ("foreign", {"to": "silo 1"}),
        ("foreign", {"counted": [*counted[:-1], ["west", counted[-1][1]]]}),
        ("foreign", {"counted": [[counted[0][0], counted[1][1]], *counted[1:]]}),
        ("malformed", {"counted": counted[::-1]}),
        ("malformed", {"counted": [counted[0], *counted[:-1]]}),
        ("malformed", {"counted": [[*pair, 1] for pair in counted]}),
        ("malformed", {"counted": [[name, key.upper()] for name, key in counted]}),
        ("malformed", {"shares": shares[:-1]}),
        ("malformed", {"shares": [share[:-4] for share in shares]}),
        ("malformed", {"shares": [1] * SILOS}),
        ("malformed", {"surplus": 1}),
        ("too-few", {"counted": counted[:5], "shares": shares[:5]}),
        ("unreadable", {"shares": exchanged}),
        ("unreadable", {"counted": [*counted[:1], [counted[1][0], counted[2][1]], *counted[2:]]}),
        ("unreadable", {"counted": [*counted[:1], [counted[1][0], "0" * 64], *counted[2:]]}),
        ("unreadable", {"shares": [shares[0], "!" + shares[1][1:], *shares[2:]]}),
        ("unreadable", {"shares": json.loads(texts["silo 1"])["content"]["shares"]}),
    ]:
        with refused(Refusal, code):
            part(seven, plan, opening(**wrong), 0)
    with refused(Refusal, "unreadable") as caught:
        part(seven, plan, opening(shares=exchanged), 0)
    assert caught.value.silo == "silo 1"
    assert not seven.ledgers[0].has_opened_list(FederatedPlan.read(plan)[0])  # nothing was written
    other = dataclasses.replace(seven.policy, coordinator="00" * 32)
    with refused(Refusal, "coordinator-unknown"):
        federated.open_part(plan, text, seven.keys[0], other, seven.ledgers[0])
    with refused(Refusal, "not-invited"):
        federated.open_part(plan, text, stranger, seven.policy, seven.ledgers[0])
    with refused(InputError, "plan"):
        federated.open_part(seven.plan(), text, seven.keys[0], seven.policy, seven.ledgers[0])
    part(seven, plan, texts, 0)


def test_only_share_holders_open(seven):
    read, _ = FederatedPlan.read(seven.opened_plan())
    channel = dataclasses.replace(read.channel, openers=tuple(range(1, 7)), needed=5)
    plan = dataclasses.replace(read, channel=channel).sign(seven.coordinator)
    texts = asked(seven, plan, seven.answers(plan))
    assert "silo 0" not in texts
    with refused(Refusal, "not-invited"):
        part(seven, plan, {"silo 0": texts["silo 1"]}, 0)
    federated.aggregate(plan, seven.answers(plan), parts=[part(seven, plan, texts, i) for i in range(1, 6)])


def test_a_part_of_another_list_is_left_out_by_name(seven):
    plan = seven.opened_plan()
    answers = seven.answers(plan)
    full, short = asked(seven, plan, answers), asked(seven, plan, answers[:-1])
    parts = [part(seven, plan, short if i == 3 else full, i) for i in range(SILOS)]
    with refused(Refusal, "foreign"):
        federated.aggregate(plan, answers, parts=parts)
    released = federated.aggregate(plan, answers, parts=parts, drop_refused=True)
    assert (len(released.answered), released.refused) == (7, (("silo 3", "foreign"),))


@pytest.mark.slow
def test_a_byzantine_share_holder_is_detected_with_one_part_more_and_named_with_two(tmp_path):
    eight = Federation.uniform(tmp_path, *[100] * 8)
    plan = eight.opened_plan()  # 6 of 8 must help
    assert FederatedPlan.read(plan)[0].channel.needed == 6
    answers = eight.answers(plan)
    parts = [part(eight, plan, asked(eight, plan, answers), i) for i in range(8)]

    def lie(by):
        total = np.frombuffer(base64.b64decode(json.loads(parts[4])["content"]["sum"]), "<u8").copy()
        total[7] = (int(total[7]) + by) % P
        packed = base64.b64encode(total.astype("<u8").tobytes()).decode()
        return [*parts[:4], changed(parts[4], eight.keys[4], "part", sum=packed), *parts[5:]]

    lied = lie(1)
    with refused(Refusal, "inconsistent"):
        federated.aggregate(plan, answers, parts=lied)
    released = federated.aggregate(plan, answers, parts=lied, drop_refused=True)
    assert released.refused == (("silo 4", "inconsistent"),)
    assert released.threshold == federated.aggregate(plan, answers, parts=parts).threshold
    assert len(released.opened.parts) == 7
    with refused(Refusal, "inconsistent"):
        federated.aggregate(plan, answers, parts=lied[:7], drop_refused=True)
    # With exactly the needed parts only the sum can reveal a false part: small errors pass, large ones do not.
    assert len(federated.aggregate(plan, answers, parts=lied[:6]).answered) == 8
    with refused(Refusal, "implausible"):
        federated.aggregate(plan, answers, parts=lie(1000)[:6])


def test_a_byzantine_dealer_is_named_by_the_share_holders_who_cannot_read(seven):
    plan = seven.opened_plan()
    answers = seven.answers(plan)
    content = json.loads(answers[2])["content"]
    spoiled = [*content["shares"]]
    spoiled[0] = base64.b64encode(bytes(len(base64.b64decode(spoiled[0])))).decode()
    answers[2] = changed(answers[2], seven.keys[2], "answer", shares=spoiled)
    texts = asked(seven, plan, answers)
    with refused(Refusal, "unreadable") as caught:
        part(seven, plan, texts, 0)
    assert caught.value.silo == "silo 2"
    parts = [part(seven, plan, texts, i) for i in range(1, SILOS)]  # the others can read their shares, and are enough
    assert len(federated.aggregate(plan, answers, parts=parts).answered) == 7


def test_a_restored_ledger_deals_anew_and_one_of_the_answers_is_counted(seven, tmp_path):
    """Each mask is used once: the second answer has fresh keys, and a survivor set names one of the two answers."""
    plan = seven.opened_plan()
    answers = seven.answers(plan)
    seven.ledgers[2] = federated.SiloLedger(tmp_path / "restored.db")
    second = seven.answer(2, plan)
    one, other = (json.loads(text)["content"] for text in (answers[2], second))
    assert one["ephemeral"] != other["ephemeral"]
    assert not set(one["shares"]) & set(other["shares"])
    texts = asked(seven, plan, answers)
    with refused(Refusal, "foreign"):
        part(seven, plan, texts, 2)  # its ledger stores the second answer
    parts = [part(seven, plan, texts, i) for i in (0, 1, 3, 4, 5, 6)]
    assert len(federated.aggregate(plan, answers, parts=parts).answered) == 7
    with refused(Refusal, "foreign"):
        federated.aggregate(plan, [*answers[:2], second, *answers[3:]], parts=parts)
    with refused(Refusal, "duplicate"):
        asked(seven, plan, [*answers, second])


@pytest.mark.slow
def test_too_few_of_anything_opens_nothing(opened):
    team, plan, answers, parts = opened.team, opened.plan, opened.answers, opened.parts
    with refused(Refusal, "missing"):
        asked(team, plan, answers[:5])
    with refused(Refusal, "missing"):
        federated.aggregate(plan, answers, parts=parts[:5])
    with refused(Refusal, "missing"):
        federated.aggregate(plan, answers)
    with refused(Refusal, "missing"):
        federated.aggregate(plan, answers[1:], parts=parts)
    with refused(InputError, "keys"):
        federated.openings(plan, answers, team.keys[0])
    with refused(InputError, "plan"):
        federated.aggregate(private := team.plan(), team.answers(private), parts=parts)


def test_the_coordinator_refuses_parts_by_name(opened):
    team, plan, answers, parts = opened.team, opened.plan, opened.answers, opened.parts
    one, key = parts[0], team.keys[0]
    other_plan = FederatedPlan.read(team.opened_plan())[0]
    high = base64.b64encode(np.full(21, P, dtype="<u8").tobytes()).decode()
    short = base64.b64encode(bytes(8 * 20)).decode()
    for code, wrong in [
        ("foreign", changed(one, key, "part", plan=other_plan.digest)),
        ("foreign", changed(one, key, "part", session=other_plan.session)),
        ("foreign", changed(one, team.keys[1], "part")),
        ("foreign", changed(one, key, "part", silo="west")),
        ("foreign", changed(one, key, "part", counted="0" * 64)),
        ("foreign", changed(one, key, "part", places=list(range(6)))),
        ("malformed", changed(one, key, "part", sum=high)),
        ("malformed", changed(one, key, "part", sum=short)),
        ("malformed", changed(one, key, "part", sum="%")),
        ("malformed", changed(one, key, "part", places=[7])),
        ("malformed", changed(one, key, "part", places=[True])),
        ("malformed", changed(one, key, "part", surplus=1)),
        ("malformed", answers[0]),
        ("altered", one.replace('"places"', '"pIaces"')),
    ]:
        with refused(Refusal, code):
            federated.aggregate(plan, answers, parts=[wrong, *parts[1:]])
        dropped = federated.aggregate(plan, answers, parts=[wrong, *parts[1:]], drop_refused=True)
        assert (len(dropped.answered), [found for _, found in dropped.refused]) == (7, [code])
    for wrong in ({"plan": "x" * 64}, {"session": "x" * 32}):
        with refused(Refusal, "malformed"):
            federated.part_head(changed(one, key, "part", **wrong))
    assert federated.part_head(one).session == FederatedPlan.read(plan)[0].session
    contradicting = [changed(one, key, "part", counted="1" * 64), *parts]
    with refused(Refusal, "duplicate"):
        federated.aggregate(plan, answers, parts=contradicting)
    assert ("silo 0", "duplicate") in federated.aggregate(plan, answers, parts=contradicting, drop_refused=True).refused


def test_a_release_says_what_its_parts_say(opened):
    plan, texts = opened.plan, opened.texts
    released = federated.aggregate(plan, opened.answers, parts=opened.parts)
    text = released.to_json()
    assert json.loads(text)["opened"]["counted"] == json.loads(texts["silo 0"])["content"]["counted"]

    def edited(change):
        from confide.federated.envelope import digest

        document = json.loads(text)
        document.pop("sha256")
        change(document)
        return json.dumps({**document, "sha256": digest(document)})

    federated.FederatedRelease.from_json(edited(lambda document: None))
    values = FederatedPlan.read(plan)[0].candidates.values
    other = next(float(v) for v in values if v != released.threshold and math.isfinite(v))
    for change in (
        lambda d: d.update(threshold=other),
        lambda d: d.update(threshold="+inf"),
        lambda d: d.pop("opened"),
        lambda d: d.update(opened={"counted": [], "parts": []}),
        lambda d: d["opened"].update(parts=d["opened"]["parts"][:5]),
        lambda d: d["opened"].update(parts=[*d["opened"]["parts"], d["opened"]["parts"][0]]),
        lambda d: d["opened"].update(parts=["part"] * 7),
        lambda d: d["opened"]["parts"][0]["content"].update(silo="silo 1"),
        lambda d: d["opened"]["counted"][0].__setitem__(1, "0" * 64),
        lambda d: d["opened"].update(counted=d["opened"]["counted"][1:]),
        lambda d: d.update(answered=d["answered"][1:]),
    ):
        with pytest.raises(FormatError):
            federated.FederatedRelease.from_json(edited(change))


def test_shares_of_noise_are_those_of_the_shortest_list(seven, monkeypatch):
    noise = []

    def share(size, scale, honest):
        noise.append((size, scale, honest))
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr("confide.federated.protocols.secure_sum.noise_share", share)
    seven.answer(0, seven.opened_plan(colluding=1))
    seven.answer(0, seven.plan(method="secure-sum", colluding=2))
    assert noise == [(21, 1.0, 5), (51, 1.0, 5)]  # at least 6 silos with 1 colluding; 7 with 2
    with refused(Refusal, "not-allowed"):  # the policy requires at least one
        seven.answer(1, seven.opened_plan(colluding=0))


def test_lists_of_two_plans_are_never_one(seven):
    counted = (("silo 0", "0" * 64),)
    one, other = (FederatedPlan.read(seven.opened_plan())[0] for _ in range(2))
    assert list_digest(one, counted) != list_digest(other, counted)
    assert shared_channel(one).least(one) == 6
