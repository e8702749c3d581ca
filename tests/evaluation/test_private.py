"""Private evaluations: what one record can change, what the intervals hold, and that nothing else leaves."""

import itertools
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import confide
from confide.errors import InputError
from confide.evaluation import Evaluation, Part, size_parts
from confide.evaluation.mean_sizes import mean_of_shares
from confide.evaluation.partitions import width_parts
from confide.evaluation.query import arrangement
from tests.draws import recording, without_noise
from tests.exact_tests import LEVEL
from tests.refused import refused

UNIT = confide.Candidates.unit(50)
SCORES = np.random.default_rng(0).random(3000) ** 2
"""What releases are made of here: their thresholds do not matter, but that they lie inside."""

# Records of classification, as (probabilities, class): sets of one, two and no classes, covered and missed.
ROWS = [([0.9, 0.1, 0], 0), ([0.9, 0.1, 0], 1), ([0.5, 0.5, 0], 1), ([0.34, 0.33, 0.33], 0)]


@pytest.fixture(scope="module")
def released():
    """A threshold of 0.6 or so: classes with a probability of at least 0.4 are in the set."""
    return confide.calibrate(np.linspace(0.55, 0.65, 4000), 0.1, 50.0, candidates=UNIT, score="lac", classes=3)


@pytest.fixture(scope="module")
def levels():
    return confide.calibrate(SCORES, [0.3, 0.1], 50.0, candidates=UNIT, score="lac")


@pytest.fixture(scope="module")
def sides():
    rng = np.random.default_rng(1)
    return confide.calibrate_sides(np.tile([-1.0, 1.0], (4000, 1)), rng.normal(size=4000), 0.1, 50.0)


@pytest.fixture
def exact(draw_with):
    """Counts as they are, without noise: (counts, scale of the noise) of every draw."""
    drawn = []
    draw_with(noisy_counts=recording(drawn, without_noise))
    return drawn


def rows(records):
    p, y, ward = zip(*((*ROWS[kind], ward) for kind, ward in records), strict=True) if records else ((), (), ())
    return {"probabilities": np.array(p).reshape(-1, 3), "labels": np.array(y, dtype=int)}, np.array(ward, dtype=str)


def ask_sets(released, records, **options):
    arrays, ward = rows(records)
    if "group_names" in options:
        options["groups"] = ward
    return confide.evaluate(released, **arrays, **options)


RECORDS = list(itertools.product(range(len(ROWS)), ("a", "x")))
SMALL = [list(table) for size in range(3) for table in itertools.combinations_with_replacement(RECORDS, size)]


def neighbours(relation):
    """All pairs of tables of at most two records that differ by one."""
    if relation == "add_remove":
        return [(table, [*table, one]) for table in SMALL if len(table) < 2 for one in RECORDS]
    return [([*table, one], [*table, other]) for table in SMALL[:9] for one in RECORDS for other in RECORDS]


def test_several_records_of_one_person_give_warning(released):
    with pytest.warns(confide.CoverageWarning):
        confide.evaluate(released, scores=[0.5], epsilon=1.0, records_per_person=2)


TOTAL, CLASSES, ALL = {"parts": ()}, {"parts": ("class",)}, {"parts": ("class", "size"), "group_names": ["a"]}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:records_per_person is 3:confide.CoverageWarning")
@pytest.mark.parametrize(
    ("options", "relation", "people"),
    [
        (TOTAL, "replace_one", 3),
        (CLASSES, "add_remove", 3),
        *((own, relation, 1) for own in (TOTAL, CLASSES, ALL) for relation in ("add_remove", "replace_one")),
        (TOTAL, "add_remove", 3),
        (CLASSES, "replace_one", 3),
        (ALL, "add_remove", 3),
        (ALL, "replace_one", 3),
    ],
)
def test_loss_equals_statement_by_enumeration(released, exact, options, relation, people):
    """The whole object follows from public numbers and the counts, whose noise is product discrete Laplace."""
    largest, asked = 0.0, {"epsilon": 0.75, "neighbors": relation, "records_per_person": people, **options}
    known = {}

    def answered(table):
        key = str(sorted(table))
        if key not in known:
            exact.clear()
            found = ask_sets(released, table, **asked)
            known[key] = found.query, found.confidence, [(np.array(counts), scale) for counts, scale in exact]
        return known[key]

    for one, other in neighbours(relation):
        (query, confidence, drawn), (question_2, confidence_2, drawn_2) = answered(one), answered(other)
        assert (query, confidence, dict(query.statements)) == (question_2, confidence_2, question_2.statements)
        loss = 0.0
        for (counts, scale), (counts_2, scale_2) in zip(drawn, drawn_2, strict=True):
            assert scale == scale_2
            loss += int(np.abs(counts - counts_2).sum()) / Fraction(scale)
        largest = max(largest, people * loss)
    assert 0.75 * (1 - 1e-12) <= largest <= 0.75
    assert query.privacy.epsilon == 0.75


@pytest.mark.long
def test_levels_and_sides_use_one_cell_per_record(levels, sides, exact):
    found = confide.evaluate(levels, scores=[0.01, 0.6, 0.999], epsilon=2.0)
    assert found.counts == ((1, 1, 1),)
    assert [one.coverage.covered for one in found.findings.values()] == [1, 2]
    assert found[0.1].coverage.missed == 1
    q = np.tile([-1.0, 1.0], (4, 1))
    found = confide.evaluate(sides, predictions=q, targets=[0, -9, 9, 9], epsilon=2.0, width_bins=[1, 2])
    assert [(name, one.coverage.covered) for name, one in found.findings.items()] == [
        ("", 1), ("lower end", 3), ("upper end", 2)
    ]  # fmt: skip
    assert [scale for _, scale in exact] == [0.5, 0.5]
    assert sum(part.covered + part.missed for part in found.widths) == 4


@pytest.mark.slow(unless=("all missed", "none", "one"))
@pytest.mark.parametrize(
    ("count", "missed"), [(0, 0), (1, 0), (1, 1), (200, 200)], ids=["none", "one", "one missed", "all missed"]
)
def test_extreme_tables_give_results(released, exact, count, missed):
    found = ask_sets(released, [(1, "a")] * missed + [(0, "a")] * (count - missed), epsilon=1.0, group_names=["a"])
    assert Evaluation.from_json(found.to_json()) == found
    assert "confide" in found.versions
    assert found.groups[1].low < 0.1, "no record is in the part of other groups: nothing can be known"
    assert found.groups[1].high > 0.9
    if missed == 200:
        assert found.coverage.high < 0.5
    for one in [found.coverage, *found.classes, *found.sizes, *found.groups]:
        assert 0 <= one.low <= one.high <= 1
    assert str(found).count("\n") > 8


def test_tables_are_arranged_by_public_numbers():
    for sizes in [(), (5,), (31,), (3, 4), (10, 4), (3, 3, 3), (10, 7, 40), (1000, 12)]:
        tables = arrangement(sizes)
        assert {place for table in tables for place in table} == set(range(len(sizes)))
        assert min(np.prod([sizes[place] for place in table]) for table in tables) <= 30
    assert size_parts(10**6).most == 10**6
    for bins in ([], [0], [2, 1], [1, np.inf], [np.nan]):
        with refused(InputError, "width_bins"):
            width_parts(bins)


def test_mean_lies_within_bounds_for_all_shares():
    """Bounds by enumeration over a grid of shares within the intervals."""
    partition = size_parts(3)
    shares = [Part(str(k), 1, 3, 0.25, low, high) for k, (low, high) in enumerate(
        [(0.0, 0.2), (0.1, 0.5), (0.2, 0.6), (0.1, 0.3)]
    )]  # fmt: skip
    _, bounds = mean_of_shares(partition, shares)
    grid = [np.linspace(one.low, one.high, 11) for one in shares[:3]]
    values = [
        b + 2 * c + 3 * (1 - a - b - c)
        for a, b, c in itertools.product(*grid)
        if 0.1 - 1e-12 <= 1 - a - b - c <= 0.3 + 1e-12
    ]
    assert bounds == pytest.approx((min(values), max(values)))


REFUSED = [
    ({"parts": ("klass",)}, "parts"), ({"parts": "class"}, "parts"), ({"n": 3}, "n"), ({"epsilon": 0}, "epsilon"),
    ({"epsilon": 1e-6, "records_per_person": 10}, "epsilon"),
    ({"group_names": ["a", "(other)"]}, "group_names"), ({"group_names": ["a", "a"]}, "group_names"),
    ({"again": True}, "again"), ({"width_bins": [1]}, "width_bins"), ({"dataset": "patients"}, "ledger"),
    ({"confidence": 1 - 1e-9}, "confidence"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "argument"), REFUSED)
def test_errors_do_not_reveal_number_of_records(released, options, argument):
    said = set()
    for count in (0, 1, 7919):
        with refused(InputError, argument) as caught:
            ask_sets(released, [(0, "a")] * count, **{"epsilon": 1.0, **options})
        said.add(str(caught.value))
    assert len(said) == 1


def test_evaluation_contains_no_exact_count(released, draw_with):
    """With noise that cannot be small, nothing of the object's parts, text or pickle has the exact number."""
    draw_with(noisy_counts=lambda counts, scale: np.zeros(len(counts), np.int64))
    small, large = (ask_sets(released, [(0, "a")] * n, epsilon=1.0, group_names=["a"]) for n in (0, 7919))
    assert small.to_json() == large.to_json()
    assert pickle.dumps(small) == pickle.dumps(large)
    assert vars(small).keys() <= {"query", "confidence", "counts", "sums", "versions", "release"}


def test_public_n_is_counted_and_checked(released):
    found = ask_sets(released, [(0, "a")] * 40, epsilon=1.0, neighbors="replace_one", parts=())
    assert (found.query.n, len(found.counts[0]), found.query.noise) == (40, 1, 1.0)
    assert str(found.privacy) == "1-differential privacy for replacing one record"
    assert ask_sets(released, [(0, "a")] * 40, epsilon=1.0, neighbors="replace_one").query.noise == 0.5
    for count, n in ((40, 41), (0, None)):
        with refused(InputError, "n"):
            ask_sets(released, [(0, "a")] * count, epsilon=1.0, neighbors="replace_one", n=n)


@pytest.mark.slow
def test_risk_control_is_evaluated_as_share(exact):
    rng = np.random.default_rng(0)
    p = rng.random((2000, 4))
    risk = confide.calibrate_false_negatives(p, rng.random(p.shape) < p, 0.1, 50.0)
    found = confide.evaluate(risk, scores=[0.0] * 90 + [1.0] * 10, epsilon=1.0)
    assert found.query.loss == ("false_negative_rate", 1.0)
    assert "loss 'false_negative_rate'  0.100 (interval 0.04" in str(found)
    assert found.coverage.promised == pytest.approx(1 - risk.risk)
    wards = {"groups": ["a"] * 100, "group_names": ["a"], "epsilon": 1.0}
    parts = confide.evaluate(risk, scores=[0.0] * 90 + [1.0] * 10, **wards)
    assert [(one.name, one.covered, one.missed) for one in parts.groups] == [("a", 90, 10), ("(other)", 0, 0)]


@pytest.mark.slow
def test_parts_with_separate_thresholds_are_evaluated_separately(exact):
    ward = np.tile(["a", "b"], 1500)
    groups = confide.calibrate(SCORES, 0.2, 50.0, groups=ward, names=["a", "b"], score="lac")
    found = confide.evaluate(groups, scores=[0.0, 0.99, 0.0], groups=["a", "b", "b"], epsilon=1.0)
    assert [(one.name, one.covered, one.missed) for one in found.groups] == [("a", 1, 0), ("b", 1, 1)]
    for options, argument in (
        ({"groups": ["a"], "group_names": ["a"]}, "group_names"),
        ({"groups": ["c"]}, "groups"),
        ({}, "groups"),
        ({"parts": ["class"], "groups": ["a"]}, "parts"),
        ({"labels": [0], "groups": ["a"]}, "probabilities"),
    ):
        with refused(InputError, argument):
            confide.evaluate(groups, scores=[0.0], epsilon=1.0, **options)
    classes = confide.calibrate(SCORES, 0.2, 50.0, groups=ward, names=["a", "b"], by="class", score="lac")
    found = confide.evaluate(classes, scores=[0.0, 0.99], groups=["a", "b"], epsilon=1.0)
    assert [(one.name, one.covered) for one in found.classes] == [("a", 1), ("b", 0), ("(other)", 0)]
    sets = confide.evaluate(classes, probabilities=[[1, 0], [0, 1]], labels=["a", "a"], classes=["a", "b"], epsilon=1.0)
    assert [(one.name, one.covered, one.missed) for one in sets.classes] == [
        ("a", 1, 1),
        ("b", 0, 0),
        ("(other)", 0, 0),
    ]


@pytest.mark.long
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_all_intervals_hold_at_once(released, relation):
    """Shares and coverage by enumeration over the kinds of records; misses of 400 evaluations at 80 % confidence."""
    rng, runs, confidence = np.random.default_rng(), 400, 0.8
    weights = rng.dirichlet(np.ones(len(RECORDS)))
    cells = {}
    for (kind, ward), weight in zip(RECORDS, weights, strict=True):
        p, y = ROWS[kind]
        inside = np.array(p) >= 0.4
        for key in ("", f"class {y}", f"size {inside.sum()}", f"group {'a' if ward == 'a' else '(other)'}"):
            total, held = cells.get(key, (0.0, 0.0))
            cells[key] = total + weight, held + weight * bool(inside[y])
    mean = sum(int(key.split()[1]) * total for key, (total, _) in cells.items() if key.startswith("size"))
    missed = 0
    for _ in range(runs):
        records = [RECORDS[i] for i in rng.choice(len(RECORDS), 120, p=weights)]
        found = ask_sets(
            released, records, epsilon=1.0, group_names=["a"], confidence=confidence, neighbors=relation
        )  # fmt: skip
        stated = [("", found.coverage)]
        for kind, parts in ((table.kind, table) for table in found.tables):
            stated += [(f"{kind} {part.name}", part) for part in parts]
        wrong = [
            key for key, one in stated
            if key in cells and not one.low <= cells[key][1] / cells[key][0] <= one.high
        ]  # fmt: skip
        for share in found.shares:
            if not share.low <= cells.get(f"size {share.name}", (0.0, 0.0))[0] <= share.high:
                wrong.append(share.name)
        if not found.finding.mean_size_bounds[0] <= mean <= found.finding.mean_size_bounds[1]:
            wrong.append("mean")
        missed += bool(wrong)
    assert stats.binom.sf(missed - 1, runs, 1 - confidence) > LEVEL
