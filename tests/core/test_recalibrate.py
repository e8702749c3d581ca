"""Renewal of a release: the same request with new records, and the checksum of the release that it renews."""

import hashlib
import json
import sys
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.candidates import Candidates, Spread
from confide.core import Release, Request, load_release, parts_of, prepare
from confide.ledger import Ledger
from confide.tables import ScoreColumn, recalibrate_table
from tests.builders import slow
from tests.files import signed
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
    asked = {}
    module = sys.modules["confide.core.release"]
    prepare = module.prepare

    def noted(request, n):
        asked.update(request.terms)
        return prepare(request, n)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "prepare", noted)
        return made(**options), asked


def renewed(first, **options):
    """The release renewed with records of another month."""
    if isinstance(first, confide.SidesCalibration):
        return confide.recalibrate(first, WIDTH, targets=month(2) * 4 - 2, **options)
    records = {"groups": WARD} if isinstance(first, confide.GroupCalibration) else {}
    return confide.recalibrate(first, month(2), **records, **options)


# --- the same request


@pytest.mark.parametrize("kind", slow(KINDS, everyday=["public n", "levels with shares"]))
def test_a_renewal_repeats_the_request(kind):
    first, asked = first_of(kind)
    assert Request(renews=first, **NEW_OPTIONS.get(kind, {})).terms == asked


@pytest.mark.parametrize("kind", slow(KINDS, everyday=["public n"]))
def test_a_renewal_has_the_same_kind_and_states_what_it_renews(kind):
    first, _ = first_of(kind)
    second = renewed(first, **NEW_OPTIONS.get(kind, {}))
    assert type(second) is type(first)
    before, after = parts_of(first), parts_of(second)
    assert list(after) == list(before)
    for old, new in zip(before.values(), after.values(), strict=True):
        assert (new.alpha, new.score, new.classes) == (old.alpha, old.score, old.classes)
        assert (new.guarantee.delta, new.guarantee.n_min) == (old.guarantee.delta, old.guarantee.n_min)
        assert new.privacy.epsilon == pytest.approx(old.privacy.epsilon, rel=1e-12)
        assert (old.renews, new.renews) == (None, hashlib.sha256(first.to_json().encode()).hexdigest())
    assert Release.from_json(second.to_json()) == second


@pytest.mark.slow
def test_weights_for_a_known_shift():
    """The population is that of the release; the class or the weight of each record must be given again."""
    shift, labels = {"a": 1, "b": 2}, np.array(["a", "b"])[WARD]
    first = one(epsilon=2.0, class_weights=shift, labels=labels)
    second = confide.recalibrate(first, month(2), labels=labels)
    assert second.population == first.population
    assert Release.from_json(second.to_json()) == second
    with refused(confide.InputError, "labels"):
        confide.recalibrate(first, month(2))
    table = pa.table({"s": month(2), "class": labels, "w": np.ones(N)})
    again = recalibrate_table(first, table, ScoreColumn("s"), by="class")
    assert again.population == first.population
    with refused(confide.InputError, "weights"):
        recalibrate_table(first, table, ScoreColumn("s"), by="class", weights="w")
    again = Request(alpha=0.1, epsilon=2.0, population=first.population, score=first.score)
    assert Request(renews=first).terms == again.terms


def test_losses_and_false_negatives():
    public = {"neighbors": "replace_one"}
    rates = confide.calibrate_false_negatives(P, TRUTH, 0.2, 2.0, **public)
    again = confide.recalibrate(rates, P, truth=TRUTH)
    assert (again.loss, again.risk, again.calibration.recipe) == (rates.loss, rates.risk, rates.calibration.recipe)
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
    assert prepare(request, 1000).keys() == request.terms.keys()


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


# --- what a renewal depends on


def test_a_renewal_does_not_depend_on_the_earlier_threshold():
    """Releases of other records, also around a guess or +inf, ask the same of new records."""
    public = {"score": "lac", "neighbors": "replace_one", "epsilon": 1.0}
    first, second = (confide.calibrate(month(k), 0.1, **public) for k in (1, 2))
    guess = confide.calibrate(month(3), 0.1, candidates=Candidates.around(0.3), **public)
    endless = confide.Calibration(**{**vars(first), "threshold": float("inf")})
    spread = Request(renews=first).terms[None].spread
    assert spread == Spread("probability")
    assert all(Request(renews=release).terms[None].spread == spread for release in (second, guess, endless))
    sized = [confide.calibrate(month(1, n), 0.1, 1.0, score="lac") for n in (N, 5 * N)]
    assert sized[0].size.design_for != sized[1].size.design_for
    terms = [Request(renews=release).terms[None] for release in sized]
    assert terms[0] == terms[1] == Request(alpha=0.1, epsilon=1.0, score="lac").terms[None]


def test_a_renewal_takes_other_candidates():
    first, _ = first_of("public n")
    again = renewed(first, candidates=Candidates.around(0.4))
    assert again.recipe["around"] == 0.4
    assert renewed(again).recipe == first.recipe


def test_a_ledger_charges_the_renewal_of_another_release(tmp_path):
    account = {"ledger": Ledger(tmp_path / "l.db"), "dataset": "a"}
    first = one(epsilon=1.0, neighbors="replace_one", **account)
    second = confide.recalibrate(first, month(2), **account)
    with pytest.warns(confide.EarlierReleaseWarning):
        assert confide.recalibrate(first, month(2), **account) == second
    assert account["ledger"].account("a").spent().epsilon == 2.0
    confide.recalibrate(second, month(3), **account)
    assert account["ledger"].account("a").spent().epsilon == 3.0


# --- the statement in a file


def altered(release, renews):
    """The release with another statement about what it renews, and a correct checksum."""
    return signed({**json.loads(release.to_json()), "renews": renews})


@pytest.mark.parametrize("renews", ["", "0" * 63, "A" * 64, "g" * 64, ["0" * 64], None, 1, "0" * 64 + "\n"])
def test_other_statements_raise(renews):
    second = renewed(first_of("public n")[0])
    with refused(confide.FormatError, "calibration.renews"):
        Release.from_json(altered(second, renews))
    with refused(confide.InputError, "renews"):
        confide.Calibration(**{**vars(second), "renews": renews or ""})


def test_all_thresholds_of_a_release_renew_the_same():
    second = renewed(first_of("levels")[0])
    content = json.loads(second.to_json())
    part = content["parts"][0]
    part["calibration"] = json.loads(altered(second.first, "0" * 64))
    with refused(confide.FormatError, "release.parts"):
        Release.from_json(signed(content))
    assert "renews" not in json.loads(first_of("public n")[0].to_json())
