"""Cost of privacy compared with equal weights: exact laws of the answer on many data sets from known distributions.

    python -m benchmarks.price                     the tables of docs/benchmarks.md, in a few minutes
    python -m benchmarks.price --runs 50 even      one of them, quicker

alpha = 0.1 and epsilon = 1 unless stated. Excess is (coverage - 0.9) n epsilon. Its control variate is the coverage of
the non-private threshold on the same data, whose mean has an exact value. "beyond" is the probability of a threshold
beyond the largest score. Real data: CONFIDE_DATA, or ../shared/data; without them the rows are left out, with a
message. Times are processor times of one core.
"""

import argparse
import os
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

import confide
from benchmarks.small import small
from confide import Candidates
from confide.noisy_counts import noise_law
from confide.planning import FEW_SIZES, Plan, law_of, mechanism_for
from tests.equal_weights import plan_of_equal_weights
from tests.threshold_laws import (
    HARD_IN_UNIT,
    HARD_RESIDUALS,
    UNIFORM,
    Law,
    Outcome,
    outcome,
    residuals,
    size_ratio,
    threshold_ratio,
)

PUBLIC, SECRET = "replace_one", "add_remove"
WORDS = {PUBLIC: "public", SECRET: "secret"}


def ours(n: int, neighbors: str, score: str = "lac", alpha: float = 0.1, **options: object) -> Plan:
    """The plan of this version; the guess of a secret n is right."""
    typical = {"n_typical": n} if neighbors == SECRET else {}
    return confide.plan(alpha, 1.0, n, score=score, neighbors=neighbors, **typical | options)


def theirs(n: int, neighbors: str, score: str = "lac", alpha: float = 0.1, **options: object) -> Plan:
    """The plan with equal weights, a long list of candidates, and slopes for uniform scores."""
    return plan_of_equal_weights(alpha, 1.0, n, score=score, neighbors=neighbors, **options)


def table(*heads: str) -> None:
    print(f"\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)


def row(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def chance(value: float) -> str:
    return "0" if value < 5e-5 else f"{value:.4f}" if value < 0.01 else f"{value:.3f}"


def even(runs: int) -> None:
    """Uniform scores over the default candidates of lac."""
    table("uniform scores, n", "n is", "excess (equal)", "excess", "aim", "coverage (equal)", "coverage", "aim",
          "+inf (equal)", "+inf", "beyond (equal)", "beyond")  # fmt: skip
    reach = {100: ".941", 150: ".929", 200: ".922"}
    for n in small((60, 80, 100, 150, 200, 343, 1000, 5000), (60,)):
        for relation in (PUBLIC, SECRET):
            old, new = (outcome(made(n, relation), UNIFORM, runs) for made in (theirs, ours))
            excess = {(1000, PUBLIC): "5.0", (1000, SECRET): "5.1"}.get((n, relation), "")
            row(n, WORDS[relation], f"{old.excess:.1f}", f"{new.excess:.1f}", excess, f"{old.coverage:.4f}",
                f"{new.coverage:.4f}", reach.get(n, ""), chance(old.infinite), chance(new.infinite),
                chance(old.beyond), chance(new.beyond))  # fmt: skip


def errors(runs: int) -> None:
    """Gaussian residuals."""
    table("normal residuals, n", "n is", "unit", "excess (equal)", "excess", "aim", "beyond (equal)", "beyond", "aim")
    excess = {(1000, None): "7.2", (343, None): "7.5", (1000, 1.0): "6.3"}
    beyond = {None: {200: ".03", 250: ".005", 300: ".001"}, "unit": {200: ".02", 250: ".006", 300: ".002"}}
    for n in small((100, 200, 250, 300, 343, 1000), (100,)):
        for relation in (PUBLIC, SECRET):
            old = outcome(theirs(n, relation, "absolute_residual"), residuals(), runs)
            for unit in (None, 1.0, 10.0, 0.1):
                new = outcome(ours(n, relation, "absolute_residual", unit=unit), residuals(), runs)
                public = relation == PUBLIC
                row(n, WORDS[relation], _UNITS[unit], f"{old.excess:.1f}",
                    f"{new.excess:.1f}", excess.get((n, unit), "") if public else "", chance(old.beyond),
                    chance(new.beyond), beyond[unit and "unit"].get(n, "") if public else "")  # fmt: skip


_UNITS = {None: "none", 1.0: "right", 10.0: "10 times too large", 0.1: "10 times too small"}


def scales(runs: int) -> None:
    """Residuals of any scale, without a unit."""
    table("scale of residuals, no unit", "n", "+inf (equal)", "ratio (equal)", "+inf", "beyond", "ratio", "aim")
    for n in (1000, 200):
        old, new = (made(n, PUBLIC, "absolute_residual") for made in (theirs, ours))
        for power in small((-300, -50, -15, -12, -9, -6, -3, 0, 3, 6, 9, 12, 15, 30, 50, 300), (0,)):
            law = residuals(10.0**power)
            was, now = (outcome(made, law, max(runs // 10, 10)) for made in (old, new))
            ratios = [f"{threshold_ratio(made, law, max(runs // 10, 10)):.4g}" for made in (old, new)]
            row(f"1e{power}", n, chance(was.infinite), ratios[0], chance(now.infinite), chance(now.beyond), ratios[1],
                "1.2" if n == 1000 and abs(power) <= 12 else "")  # fmt: skip


def warm(runs: int) -> None:
    """Candidates around a guess of the threshold that is wrong by some ranks, compared with cold ones."""
    table(
        "warm start",
        "n",
        "cold",
        "right",
        "aim",
        "wrong by 20",
        "wrong by +100",
        "wrong by -100",
        "worst / cold (aim 1.6)",
    )
    for name, law, score, quantile, reach in (
        ("residuals", residuals(), "absolute_residual", _half_normal, "4.5"),
        ("lac", UNIFORM, "lac", float, "4.1"),
    ):
        for n in (1000, 200):
            cold, found = outcome(ours(n, PUBLIC, score), law, runs).excess, []
            for ranks in (0, 20, 100, -100):
                guess = quantile(min(0.9 + ranks / n, 1 - 1 / n))
                made = ours(n, PUBLIC, score, candidates=Candidates.around(guess))
                found.append(outcome(made, law, runs).excess)
            row(name, n, f"{cold:.1f}", f"{found[0]:.1f}", reach if n == 1000 else "", *(f"{x:.1f}" for x in found[1:]),
                f"{max(found) / cold:.2f}")  # fmt: skip


def _half_normal(level: float) -> float:
    from scipy.stats import halfnorm

    return float(halfnorm.ppf(level))


def conditional(runs: int) -> None:
    """Training-conditional guarantees: mean coverage for uniform scores."""
    table("training-conditional, delta .05: n", "n is", "coverage (equal)", "coverage", "aim")
    for n, reach in ((200, ".96"), (500, ""), (1000, ".922")):
        for relation in (PUBLIC, SECRET):
            typical = {"n_typical": n} if relation == SECRET else {}
            old, new = (
                outcome(made(n, relation, delta=0.05, **typical), UNIFORM, runs) for made in (theirs, _conditional)
            )
            row(n, WORDS[relation], f"{old.coverage:.4f}", f"{new.coverage:.4f}", reach if relation == PUBLIC else "")


def _conditional(n: int, relation: str, **options: object) -> Plan:
    return ours(n, relation, **options)


def noisy_number(runs: int) -> None:
    """A noisy secret number of records compared with a guess of 1000; exact over the noise of the number."""
    table("noisy number of records, n", "score", "unit", "excess, guess", "excess", "beyond, guess", "beyond", "aim")
    for (score, unit), aims in _NUMBERED.items():
        law = UNIFORM if score == "lac" else residuals()
        for n in small(tuple(aims), (10_000,)):
            few = max(runs // max(n // 1000, 1), 10)
            guess = outcome(confide.plan(0.1, 1.0, n, score=score, unit=unit, n_typical=1000), law, few)
            excess, beyond = _over_the_noise(confide.plan(0.1, 1.0, n, score=score, unit=unit), law, few)
            row(n, score, unit or "none", f"{guess.excess:.1f}", f"{excess:.1f}", chance(guess.beyond), chance(beyond),
                aims[n])  # fmt: skip


_NUMBERED: dict[tuple[str, float | None], dict[int, str]] = {
    ("lac", None): {
        100: "3.6 (.04)", 200: "3.5 (.004)", 1000: "4.3", 10_000: "7.5", 100_000: "12", 1_000_000: "19"},
    ("absolute_residual", None): {
        100: "7.5 (.20)", 200: "7.2 (.015)", 1000: "6.0", 10_000: "12", 100_000: "18", 1_000_000: "66"},
    ("absolute_residual", 1.0): {
        100: "4.7 (.12)", 200: "4.7 (.006)", 1000: "5.4", 10_000: "8", 100_000: "14", 1_000_000: "40"},
}  # fmt: skip


def one_query(runs: int) -> None:
    """A noisy number in a warehouse, whose query counts over few lists; means over distributions of several scales."""
    table("one query, n", "score", "unit", "excess, guess", "few lists", "all lists", "beyond, guess", "few lists",
          "all lists")  # fmt: skip
    for score, unit in _NUMBERED:
        laws = [_power(p) if score == "lac" else residuals(p) for p in small(2.0 ** np.linspace(-1.5, 1.5, 7), (1.0,))]
        for n in small((200, 1000, 10_000, 100_000), (1000,)):
            few = max(runs // max(n // 1000, 1), 10)
            guess, every = (confide.plan(0.1, 1.0, n, score=score, unit=unit, **typical)
                            for typical in ({"n_typical": 1000}, {}))  # fmt: skip
            listed = replace(every, request=replace(every.request, longest=FEW_SIZES[-1]))
            found = []
            for law in laws:
                stated = outcome(guess, law, few)
                found.append(((stated.excess, stated.beyond), *(_over_the_noise(p, law, few) for p in (listed, every))))
            excess, beyond = np.mean(found, axis=0).T
            row(n, score, unit or "none", *(f"{x:.1f}" for x in excess), *map(chance, beyond))


def _power(p: float) -> Law:
    """Uniform scores to a power."""
    return Law(lambda g, n: g.random(n) ** p, lambda v: np.clip(v, 0, 1) ** (1 / p))


def _over_the_noise(plan: Plan, law: Law, runs: int) -> tuple[float, float]:
    """Excess and probability of a threshold beyond all scores; means over the noise of the number of records."""
    request, spread, designs = plan.request, law_of(plan.request.candidates), Counter[int]()
    noise = noise_law(1 / request.size_scale)
    for shift, share in enumerate(noise, -(len(noise) // 2)):
        designs[request.designed_for(plan.n + shift).n_typical] += share
    means = np.zeros(2)
    for design, share in designs.items():
        if share > 1e-4 * designs.total():
            terms = request.designed_for(design).with_candidates(spread, None)
            found = outcome(Plan(terms, mechanism_for(terms), plan.n), law, runs)
            means += share * np.array([found.excess, found.beyond])
    return tuple(means / designs.total())


def hard(runs: int) -> None:
    """Hard laws: excess and failures compared with those of equal weights."""
    heads = "excess (equal)", "excess", "+inf (equal)", "+inf", "beyond (equal)", "beyond", "worse"
    table("hard laws, n", "n is", "law", *heads)
    for score, laws in (("lac", HARD_IN_UNIT), ("absolute_residual", HARD_RESIDUALS)):
        for n, relation in ((150, PUBLIC), (1000, PUBLIC), (1000, SECRET), (5000, PUBLIC)):
            old, new = (made(n, relation, score) for made in (theirs, ours))
            for name, law in laws.items():
                was, now = (outcome(made, law, max(runs // 5, 10)) for made in (old, new))
                cells = [chance(x) for x in (was.infinite, now.infinite, was.beyond, now.beyond)]
                row(n, WORDS[relation], name, f"{was.excess:.1f}", f"{now.excess:.1f}", *cells, _worse(was, now))


def _worse(was: Outcome, now: Outcome) -> str:
    excess, failed = now.excess > was.excess + 0.1, now.beyond > was.beyond + 0.001
    return " and ".join(word for word, true in (("excess", excess), ("beyond", failed)) if true)


SETS = {
    ("lac", 1000): {"cifar100": "1.05", "dermamnist": "1.025", "bloodmnist": "1.0075", "cifar10": "1.0078"},
    ("lac", 300): {"cifar100": "1.16", "bloodmnist": "1.027", "dermamnist": "1.065", "cifar10": "1.026"},
    ("lac", 150): {"cifar100": "1.40", "bloodmnist": "1.10", "dermamnist": "1.12", "cifar10": "1.10"},
    ("aps_deterministic", 1000): {
        "cifar100": "1.045", "bloodmnist": "1.032", "dermamnist": "1.017", "cifar10": "1.030"},
    ("raps_deterministic(penalty=0.01,k_reg=3)", 1000): {
        "cifar100": "1.073", "bloodmnist": "1.025", "dermamnist": "1.016", "cifar10": "1.039"},
    ("margin", 1000): {"cifar100": "1.024", "bloodmnist": "1.0073", "dermamnist": "1.021", "cifar10": "1.0076"},
    ("top_k", 1000): {"cifar100": "1.041", "bloodmnist": "1", "dermamnist": "1", "cifar10": "1"},
    ("top_k", 300): {"cifar100": "1.16", "bloodmnist": "1.07", "dermamnist": "1.01", "cifar10": "1.10"},
}  # fmt: skip


def sets(runs: int) -> None:
    """Set sizes over those of the non-private threshold, on a tenth of the runs as splits; sizes on all records."""
    table("set size over non-private", "n", "n is", "data", "equal", "now", "aim")
    for name in ("cifar100", "dermamnist", "bloodmnist", "cifar10"):
        p, labels = images(name)
        for score in dict.fromkeys(score for score, _ in SETS):
            scores, every = confide.class_score(p, labels, score), np.sort(confide.all_scores(p, score), axis=None)
            for (of, n), reach in SETS.items():
                for relation in (PUBLIC, SECRET) if of == score else ():
                    found = [_ratio(made(n, relation, score), every, scores, runs // 10) for made in (theirs, ours)]
                    row(score, n, WORDS[relation], name, *(f"{x:.4f}" for x in found),
                        reach[name] if relation == PUBLIC else "")  # fmt: skip


def _ratio(made: Plan, every: np.ndarray, scores: np.ndarray, splits: int) -> float:
    rng = np.random.default_rng(7)
    sizes = [size_ratio(made, every, scores[rng.permutation(len(scores))[: made.n]]) for _ in range(max(splits, 3))]
    private, plain = np.mean(sizes, axis=0)
    return float(private / plain)


def classes(runs: int) -> None:
    """A threshold for each class of CIFAR-10, a hundred records each: mean set size over the non-private one."""
    p, labels = images("cifar10")
    table("class-conditional, ten classes of 100", "n is", "equal", "now", "aim")
    for score, relation, reach in (("lac", SECRET, "1.45"), ("lac", PUBLIC, ""), ("aps_deterministic", SECRET, "")):
        all_scores, found = confide.all_scores(p, score), []
        for made in (theirs(100, relation, score), ours(100, relation, score)):
            rng, sizes = np.random.default_rng(8), []
            for _ in range(max(runs // 10, 3)):
                each = []
                for k in range(10):
                    own = rng.permutation(np.flatnonzero(labels == k))[:100]
                    each.append(size_ratio(made, np.sort(all_scores[:, k]), all_scores[own, k]))
                sizes.append(np.sum(each, axis=0))
            private, plain = np.mean(sizes, axis=0)
            found.append(f"{private / plain:.3f}")
        row(score, WORDS[relation], *found, reach)


def images(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities and labels of all records."""
    found = {"cifar10": "cifar10_vgg16.npz", "cifar100": "cifar100_resnet14.npz"}.get(name, f"{name}_resnet14.npz")
    with np.load(FOLDER / found) as data:
        if name == "cifar10":
            kept = {key: data[key] for key in data.files}
            p = next(value for value in kept.values() if value.ndim == 2).astype(np.float64)
            labels = next(value for value in kept.values() if value.ndim == 1)
            return p / p.sum(axis=1, keepdims=True), labels
        logits = np.concatenate([data["val_logits"], data["test_logits"]]).astype(np.float64)
        labels = np.concatenate([data["val_labels"], data["test_labels"]]).ravel()
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True), labels


def fresh(runs: int) -> None:
    """Time of a new plan, each for another number of records."""
    confide.plan(0.1, 1.0, 777)  # imports and tables
    times = []
    for k in range(max(runs // 20, small(4, 1))):
        for score in ("lac", "aps_deterministic", "absolute_residual", "cqr"):
            for relation in (PUBLIC, SECRET):
                n = round(60 * 1.3 ** (k % 20)) + k
                start = time.process_time()
                ours(n, relation, score, alpha=(0.1, 0.05, 0.2)[k % 3])
                times.append(time.process_time() - start)
    table("a fresh plan", "median s", "worst s", "aim")
    row(f"{len(times)} of them", f"{np.median(times):.2f}", f"{max(times):.2f}", ".1, .4")
    rng, times = np.random.default_rng(5), []
    for _ in range(small(max(runs * 5 // 3, 1), 2)):
        alpha, epsilon = rng.choice([0.05, 0.1, 0.2]), rng.choice([0.5, 1.0, 2.0, 4.0])
        n, score = round(10 ** rng.uniform(2, 6)), rng.choice(["lac", "aps_deterministic", "absolute_residual", "cqr"])
        start = time.process_time()
        confide.plan(float(alpha), float(epsilon), n, score=str(score))
        times.append(time.process_time() - start)
    row(f"{len(times)} random ones, noisy number", f"{np.median(times):.2f}", f"{max(times):.2f}", ".1, 1")


FOLDER = Path(os.environ.get("CONFIDE_DATA", Path(__file__).parents[2] / "shared" / "data"))
TABLES = {
    one.__name__: one
    for one in (even, errors, scales, warm, conditional, noisy_number, one_query, fresh, hard, sets, classes)
}
NEED_DATA = ("sets", "classes")


def main(names: Iterable[str], runs: int) -> None:
    for name in names:
        if name in NEED_DATA and not FOLDER.exists():
            print(f"\n{name}: left out, because {FOLDER} does not exist; set CONFIDE_DATA")
            continue
        start = time.perf_counter()
        TABLES[name](runs)
        print(f"\n({name}: {time.perf_counter() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", choices=[[], *TABLES], default=[], help="default: all of them")
    parser.add_argument(
        "--runs", type=int, default=small(300, 2), help="data sets per row (a tenth of it for splits of real data)"
    )
    given = parser.parse_args()
    main(given.tables or TABLES, given.runs)
