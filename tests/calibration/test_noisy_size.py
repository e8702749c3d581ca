"""Releases whose noisy number of records decides the design: every source, ledger, file and kind of release."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.calibration import Request, release
from confide.calibration.release import Counted, Scores
from confide.candidates import Candidates, Spread
from confide.counting import ScoreHistogram
from confide.errors import BudgetError, EarlierReleaseWarning, FormatError, InputError, OtherDataError
from confide.ledger import Limit
from confide.planning import COUNTED_SIZES
from confide.support.shapes import checksum
from confide.tables import Scored, calibrate_table

SCORES = np.random.default_rng(5).random(2000)


def asked(**choices):
    return Request(**{"alpha": 0.1, "epsilon": 1.0, "score": "lac", "n_typical": "noisy"} | choices)


def test_release_states_its_number_and_design_and_costs_epsilon_in_all():
    released = confide.calibrate(SCORES, 0.1, 1.0, score="lac", n_typical="noisy")
    assert abs(released.size.counted - 2000) < 400  # 20 scales: beyond with a chance of 2e-9
    assert released.privacy.epsilon == 1.0
    assert released.mechanism.add_remove <= 0.95
    assert released.coverage == 0.9
    assert "noisy number" in str(released)
    assert confide.Calibration.from_json(released.to_json()) == released


@pytest.mark.parametrize("kind", ["probability", "margin", "mass", "penalised", "rank", "residual", "signed", "any"])
def test_counts_over_all_candidates_are_counts_over_each_list(kind):
    from confide.calibration.request import every_candidate

    law, rng = Spread(kind), np.random.default_rng(3)
    every = every_candidate(law, COUNTED_SIZES)
    for size in (8, 480, 7680):
        listed = Candidates.quantiles(law, size)
        at = rng.choice(listed.edges, 500)
        scores = np.concatenate([at, np.nextafter(at, np.inf), np.nextafter(at, -np.inf), rng.normal(size=100)])
        whole = ScoreHistogram.from_scores(scores, every)
        assert np.array_equal(whole.over(listed).counts, ScoreHistogram.from_scores(scores, listed).counts)


def test_sources_that_are_counted_once_and_twice_are_the_same_request_of_a_ledger(tmp_path):
    """Arrays are counted twice, tables once, over all candidates: one finds the other's release."""
    ledger = confide.Ledger(tmp_path / "budget.db", limit=Limit(1.5))
    account = {"ledger": ledger, "dataset": "patients"}
    first = confide.calibrate(SCORES, 0.1, 1.0, score="lac", n_typical="noisy", **account)
    table = pa.table({"s": SCORES})
    with pytest.warns(EarlierReleaseWarning):
        again = calibrate_table(table, Scored("s", "lac"), 0.1, 1.0, n_typical="noisy", **account)
    assert again == first
    with pytest.raises(OtherDataError):
        confide.calibrate(SCORES[1:], 0.1, 1.0, score="lac", n_typical="noisy", **account)
    with pytest.raises(BudgetError):
        confide.calibrate(SCORES, 0.2, 1.0, score="lac", n_typical="noisy", **account)
    assert ledger.account("patients").spent().epsilon == 1.0


def test_engine_is_asked_twice_for_few_candidates():
    """What is seen first has the fixed list, then the chosen one."""
    seen = []

    class Engine(Scores):
        looking_tells = True

        def see(self, request, candidates):
            seen.append(candidates.size)
            return super().see(request, candidates)

    released = release(Engine({None: SCORES}), asked())
    assert seen == [481, released.candidates]


def test_counts_over_every_candidate_serve_as_a_source():
    request = asked()
    counts = ScoreHistogram.from_scores(SCORES, request.counted_over())
    assert release(Counted({None: counts}), request).size is not None


def test_groups_have_a_number_each():
    names, groups = ["a", "b"], np.where(np.arange(2000) < 1600, "a", "b")
    for neighbors in ("add_remove", "replace_one"):
        released = confide.calibrate_groups(
            SCORES, groups, names, 0.1, 2.0, score="lac", n_typical="noisy", neighbors=neighbors
        )
        assert released["a"].size.design_for > released["b"].size.design_for  # apart by 60 scales at epsilon 1 each
        assert released.privacy.epsilon <= 2.0
        assert type(released).from_json(released.to_json()) == released


def test_zcdp_of_groups_is_that_of_their_numbers_too():
    groups = np.where(np.arange(2000) < 1000, "a", "b")
    for neighbors in ("add_remove", "replace_one"):
        released = confide.calibrate_groups(
            SCORES, groups, ["a", "b"], 0.1, rho=0.5, score="lac", n_typical="noisy", neighbors=neighbors
        )
        parts = sorted(part.privacy.rho for part in released.parts.values())
        assert max(parts) <= released.privacy.rho <= 0.5


@pytest.mark.parametrize("rho", [None, 0.3])
def test_levels_and_sides_have_a_number_each_within_the_budget(rho):
    budget = {"rho": rho} if rho else {"epsilon": 2.0}
    levels = confide.calibrate_levels(SCORES, [0.2, 0.1], score="lac", n_typical="noisy", **budget)
    ends = np.tile([-1.0, 1.0], (2000, 1))
    sides = confide.calibrate_sides(ends, SCORES, 0.1, n_typical="noisy", **budget)
    for released in (levels, sides):
        assert all(part.size is not None for part in released.parts.values())
        assert released.privacy.epsilon <= 2.0 if rho is None else released.privacy.rho <= rho
        assert type(released).from_json(released.to_json()) == released


def test_renewal_is_designed_for_the_earlier_number_at_no_cost():
    first = confide.calibrate(SCORES, 0.1, 1.0, score="lac", n_typical="noisy")
    renewed = confide.recalibrate(first, SCORES[:1500])
    assert renewed.size is None
    assert renewed.privacy.epsilon == 1.0
    anew = confide.recalibrate(first, SCORES[:1500], n_typical="noisy")
    assert anew.size is not None


def test_public_number_and_a_decided_design_need_none():
    assert confide.calibrate(SCORES, 0.1, 1.0, n_typical="noisy", neighbors="replace_one").size is None
    fixed = {"candidates": Candidates.unit(100), "slopes": (9, 11), "rise": 0.0}
    assert confide.calibrate(SCORES, 0.1, 1.0, n_typical="noisy", **fixed).size is None
    assert confide.calibrate(SCORES, 0.1, 1.0, n_typical="noisy", candidates=Candidates.unit(100)).size is not None


def test_no_records_still_get_an_answer():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        released = confide.calibrate([], 0.1, 1.0, score="lac", n_typical="noisy")
    assert released.size.design_for >= 100
    assert released.coverage == 0.9


def altered(released, **changes):
    """The text of a release with another size, and the checksum of that."""
    content = json.loads(released.to_json())
    content["size"] |= changes
    content.pop("sha256")
    return json.dumps({**content, "sha256": checksum(content)})


@pytest.mark.parametrize(
    "changes", [{"design_for": 1800}, {"scale": 19.0}, {"scale": 25.0}, {"counted": 20_000}, {"counted": 1.5}]
)
def test_file_with_another_size_is_refused(changes):
    released = confide.calibrate(SCORES, 0.1, 1.0, score="lac", n_typical="noisy")
    with pytest.raises(FormatError):
        confide.Calibration.from_json(altered(released, **changes))


def test_file_has_schema_3_and_others_keep_theirs():
    noisy = confide.calibrate(SCORES, 0.1, 1.0, score="lac", n_typical="noisy")
    guess = confide.calibrate(SCORES, 0.1, 1.0, score="lac")
    assert json.loads(noisy.to_json())["schema"] == 3
    assert json.loads(guess.to_json())["schema"] == 2
    assert "size" not in json.loads(guess.to_json())


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"shift": 3.0}, "shift"),
        ({"mechanism": "pps"}, "mechanism"),
        ({"epsilon": 1e-5}, "n_typical"),
    ],
)
def test_what_it_does_not_go_with_is_refused(changes, argument):
    with pytest.raises(InputError) as caught:
        asked(**changes)
    assert caught.value.argument == argument


def test_private_number_is_nowhere_in_a_release():
    """Of 2000 records neither the number nor a count stands in the file, if the noisy number is another one."""
    released = confide.calibrate(SCORES, 0.1, 1.0, score="lac", n_typical="noisy")
    if released.size.counted != 2000 and released.size.design_for != 2000:
        assert "2000" not in replace(released, threshold=0.5, candidates=3, recipe={}).to_json()
