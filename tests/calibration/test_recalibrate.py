"""Renewal of a release: the same request with new records, around the earlier threshold, with the usual guarantee."""

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import confide
from confide.candidates import Candidates, Spread
from confide.core import (
    PreparedRelease,
    Release,
    Request,
    Terms,
    is_warm,
    load_release,
    make_plan,
    miss_bound_for_reused_records,
    parts_of,
    predecessors_of,
    prepare_thresholds,
)
from confide.core.expected import answer_among
from confide.tables import ScoreColumn, recalibrate_table
from tests.builders import slow
from tests.exact import histograms, mechanism_law
from tests.exact_tests import assert_covers
from tests.kept import RELEASES, names, path_of
from tests.refused import refused

pytestmark = pytest.mark.filterwarnings("ignore::confide.CoverageWarning")  # +inf is drawn now and then

N = 600


def month(k, n=N):
    """The scores of one month."""
    return np.random.default_rng(k).beta(2, 5, n)


WARD = np.arange(N) % 2
WIDTH = np.tile([-1.0, 1.0], (N, 1))
P = np.random.default_rng(9).random((N, 4))
TRUTH = np.random.default_rng(8).random(P.shape) < P
FEW = Candidates.unit(20)
SHORTFALL = np.clip(month(1)[:, None] - FEW.edges, 0, 1)
FINE = confide.Candidates.unit(300)


def one(**options):
    return confide.calibrate(month(1), options.pop("alpha", 0.1), score=options.pop("score", "lac"), **options)


def levels(**options):
    return confide.calibrate_levels(month(1), [0.3, 0.1], score="lac", **options)


def groups(**options):
    return confide.calibrate_groups(month(1), WARD, [0, 1], 0.2, score="lac", **options)


def sides(**options):
    return confide.calibrate_sides(WIDTH, month(1) * 4 - 2, (0.1, 0.2), **options)


KINDS = {
    "one threshold": (one, {"epsilon": 1.0}),
    "public n": (one, {"epsilon": 0.7, "neighbors": "replace_one", "alpha": "1/3"}),
    "zCDP": (one, {"rho": 0.125}),
    "a training-conditional promise": (one, {"epsilon": 2.0, "delta": 0.1}),
    "several records per person": (one, {"epsilon": 3.864, "records_per_person": 3, "n_min": 200, "n_typical": 800}),
    "residuals with a unit": (one, {"epsilon": 1.0, "score": "absolute_residual", "unit": 5.0}),
    "a list that suits no plan": (one, {"epsilon": 1.0, "score": "absolute_residual", "candidates": FINE}),
    "pps": (one, {"epsilon": 5.0, "neighbors": "replace_one", "mechanism": "pps"}),
    "pps, n secret": (one, {"epsilon": 5.0, "mechanism": "pps", "n_min": 200}),
    "pps-laplace": (one, {"epsilon": 9.0, "neighbors": "replace_one", "mechanism": "pps-laplace"}),
    "noisy-histogram": (one, {"epsilon": 2.0, "mechanism": "noisy-histogram"}),
    "opendp-quantile": (one, {"epsilon": 2.0, "mechanism": "opendp-quantile"}),
    "none": (one, {"mechanism": "none"}),
    "levels": (levels, {"epsilon": 1.5, "neighbors": "replace_one"}),
    "levels with shares": (levels, {"epsilon": 2.0, "shares": ["1/4", "3/4"], "neighbors": "replace_one"}),
    "levels that hold together": (levels, {"epsilon": 4.0, "delta": "1/5", "neighbors": "replace_one"}),
    "groups": (groups, {"epsilon": 1.5}),
    "groups that a record can change": (groups, {"epsilon": 2.5, "neighbors": "replace_one"}),
    "groups with zCDP": (groups, {"rho": 0.2}),
    "two sides": (sides, {"epsilon": 1.5, "neighbors": "replace_one"}),
    "two sides with shares": (sides, {"epsilon": 2.0, "share_low": "0.3"}),
}
NEW_OPTIONS = {"several records per person": {"n_typical": 800}}


@cache
def first_of(kind):
    """The first release of a kind, and the requests of its thresholds."""
    made, options = KINDS[kind]
    asked = []
    settle = PreparedRelease.release

    def noted(self, *given, **more):
        asked.extend(one.terms for one in self.thresholds.values())
        return settle(self, *given, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PreparedRelease, "release", noted)
        return made(**options), asked


def renewed(first, **options):
    """The release renewed with records of another month."""
    if isinstance(first, confide.SidesCalibration):
        return confide.recalibrate(first, WIDTH, targets=month(2) * 4 - 2, **options)
    records = {"groups": WARD} if isinstance(first, confide.GroupCalibration) else {}
    return confide.recalibrate(first, month(2), **records, **options)


# --- the same request


@pytest.mark.parametrize("kind", slow(KINDS, everyday=["public n", "levels with shares"]))
def test_a_cold_start_repeats_the_request(kind):
    first, asked = first_of(kind)
    prepared = prepare_thresholds(Request(renews=first, cold=True, **NEW_OPTIONS.get(kind, {})), N)
    assert [one.terms for one in prepared.thresholds.values()] == asked


@pytest.mark.parametrize("kind", slow(KINDS, everyday=["public n"]))
def test_a_renewal_has_the_same_kind_and_lists_its_predecessor(kind):
    first, _ = first_of(kind)
    second = renewed(first, **NEW_OPTIONS.get(kind, {}))
    assert type(second) is type(first)
    before, after = parts_of(first), parts_of(second)
    assert list(after) == list(before)
    for old, new in zip(before.values(), after.values(), strict=True):
        assert (new.alpha, new.score, new.classes) == (old.alpha, old.score, old.classes)
        assert (new.guarantee.delta, new.guarantee.n_min) == (old.guarantee.delta, old.guarantee.n_min)
        assert new.privacy.epsilon == pytest.approx(old.privacy.epsilon, rel=1e-12)
        said = new.predecessors[0]
        assert (said.checksum, said.threshold, said.epsilon) == (first.checksum, old.threshold, first.privacy.epsilon)
        if "around" in new.recipe:
            assert (new.recipe["around"], new.recipe["hedged"]) == (old.threshold, True)
    warm = [is_warm(part) for part in after.values()]
    finite = [math.isfinite(part.threshold) and part.recipe["kind"] == "spread" for part in before.values()]
    assert warm == finite
    assert Release.from_json(second.to_json()) == second


@pytest.mark.slow
def test_weights_for_a_known_shift():
    """The population is that of the release; the class or the weight of each record must be given again."""
    shift, labels = {"a": 1, "b": 2}, np.array(["a", "b"])[WARD]
    first = one(epsilon=2.0, class_weights=shift, labels=labels)
    second = confide.recalibrate(first, month(2), labels=labels)
    assert (second.population, second.recipe["around"]) == (first.population, first.threshold)
    assert Release.from_json(second.to_json()) == second
    with refused(confide.InputError, "labels"):
        confide.recalibrate(first, month(2))
    table = pa.table({"s": month(2), "class": labels, "w": np.ones(N)})
    again = recalibrate_table(first, table, ScoreColumn("s"), by="class")
    assert again.population == first.population
    with refused(confide.InputError, "weights"):
        recalibrate_table(first, table, ScoreColumn("s"), by="class", weights="w")
    asked = prepare_thresholds(Request(renews=first, cold=True)).thresholds[None].terms
    partial = Terms.partial(0.1, 2.0, first.population, listed=True)
    assert asked == partial.with_candidates(asked.candidates, None)


def test_losses_and_false_negatives():
    public = {"neighbors": "replace_one"}
    rates = confide.calibrate_false_negatives(P, TRUTH, 0.2, 2.0, **public)
    again = confide.recalibrate(rates, P, truth=TRUTH)
    assert (again.loss, again.risk, again.calibration.recipe["around"]) == (rates.loss, rates.risk, rates.threshold)
    assert again.calibration.recipe["of"] == "probability"
    short = confide.calibrate_losses(SHORTFALL, FEW, 0.2, 2.0, loss="shortfall", **public)
    other = confide.recalibrate(short, SHORTFALL, u=np.linspace(0, 0.99, N))
    assert (other.bound, other.calibration.recipe) == (short.bound, short.calibration.recipe)
    for found in (again, other):
        assert Release.from_json(found.to_json()) == found


@pytest.mark.slow
@pytest.mark.parametrize("name", names(*RELEASES))
def test_kept_releases_can_be_renewed(name):
    first = load_release(path_of(name))
    listed = next(iter(parts_of(first).values())).recipe["kind"] in ("of", "from_reference")
    own = {"candidates": FEW} if listed else {}
    spent = first.privacy.epsilon
    request = Request(renews=first, **own, **({"epsilon": 1.0} if spent == 0 else {}))
    assert prepare_thresholds(request, 1000).thresholds.keys() == request.parts.keys()


@pytest.mark.slow
def test_arguments_that_must_be_given_again():
    own = one(epsilon=1.0, candidates=Candidates.of([0.2, 0.5, 0.9]), neighbors="replace_one")
    with refused(confide.InputError, "candidates"):
        confide.recalibrate(own, month(2))
    assert confide.recalibrate(own, month(2), candidates=Candidates.of([0.2, 0.5, 0.9])).candidates == 4
    empty = one(epsilon=0.01, neighbors="replace_one")
    assert empty.mechanism is None
    with refused(confide.InputError, "epsilon"):
        confide.recalibrate(empty, month(2))
    assert confide.recalibrate(empty, month(2), epsilon=1.0).epsilon == 1.0
    first, _ = first_of("levels with shares")
    assert [part.epsilon for part in renewed(first, epsilon=1.0).parts.values()] == [0.25, 0.75]


@pytest.mark.parametrize(
    ("kind", "options", "error", "argument"),
    [
        ("groups", {}, confide.InputError, "groups"),
        ("two sides", {}, confide.InputError, "targets"),
        ("public n", {"u": WARD}, confide.InputError, "u"),
        ("public n", {"partition": "ward"}, confide.InputError, "partition"),
        ("public n", {"cold": 1}, confide.InputTypeError, "cold"),
        ("public n", {"candidates": Spread("probability", around=0.5)}, confide.InputError, "candidates"),
        *slow(
            [
                ("public n", {"groups": WARD}, confide.InputError, "groups"),
                ("public n", {"alpha": 0.2}, confide.InputTypeError, "alpha"),
                ("public n", {"candidates": [0.5]}, confide.InputTypeError, "candidates"),
            ]
        ),
    ],
)
def test_arguments_that_exclude_a_renewal(kind, options, error, argument):
    with refused(error, argument):
        confide.recalibrate(first_of(kind)[0], month(2), **options)


def test_only_releases_are_renewed_and_scores_are_the_same():
    with refused(confide.InputTypeError, "previous"):
        confide.recalibrate(load_release(path_of("federated")), month(2))
    with refused(confide.InputTypeError, "previous"):
        confide.recalibrate(0.5, month(2))
    other = confide.margin_score(np.full((N, 2), 0.5), np.zeros(N, int))
    with refused(confide.InputError, "score"):
        confide.recalibrate(first_of("public n")[0], other)


# --- the start of candidates


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "threshold", "around"),
    [
        ("probability", 0.4, 0.4), ("mass", 1.0, None),
        ("probability", 1.0, None), ("residual", 2.0, 2.0), ("residual", 0.0, None), ("margin", -0.5, -0.5),
            ("margin", 1.0, None), ("mass", 0.9, 0.9), ("rank", 3.0, 3.0), ("penalised", 1.02, 1.02),
            ("signed", -1.0, -1.0), ("signed", 0.0, None), ("any", 0.5, None), ("residual", math.inf, None),
    ],
)  # fmt: skip
def test_a_threshold_at_an_end_or_infinite_gives_a_cold_start(kind, threshold, around):
    edges = [] if math.isinf(threshold) else [threshold]
    listed = Candidates(np.array(edges), {"kind": "spread", "of": kind, "size": 2})
    first = confide.calibrate(np.zeros(0), 0.1, 1.0, candidates=listed)
    again = Request(renews=type(first)(**{**vars(first), "threshold": threshold}))
    assert again.parts[None].law == Spread(kind, around=around, hedged=around is not None)


@cache
def excess(kind, law, around):
    """The expected number of surplus covered records, exactly, with 1000 records and epsilon 1."""
    spread = Spread(kind, around=around, hedged=around is not None)
    terms = Terms.of(alpha=0.1, epsilon=1.0, n=1000, neighbors="replace_one", candidates=spread)
    plan = make_plan(terms, 1000)
    below = np.append(law.cdf(terms.candidates.edges), 1.0)
    return float((answer_among(plan.mechanism, below, 1000) @ below - 0.9) * 1001)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "law"), [("probability", stats.beta(1, 4)), ("residual", stats.halfnorm())])
def test_a_warm_start_is_sharper_and_robust_to_a_wrong_guess(kind, law):
    cold = excess(kind, law, None)
    assert excess(kind, law, float(law.ppf(0.9))) < cold
    for level in (0.8, 0.98, 0.995):  # wrong by 80 ranks and more
        assert excess(kind, law, float(law.ppf(level))) < 1.36 * cold
    far = (0.999, 0.01) if kind == "probability" else (60.0, 0.02)
    for guess in far:
        assert excess(kind, law, guess) < 1.8 * cold


# --- the guarantee


@pytest.mark.slow
@pytest.mark.parametrize("shift", [1.0, 0.1])
def test_a_chain_on_new_records_covers(shift):
    """Each release of a chain, at level 1e-6, also if scores are suddenly ten times smaller than before."""
    rng = np.random.default_rng(0)
    public = {"neighbors": "replace_one"}
    release = confide.calibrate(rng.exponential(size=800), 0.1, 1.0, score="absolute_residual", **public)
    for scale in (shift, shift, shift**2):
        release = confide.recalibrate(release, scale * rng.exponential(size=800))
        assert is_warm(release)
        assert_covers(release, 800, scale * rng.exponential(size=20_000) <= release.threshold)


def lists_of(m):
    """All lists over m bins that end with the last."""
    return [(*some, m - 1) for k in range(1, m) for some in itertools.combinations(range(m - 1), k)]


@cache
def planned(n, m):
    request = Terms.of(alpha="0.4", epsilon=2.0, n=n, neighbors="replace_one", candidates=m)
    return make_plan(request, n).mechanism


@cache
def missed_over(candidates, rest, new):
    """The probability that a score in bin `new` is missed by a threshold over these bins from the others."""
    ends = np.cumsum(rest)[list(candidates)]
    law = mechanism_law(planned(sum(rest), len(candidates)), tuple(int(v) for v in np.diff(ends, prepend=0)))
    return float(law[[one < new for one in candidates]].sum())


def missed_after(points, m, reused):
    """The probability of a miss for each earlier threshold and each list; each point in turn is new.

    The others calibrate, and the earlier release was made from `reused` of them.
    """
    table, count = np.zeros((m, len(lists_of(m)))), 0
    for new in range(len(points)):
        others = points[:new] + points[new + 1 :]
        rest = tuple(int(v) for v in np.bincount(others, minlength=m))
        missed = np.array([missed_over(one, rest, points[new]) for one in lists_of(m)])
        for some in itertools.combinations(others, reused):
            earlier = mechanism_law(planned(reused, m), tuple(int(v) for v in np.bincount(some, minlength=m)))
            table, count = table + earlier[:, None] * missed, count + 1
    return table / count


@pytest.mark.parametrize("reused", [4, 3])
def test_reused_records_weaken_the_guarantee(reused):
    """Enumeration: choosing the worst list after each earlier threshold misses more than any fixed list.

    It misses at most the stated share. Such a choice uses more of the earlier threshold than a warm start does.
    """
    grown, most = math.exp(planned(reused, 3).replace_one), 0.0
    for h in histograms(5, 3):
        table = missed_after(tuple(int(v) for v in np.repeat(np.arange(3), h)), 3, reused)
        fixed, chosen = table.sum(axis=0).max(), table.max(axis=1).sum()
        assert fixed <= 0.4 + 1e-12
        assert chosen <= min(grown * fixed, 1 - (1 - fixed) / grown) + 1e-12
        most = max(most, chosen - fixed)
    assert most > 0.01


def test_the_guarantee_for_reused_records():
    first, _ = first_of("public n")
    warm, cold = renewed(first), renewed(first, cold=True)
    assert miss_bound_for_reused_records(cold) == 1 - cold.coverage
    a, grown = 1 - warm.coverage, math.exp(0.7)
    assert miss_bound_for_reused_records(warm) == pytest.approx(min(grown * a, 1 - (1 - a) / grown))
    third = confide.recalibrate(warm, month(3))
    assert miss_bound_for_reused_records(third) == pytest.approx(1 - (1 - a) / math.exp(1.4))


def test_the_earlier_records_matter_only_by_the_threshold():
    """Requests contain public numbers: the earlier release's records have no influence except by its threshold."""
    first, _ = first_of("public n")
    assert predecessors_of(first) == ()
    assert Request(renews=first).lists(N) == Request(renews=Release.from_json(first.to_json())).lists(N)
    assert Fraction(1, 3) == Request(renews=first).parts[None].terms.alpha
