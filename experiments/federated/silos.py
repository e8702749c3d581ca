"""A federation as it is: the silos of a CSV's own column, unequal, unlike and often small.

A model is trained on a quarter of the silos, which are public from then on. In every other silo half of the records
calibrate and half test, drawn anew for every split, so that sizes stay the same and one plan serves all splits.
"""

import tempfile
import time
import warnings
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

import confide
from confide import federated
from confide.errors import CoverageWarning
from confide.guarantee import chosen_by_last_rule
from experiments.federated import tables
from experiments.federated.models import MODELS
from experiments.federated.study import chosen

ALPHA, EPSILON = Fraction(1, 10), 1.0
_CLASSES = 20
"""A target of texts, or with at most so many values, is one of classes."""
_PUBLIC = 0.25
_ABSENT = 0.2


@dataclass(frozen=True)
class Silos:
    """Scores of all records of the silos that take part, and how large sets or intervals are at a threshold.

    Parameters
    ----------
    name, score
        Of the CSV; of the conformity score.
    scores, places
        Of every record: its score, and the place of its silo, shape (N,).
    sizes
        How many records of each silo calibrate.
    measure
        "labels" or "width".
    class_scores, widths
        The scores of all classes, shape (N, K); or the widths of intervals at threshold 0, shape (N,).
    """

    name: str
    score: str
    scores: np.ndarray
    places: np.ndarray
    sizes: np.ndarray
    measure: str
    class_scores: np.ndarray | None
    widths: np.ndarray | None

    def size_of(self, threshold: float, rows: np.ndarray, weights: np.ndarray) -> float:
        """The mean number of labels, or the mean width, over these records."""
        if self.class_scores is not None:
            return float(weights @ (self.class_scores[rows] <= threshold).sum(axis=1))
        return float(weights @ np.maximum(self.widths[rows] + 2 * threshold, 0))

    def split(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Calibration rows, ordered by silo, test rows, and weights by which a test record of silo j counts n_j/n."""
        order = np.lexsort((rng.random(len(self.places)), self.places))
        begins = np.searchsorted(self.places[order], np.arange(len(self.sizes)))
        rank = np.arange(len(order)) - begins[self.places[order]]
        calibrates = rank < self.sizes[self.places[order]]
        test = order[~calibrates]
        others = np.bincount(self.places[test], minlength=len(self.sizes))
        weights = (self.sizes / self.sizes.sum() / others)[self.places[test]]
        return order[calibrates], test, weights


def from_csv(path: Path, target: str | None, silo: str, model: str, least: int = 20, seed: int = 0) -> Silos:
    """Train on the public silos; silos with fewer than `least` calibration records do not take part."""
    table = tables.read(path)
    target = table.columns[-1] if target is None else target
    truth, of = tables.column(table, target, "the target"), tables.column(table, silo, "the silos")
    kept = (truth.notna() & of.notna()).to_numpy()
    table, truth = table[kept], truth[kept]
    codes, names = pd.factorize(of[kept], sort=True)
    x = tables.features(table, [target, silo])
    rng = np.random.default_rng(seed)
    public = np.isin(codes, rng.permutation(len(names))[: max(1, round(_PUBLIC * len(names)))])
    x = (x - x[public].mean(0)) / np.where(x[public].std(0) > 0, x[public].std(0), 1)
    counts = np.bincount(codes, minlength=len(names)) // 2
    taking = np.flatnonzero((counts >= least) & ~np.isin(np.arange(len(names)), codes[public]))
    if len(taking) < 2:
        raise SystemExit(
            f"column {silo!r} has {len(taking)} silos with {2 * least} records or more; at least 2 are needed"
        )
    here = np.isin(codes, taking)
    numbers = tables.as_numbers(truth)
    places, sizes = np.searchsorted(taking, codes[here]), counts[taking]
    if numbers is None or truth.nunique() <= _CLASSES:
        scores, table_of_classes = _class_scores(x, truth.astype("string").to_numpy(), public, here)
        return Silos(path.stem, "lac", scores, places, sizes, "labels", table_of_classes, None)
    y = numbers.fillna(numbers.median()).to_numpy(np.float64)
    low, high = MODELS[model](x[public], y[public], x[here])
    scores = np.maximum(low - y[here], y[here] - high)
    return Silos(path.stem, "cqr", scores, places, sizes, "width", None, high - low)


def _class_scores(x, labels, public, here):
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=1000).fit(x[public], labels[public])
    known = np.isin(labels, model.classes_)
    table = confide.all_scores(model.predict_proba(x[here]))
    at = np.searchsorted(model.classes_, np.where(known, labels, model.classes_[0])[here])
    scores = np.where(known[here], table[np.arange(len(table)), at], 1.0)
    return scores, table


def options(problem: Silos) -> dict:
    """What plans are asked for: a public unit for residuals, the interquartile range of public widths."""
    return {"score": problem.score} if problem.widths is None else {
        "score": problem.score, "unit": float(np.median(problem.widths)) / 4,
    }  # fmt: skip


def keys_of(problem: Silos) -> list[federated.SiloKeys]:
    """Keys for every silo."""
    return [federated.SiloKeys.generate(f"silo {i}") for i in range(len(problem.sizes))]


def timed_round(problem: Silos, seed: int = 0) -> tuple[federated.FederatedPlan, float, float, float]:
    """One federation by the library itself: the recommended plan, its threshold, seconds to plan and for all answers."""
    keys, coordinator = keys_of(problem), federated.SiloKeys.generate("coordinator")
    silos = [key.public(int(n)) for key, n in zip(keys, problem.sizes, strict=True)]
    peers = {silo.name: silo.identity for silo in silos}
    policy = federated.Policy(coordinator.public().signing, 2 * EPSILON, EPSILON, peers=peers)
    start = time.perf_counter()
    plan = federated.plan(silos, ALPHA, EPSILON, **options(problem))
    text = plan.sign(coordinator)
    planned, answers = time.perf_counter(), []
    rows = problem.split(np.random.default_rng(seed))[0]
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore", CoverageWarning)
        for i, key in enumerate(keys):
            scores = problem.scores[rows[problem.places[rows] == i]]
            answers.append(federated.answer(text, scores, key, policy, federated.SiloLedger(Path(folder) / f"{i}.db")))
        released = federated.aggregate(text, answers)
    return plan, released.threshold, planned - start, time.perf_counter() - planned


def plans_for(problem: Silos) -> dict[str, federated.FederatedPlan]:
    """The plan by default, and those of both methods; that of a sum which silos may miss, where it is possible."""
    silos = [key.public(int(n)) for key, n in zip(keys_of(problem), problem.sizes, strict=True)]
    asked = options(problem)
    found = {"recommended default": federated.plan(silos, ALPHA, EPSILON, **asked)}
    for method in ("private-qq", "secure-sum"):
        found[method] = federated.plan(silos, ALPHA, EPSILON, method=method, **asked)
    absent = int(_ABSENT * len(silos))
    if len(silos) >= 10:
        name = f"secure-sum, {absent} silos missing"
        found[name] = federated.plan(silos, ALPHA, EPSILON, method="secure-sum", dropouts=absent, **asked)
    return found


def drawn(plan: federated.FederatedPlan, k: int, counts: np.ndarray, rng: np.random.Generator) -> float:
    """A threshold by the exact laws of the plan's mechanisms, with a generator that can be seeded; counts by silo."""
    at = place_drawn(plan, k, counts, rng)
    return float("inf") if at is None else float(plan.candidates.values[at])


def place_drawn(plan: federated.FederatedPlan, k: int, counts: np.ndarray, rng: np.random.Generator) -> int | None:
    """Which candidate is drawn; None beyond all of them."""
    m = len(plan.silos)
    if plan.method == "private-qq":
        replies = sorted(chosen(plan.protocol.mechanism(plan, i), counts[i], rng) for i in range(m))
        return replies[k - 1] if k <= m else None
    who = np.sort(rng.permutation(m)[: m - plan.dropouts])
    p, shares = -np.expm1(-1 / plan.protocol.scale), len(who) / plan.protocol.honest
    noise = [rng.negative_binomial(shares, p, counts.shape[1]) for _ in range(2)]
    n = sum(plan.silos[i].size for i in who)
    target = plan.protocol.target_of(plan, who.tolist())
    return int(chosen_by_last_rule(counts[who].sum(axis=0) + noise[0] - noise[1], n, target))


def run(problem: Silos, draws: int = 200, seed: int = 1) -> dict[str, np.ndarray]:
    """Method -> coverage, size and whether one new record was covered, for every split; shape (draws, 3)."""
    rng, plans = np.random.default_rng(seed), plans_for(problem)
    n = int(problem.sizes.sum())
    pooled = confide.plan(ALPHA, EPSILON, n=n, neighbors="replace_one", **options(problem))
    ks = {name: plan.certify()[0] for name, plan in plans.items()}
    found: dict[str, list[tuple[float, float, float]]] = {}
    for _ in range(draws):
        rows, test, weights = problem.split(rng)
        ordered = np.sort(problem.scores[rows])
        thresholds = {"pooled, not private": float(ordered[-(-9 * (n + 1) // 10) - 1])}
        thresholds["pooled, private"] = _pooled(pooled, ordered, rng)
        known: dict = {}
        for name, plan in plans.items():
            edges = plan.candidates.edges
            if edges.tobytes() not in known:
                known[edges.tobytes()] = _counts(problem, rows, edges)
            thresholds[name] = drawn(plan, ks[name], known[edges.tobytes()], rng)
        new = rng.choice(len(test), p=weights)
        for name, threshold in thresholds.items():
            covered = problem.scores[test] <= threshold
            size = problem.size_of(threshold, test, weights)
            found.setdefault(name, []).append((float(weights @ covered), size, float(covered[new])))
    return {name: np.array(values) for name, values in found.items()}


def _pooled(plan, ordered: np.ndarray, rng: np.random.Generator) -> float:
    candidates = plan.request.candidates
    at = np.searchsorted(ordered, candidates.edges, side="right")
    counts = np.diff(at, prepend=0, append=len(ordered))
    return float(candidates.values[chosen(plan.mechanism, counts, rng)])


def _counts(problem: Silos, rows: np.ndarray, edges: np.ndarray) -> np.ndarray:
    size, m = len(edges) + 1, len(problem.sizes)
    cells = problem.places[rows] * size + np.searchsorted(edges, problem.scores[rows])
    return np.bincount(cells, minlength=m * size).reshape(m, size)


def promise_kept(hits: np.ndarray) -> float:
    """The exact p-value of the guaranteed coverage: one new record per split, of silo j with probability n_j/n."""
    return float(stats.binomtest(int(hits.sum()), len(hits), float(1 - ALPHA), "less").pvalue)


def page(problem: Silos, command: str, draws: int) -> str:
    """The study as Markdown."""
    plan, _, planned, answered = timed_round(problem)
    found, sizes = run(problem, draws), problem.sizes
    base = found["pooled, private"][:, 1].mean()
    quantiles = ", ".join(f"{int(q)}" for q in np.quantile(sizes, [0, 0.25, 0.5, 0.75, 1]))
    lines = [
        f"# {problem.name}: silos as they are",
        "",
        f"Written by `{command}`. alpha = {float(ALPHA):g}, epsilon = {EPSILON:g}. A model is trained on a quarter of the "
        "silos. In the others half of the records calibrate, half test; silos with fewer than 20 of them do not take part.",
        "",
        f"{len(sizes)} silos, {sizes.sum()} calibration records; their quartiles: {quantiles}. {draws} random splits; a "
        "test record of silo j counts n_j/n. One federation by the library with its default method: "
        f"`{plan.method}`, planned in {planned:.1f} s, {len(sizes)} answers and the threshold in {answered:.1f} s.",
        "",
        f"| method | mean coverage | {problem.measure} | x pooled, private | p-value of the guarantee | +inf |",
        "|---|---|---|---|---|---|",
    ]
    for name, values in found.items():
        error = values[:, 0].std() / np.sqrt(len(values))
        finite = values[np.isfinite(values[:, 1]), 1]
        p = "" if name == "pooled, not private" else f"{promise_kept(values[:, 2]):.2g}"
        size = f"{finite.mean():.4g} | {finite.mean() / base:.3f}" if len(finite) else " | "
        lines.append(
            f"| {name} | {values[:, 0].mean():.4f} ± {error:.4f} | {size} | {p} | {1 - len(finite) / len(values):.0%} |"
        )
    lines += ["", "The guarantee of `private-qq` is for IID silos, that of the sums for any silos."]
    return "\n".join(lines) + "\n"
