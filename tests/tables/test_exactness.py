"""For every source of a table, each double falls into the same bin as in numpy, and the same values raise an error."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide import Candidates, ScoreHistogram
from confide.errors import InputError
from confide.tables import (
    ClassColumns,
    ContributionBound,
    LossColumns,
    ScoreColumn,
    TargetColumns,
    calibrate_table,
    group_histograms,
    score_histogram,
)
from confide.tables.open_table import as_open_table
from tests.builders import slow
from tests.refused import bad_rows, refused
from tests.tables.engines import everyday_on

FAMILIES = {
    "unit": Candidates.unit(200),
    "logit": Candidates.unit(1000, "logit"),
    "geometric": Candidates.spread("residual", 200, unit=3.0),
    "sinh": Candidates.spread("signed", 200),
    "extreme": Candidates.of(
        [-1.7976931348623157e308, -1.0, -2.2250738585072014e-308, -5e-324, 0.0, 5e-324, 1e-310, 0.1, 1 / 3, 1e16, 1e308]
    ),
    "none": Candidates.of([np.inf]),
}
LARGEST = float(np.finfo(np.float64).max)


def adversaries(edges):
    """Each edge, its neighbouring doubles, and all special values."""
    with np.errstate(over="ignore"):
        near = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)])
    bits = np.random.default_rng(0).integers(-(2**63), 2**63, 500).view(np.float64)
    odd = [0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e-310, LARGEST, -LARGEST, np.inf, 0.1, 1 / 3, 2.0**53]
    values = np.concatenate([near, bits, odd])
    return values[~np.isnan(values) & (values > -np.inf)]


@pytest.mark.parametrize("family", slow(FAMILIES, everyday=["extreme"]))
def test_doubles(engine, family):
    candidates = FAMILIES[family]
    values = adversaries(candidates.edges)
    found = score_histogram(engine.table(pa.table({"s": values})), ScoreColumn("s"), candidates)
    assert (found.counts == ScoreHistogram.from_scores(values, candidates).counts).all()


@pytest.mark.slow(unless="sqlite")
def test_each_adversary_in_a_separate_group(engine):
    """Every value in a separate group, so that errors cannot cancel."""
    candidates = FAMILIES["extreme"]
    values = adversaries(candidates.edges)[-60:]
    table = engine.table(pa.table({"s": values, "g": pa.array(range(len(values)), pa.int64())}))
    found = group_histograms(table, ScoreColumn("s"), "g", range(len(values)), candidates)
    assert list(found) == list(range(60))
    for place, value in enumerate(values):
        assert (found[place].counts == ScoreHistogram.from_scores([value], candidates).counts).all()


# --- every way to name the columns of a score

K, N = 4, 1500
NAMES, WARDS = ("ant", "bee", "it's", "dog"), ("a", "b", "c'\"\\", "empty")
RNG = np.random.default_rng(1)
WIDE = RNG.dirichlet(np.full(K, 0.3), N)
SINGLE = RNG.dirichlet(np.full(K, 0.3), N).astype(np.float32)
SINGLE[:100] = np.float32(1 / K)  # ties
SINGLE[100:108] = [[0, 1, 0, 0]] * 4 + [[1e-45, 1, 1e-45, 0]] * 4
LOGITS = (3 * RNG.standard_normal((N, K))).astype(np.float32)
LOGITS[:4] = [[1000, 1000, -1000, 0], [-1e30, 1e30, 0, 0], [88, -88, 88, 0], [5e-324, 0, 0, 0]]
SOFTMAX = np.exp(LOGITS.astype(np.float64) - LOGITS.max(axis=1, keepdims=True))
SOFTMAX /= SOFTMAX.sum(axis=1)[:, None]
YES = np.concatenate([[0.0, 1.0, 0.5, 1e-300, 5e-324, 0.1, 1 / 3], RNG.random(N - 7)])
F = np.sort(RNG.normal(size=(N, 2)), axis=1)
T = RNG.normal(size=N) * RNG.choice([1e-9, 1, 1e9], N)
T[:5] = F[:5, 0]
F32, T32 = F.astype(np.float32), T.astype(np.float32)
Y, PAIR = RNG.integers(0, K, N), RNG.integers(0, 2, N)
WARD, WHO = RNG.choice(WARDS[:3], N), RNG.integers(0, N // 4, N)
FIRST = np.array([np.count_nonzero(WHO[:i] == who) < 2 for i, who in enumerate(WHO)])
EDGES = FAMILIES["logit"].edges.astype(np.float32)
NEAR = np.resize(np.concatenate([EDGES, np.nextafter(EDGES, 2), np.nextafter(EDGES, -2)]), N)
INTEGERS = np.resize([2**53 - 1, 2**53, 2**53 + 1, 2**62 + 1, -(2**63), 2**63 - 1, 0, -1], N)
DIGITS = [f"0.{''.join(RNG.choice(list('0123456789'), 30))}" for _ in range(N)]
DIGITS[:4] = [f"{value:.30f}" for value in (0.1, 1 / 3, 2 / 3, 0.7)]
STEPS = Candidates.of([0.2, 0.4, 0.6, 0.8])
OWN = 1.0 - WIDE[np.arange(N), Y]
LOSSES = 5.0 * (STEPS.edges < OWN[:, None])  # they fall from the bound to 0 at the score


def columns(prefix):
    return tuple(f"{prefix}{k}" for k in range(K))


RECORDS = {
    "id": np.arange(N), "ward": WARD, "who": WHO, "y": Y, "name": np.array(NAMES)[Y],
    "yes": YES, "yes32": YES.astype(np.float32), "pair": np.array(["no", "yes"])[PAIR], "place": PAIR,
    "near": NEAR, "integer": INTEGERS, "decimal": pa.array(list(map(Decimal, DIGITS)), pa.decimal128(38, 30)),
    "lo": F[:, 0], "hi": F[:, 1], "t": T, "lo32": F32[:, 0], "hi32": F32[:, 1], "t32": T32,
    **{name: table[:, k] for prefix, table in (("s", SINGLE), ("w", WIDE), ("z", LOGITS), ("l_", LOSSES))
       for k, name in enumerate(columns(prefix))},
    **{name: (k == Y).astype(np.int64) for k, name in enumerate(columns("t_"))},
    **{f"{prefix}_list": pa.array(list(table)) for prefix, table in (("s", SINGLE), ("w", WIDE), ("z", LOGITS))},
}  # fmt: skip
PEOPLE = ContributionBound("who", 2, ("id",))


def cases(single):
    """The columns, the scores of numpy, and the candidates, which are every seventh score if there are none."""
    p = SINGLE if single else SINGLE.astype(np.float64)
    raps = "raps_deterministic(penalty=0.01,k_reg=2)"
    one_column = np.column_stack([1 - YES, YES])
    yes32 = YES.astype(np.float32).astype(np.float64)
    return {
        "LAC": (ClassColumns(columns("s"), "y"), confide.lac_score(p, Y)),
        "LAC in double precision": (ClassColumns(columns("w"), "y"), confide.lac_score(WIDE, Y)),
        "LAC by name": (ClassColumns(columns("s"), "name", NAMES), confide.lac_score(p, Y)),
        "LAC of lists": (ClassColumns("w_list", "y", range(K)), confide.lac_score(WIDE, Y)),
        "LAC of lists by name": (ClassColumns("s_list", "name", NAMES), confide.lac_score(p, Y)),
        "LAC of one column": (ClassColumns("yes", "pair", ("no", "yes")), confide.lac_score(one_column, PAIR)),
        "LAC of one column by place": (
            ClassColumns("yes32", "place", ("no", "yes"), label_positions=True),
            confide.lac_score(np.column_stack([1 - yes32, yes32]), PAIR),
        ),
        "APS": (ClassColumns("s_list", "y", range(K), "aps_deterministic"), confide.aps_score(p, Y, randomised=False)),
        "RAPS": (ClassColumns(columns("s"), "y", score=raps), confide.class_score(p, Y, raps)),
        "margin": (ClassColumns("s_list", "name", NAMES, "margin"), confide.class_score(p, Y, "margin")),
        "margin of columns": (ClassColumns(columns("s"), "name", NAMES, "margin"), confide.class_score(p, Y, "margin")),
        **{
            f"{score} of logits, {pattern}": (
                ClassColumns(pattern, "name", NAMES, score, logits=True), confide.class_score(SOFTMAX, Y, score),
            )
            for score in ("lac", "aps_deterministic") for pattern in ("z_list", columns("z"))
        },
        "residuals": (TargetColumns("lo", "t"), confide.absolute_residual_score(F[:, 0], T)),
        "single residuals": (TargetColumns("lo32", "t32"), confide.absolute_residual_score(F32[:, 0], T32)),
        "cqr": (TargetColumns(("lo", "hi"), "t", "cqr"), confide.cqr_score(F, T)),
        **{
            score: (TargetColumns(("lo32", "hi32"), "t32", score), confide.interval_score(F32, T32, score))
            for score in ("cqr_low", "cqr_high")
        },
        "single precision": (ScoreColumn("near"), NEAR, FAMILIES["logit"]),
        "integers": (
            ScoreColumn("integer"), INTEGERS,
            Candidates.of([-(2.0**63), -0.5, 2.0**53 - 1, 2.0**53, 2.0**53 + 2, 2.0**62, 2.0**63]),
        ),
        "decimals": (ScoreColumn("decimal"), np.array(list(map(float, DIGITS)))),
        "false negatives of one label": (LossColumns(probabilities=columns("w"), truth=columns("t_")), OWN),
        "losses of zero and one": (LossColumns(columns("l_"), "cost", 5.0, candidates=STEPS), OWN, STEPS),
    }  # fmt: skip


@pytest.mark.long(unless="postgres")
def test_counts_are_those_of_arrays(engine):
    """In all, in groups in the same pass, and of the first two records of each person; each is rounded once."""
    lacking = [*("decimal",) * (not engine.decimals), *("s_list", "w_list", "z_list") * (not engine.lists)]
    table = engine.table(pa.table({name: values for name, values in RECORDS.items() if name not in lacking}))
    for case, (what, scores, *given) in cases(engine.single).items():
        if any(name in repr(what) for name in lacking):
            continue
        scores = np.asarray(scores, np.float64)
        (candidates,) = given or [Candidates.of(np.unique(scores)[::7])]
        found = score_histogram(table, what, candidates)
        assert (found.counts == ScoreHistogram.from_scores(scores, candidates).counts).all(), case
        people = PEOPLE if engine.ranks else None
        grouped = group_histograms(table, what, "ward", WARDS, candidates, people=people)
        assert list(grouped) == list(WARDS)
        for ward in WARDS:
            members = scores[(ward == WARD) & (FIRST if people else True)]
            assert (grouped[ward].counts == ScoreHistogram.from_scores(members, candidates).counts).all(), (case, ward)
    whole, drawn = (  # randomised scores lie below the others
        score_histogram(table, ClassColumns(columns("s"), "y", score=score)).counts
        for score in ("aps_deterministic", "aps")
    )
    assert drawn.sum() == whole.sum() == N
    assert (np.cumsum(drawn) >= np.cumsum(whole)).all()


@pytest.mark.slow(unless="sqlite")
def test_missing_and_outside_scores_are_counted_in_the_error(engine):
    values = [0.5, None, float("nan"), 1.5, None, float("-inf"), float("inf"), -1e-300, 1.0]
    table = engine.table(pa.table({"s": pa.array(values, pa.float64())}))
    for score, wrong in (("lac", 6), (None, 4)):
        with refused(InputError, "table") as caught:
            score_histogram(table, ScoreColumn("s", score), FAMILIES["unit"])
        assert [count for count, _ in bad_rows(caught)] == [wrong]


@pytest.mark.slow(unless="batches-lac")
@pytest.mark.parametrize("score", ["lac", "aps_deterministic"])
def test_unusable_rows_are_counted_by_reason(listing, score):
    """Entries, lengths, labels that are missing, groups; by engines and by this process."""
    data = pa.table(
        {
            "p": pa.array([[0.5, 0.5], [0.5], None, [0.5, None], [0.5, 2.0], [1.0, 0.0], [0.5, 0.5], [0.5, 0.5]]),
            "y": pa.array(["a", "a", "b", "b", "b", "c", None, "a"]),
            "g": pa.array([1, 1, 1, 1, 2, 2, 2, 3], pa.int64()),
        }
    )
    table, what = listing.table(data), ClassColumns("p", "y", ("a", "b"), score)
    with refused(InputError, "table") as caught:
        score_histogram(table, what, FAMILIES["unit"])
    assert [count for count, _ in bad_rows(caught)] == [2, 2, 1]
    with refused(InputError, "table") as caught:
        group_histograms(table, what, "g", [1, 2], FAMILIES["unit"])
    assert [count for count, _ in bad_rows(caught)] == [2, 2, 1, 1]


@pytest.mark.slow
def test_the_first_of_the_unusable_rows_is_named(engine):
    """If rows have an order."""
    scores = np.linspace(0, 1, 3000)
    scores[[1234, 2000]] = 7.0
    source = engine.table(pa.table({"s": scores, "g": ["a"] * 2500 + ["b"] * 500}))
    with as_open_table(source) as table:
        start = table.rows.first if table.ordered else None
        with refused(InputError, "table") as caught:
            score_histogram(table, ScoreColumn("s", "lac"))
    assert bad_rows(caught) == [(2, None if start is None else 1234 + start)]
    scores[[1234, 2000]] = 0.5
    source = engine.table(pa.table({"s": scores, "g": ["a"] * 2500 + ["b"] * 500}))
    with refused(InputError, "table") as caught:
        group_histograms(source, ScoreColumn("s", "lac"), "g", ["a"])
    with refused(InputError, "names"):
        group_histograms(source, ScoreColumn("s", "lac"), "g", ["a", "b", "a"])
    assert bad_rows(caught) == [(500, None if start is None else 2500 + start)]


@pytest.mark.long
@everyday_on("memory", "duckdb_sql", "postgres")
@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
def test_an_empty_table_gives_a_release(engine):
    table = engine.table(pa.table({"s": pa.array([], pa.float64()), "g": pa.array([], pa.string())}))
    assert not score_histogram(table, ScoreColumn("s"), FAMILIES["unit"]).counts.any()
    assert calibrate_table(table, ScoreColumn("s"), 0.1, 1.0).guarantee.n is None
    assert len(calibrate_table(table, ScoreColumn("s"), 0.1, 1.0, by="g", groups=["a", "b"]).parts) == 2
    with pytest.raises(InputError):
        calibrate_table(table, ScoreColumn("s"), 0.1, 1.0, neighbors="replace_one")
