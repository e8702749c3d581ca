"""Results of calibrate and related functions without noise, a line each, to compare two versions of the source.

    python -m tests.comparison > before.txt        on one tree, then on the other; `diff` shows what changed

A line is the name of the request and a digest of the release (without versions and checksums), or the refusal. Of names
after the command only those kinds are asked: arrays, renewals, tables, ledgers.
"""

import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

import confide
import confide.mechanisms
from benchmarks.small import small
from confide import Candidates, ScoreHistogram
from confide.scores import interval_score
from confide.selection import noisy_counts, select
from confide.tables import ClassColumns, ContributionBound, LossColumns, ScoreColumn, TargetColumns, calibrate_table

Asked = tuple[str, Callable[[], Any]]
PUBLIC = {"neighbors": "replace_one"}
GRID: dict[str, dict[str, Any]] = {
    "default": {},
    "replace": PUBLIC,
    "delta": {"delta": 0.05},
    "delta replace": {"delta": 0.05, **PUBLIC},
    "100": {"candidates": 100},
    "unit500": {"candidates": Candidates.unit(500)},
    "around": {"candidates": Candidates.around(0.9, hedged=True)},
    "n_min": {"n_min": 200},
    "typical": {"n_typical": 500},
    "people": {"records_per_person": 3},
    "pps": {"mechanism": "pps", **PUBLIC},
    "pps secret": {"mechanism": "pps", "n_min": 100},
    "pps laplace": {"mechanism": "pps-laplace", **PUBLIC},
    "noisy": {"mechanism": "noisy-histogram"},
    "none": {"mechanism": "none"},
    "about": {"about": {"model": "m"}},
    "names": {"classes": ["x", "y", "z"]},
    "number": {"classes": 3},
    "unit": {"unit": 0.5},
    "rho": {"rho": 0.5},
    "published delta": {"mechanism": "pps", "delta": 0.1},
    "none epsilon": {"mechanism": "none", "epsilon": 1.0},
    "n": {"n": 3000},
    "partition": {"partition": "x"},
    "unknown": {"foo": 1},
    "shares": {"shares": ["0.5", "0.5"]},
    "share_low": {"share_low": "0.3"},
    "both": {"rho": 0.5, "epsilon": 1.0},
    "neither": {"epsilon": None},
    "relation": {"neighbors": "x"},
    "dataset": {"dataset": "x"},
    "again": {"again": True},
    "n_min 0": {"n_min": 0},
}
KEPT = ("default", "replace", "delta", "100", "unit500", "n_min", "typical", "people", "pps",
        "none", "around", "about", "names", "rho", "unit")  # fmt: skip

RNG = np.random.default_rng(1)
N = 3000
P = RNG.dirichlet([4, 2, 1], N)
Y = (P.cumsum(1) < RNG.random((N, 1))).sum(1).clip(0, 2)
SCORES = confide.lac_score(P, Y)
RESIDUALS, WARD = RNG.gamma(2, 30, N), RNG.choice(["a", "b", "c"], N)
QUANTILES, TARGETS = np.sort(RNG.normal(size=(N, 2)), 1), RNG.normal(size=N)
WEIGHTS, TRUTH, U = RNG.random(N) * 2, RNG.random((N, 3)) < P, RNG.random(N)
SHIFT = {0: 1, 1: 2, 2: 0.5}
LOSSES = np.clip(np.random.default_rng(11).random((500, 1)) - Candidates.unit(101).edges, 0, 1)


def budget(asked: dict[str, Any]) -> dict[str, Any]:
    """The same with a loss, where it has none of its own."""
    own = "epsilon" in asked or "rho" in asked or asked.get("mechanism") == "none"
    return asked if own else {"epsilon": 1.3, **asked}


def without(asked: dict[str, Any], name: str) -> dict[str, Any]:
    """The same without one argument."""
    return {key: value for key, value in asked.items() if key != name}


def arrays() -> Iterator[Asked]:
    """Scores, counts, losses and masks in memory."""
    unit, plain = Candidates.unit(300), np.asarray(SCORES)
    counts = ScoreHistogram.from_scores(SCORES, unit, "lac")
    by_ward = {name: ScoreHistogram.from_scores(plain[name == WARD], unit, "lac") for name in "abc"}
    edges = Candidates.of(np.linspace(-3, 3, 300))
    sides = {
        s: ScoreHistogram.from_scores(interval_score(QUANTILES, TARGETS, s), edges, s) for s in ("cqr_low", "cqr_high")
    }
    images = list(zip(np.random.default_rng(5).random((300, 1, 6, 5)), RNG.random((300, 1, 6, 5)) > 0.7, strict=True))
    for name, grid in GRID.items():
        o, c = budget(grid), without(budget(grid), "candidates")
        k = without(o, "classes")
        yield f"one {name}", lambda o=o: confide.calibrate(SCORES, 0.1, **o)
        yield f"few {name}", lambda o=o: confide.calibrate(SCORES[:200], 0.1, **o)
        yield f"none {name}", lambda o=o: confide.calibrate(plain[:0], 0.1, score="lac", **o)
        yield f"residuals {name}", lambda o=o: confide.calibrate(RESIDUALS, 0.1, score="absolute_residual", **o)
        yield f"levels {name}", lambda o=o: confide.calibrate_levels(SCORES, [0.05, 0.1, 0.2], **o)
        yield f"groups {name}", lambda o=o: confide.calibrate_groups(SCORES, WARD, list("abcd"), 0.1, **o)
        yield f"classes {name}", lambda k=k: confide.calibrate_groups(SCORES, Y, [0, 1, 2], 0.1, by="class", **k)
        yield f"sides {name}", lambda o=o: confide.calibrate_sides(QUANTILES, TARGETS, 0.1, **o)
        yield f"rates {name}", lambda o=o: confide.calibrate_false_negatives(P, TRUTH, 0.2, u=U, **o)
        yield f"weights {name}", lambda o=o: confide.calibrate(SCORES, 0.1, weights=WEIGHTS, weight_bound=2, **o)
        yield f"class weights {name}", lambda o=o: confide.calibrate(SCORES, 0.1, class_weights=SHIFT, labels=Y, **o)
        yield (
            f"losses {name}",
            lambda c=c: confide.calibrate_losses(LOSSES, Candidates.unit(101), 0.1, loss="l", u=U[:500], **c),
        )
        yield f"counts {name}", lambda c=c: confide.calibrate_histogram(counts, 0.1, score="lac", **c)
        yield f"counts of levels {name}", lambda c=c: confide.calibrate_histogram(counts, [0.1, 0.2], score="lac", **c)
        yield f"counts of groups {name}", lambda c=c: confide.calibrate_histogram(by_ward, 0.1, score="lac", **c)
        yield f"counts of sides {name}", lambda c=c: confide.calibrate_histogram(sides, 0.1, score="cqr_sides", **c)
        drawn = confide.ExperimentalUniforms(0)
        yield f"masks {name}", lambda o=o, drawn=drawn: confide.calibrate_masks(images, 0.1, u=drawn, **o)


def renewals() -> Iterator[Asked]:
    """Releases of every kind, renewed."""
    new, weighed = slice(2000), {"weights": WEIGHTS, "weight_bound": 2}
    made: dict[str, tuple[Callable[..., Any], Any, dict[str, Any]]] = {
        "one": (lambda **o: confide.calibrate(SCORES, 0.1, **o), SCORES, {}),
        "levels": (lambda **o: confide.calibrate_levels(SCORES, [0.05, 0.1], **o), SCORES, {}),
        "groups": (lambda **o: confide.calibrate_groups(SCORES, WARD, list("abc"), 0.1, **o), SCORES, {"groups": WARD}),
        "sides": (lambda **o: confide.calibrate_sides(QUANTILES, TARGETS, 0.1, **o), QUANTILES, {"targets": TARGETS}),
        "rates": (
            lambda **o: confide.calibrate_false_negatives(P, TRUTH, 0.2, u=U, **o), P, {"truth": TRUTH, "u": U}
        ),
        "weights": (lambda **o: confide.calibrate(SCORES, 0.1, **weighed, **o), SCORES, {"weights": WEIGHTS}),
    }  # fmt: skip
    anew: dict[str, dict[str, Any]] = {
        "again": {}, "cold": {"cold": True}, "epsilon": {"epsilon": 0.5}, "rho": {"rho": 0.1},
        "typical": {"n_typical": 300}, "candidates": {"candidates": 50},
        "partition": {"partition": "x"},
    }  # fmt: skip
    for kind, (make, scores, records) in made.items():
        for name in ("default", "replace", "delta", "100", "unit500", "n_min", "people", "none", "rho", "pps"):
            try:
                first = make(**budget(GRID[name]))
            except (confide.InputError, confide.InputTypeError):
                continue
            for how, more in anew.items():
                asked = {key: value[new] for key, value in records.items()} | more
                yield f"renewed {kind} {name} {how}", partial(confide.recalibrate, first, scores[new], **asked)


def tables() -> Iterator[Asked]:
    """Every division of a table, in memory and in files."""
    rng, n = np.random.default_rng(1), 1500
    p = rng.dirichlet([4, 2, 1], n).round(5)
    p[:, 2] = 1 - p[:, 0] - p[:, 1]
    columns = {f"p_{name}": p[:, i] for i, name in enumerate("abc")}
    columns |= {"y": np.array(list("abc"))[(p.cumsum(1) < rng.random((n, 1))).sum(1).clip(0, 2)], "w": rng.random(n)}
    columns |= {"g": rng.choice(["n", "s"], n), "f": rng.normal(size=n), "lo": rng.normal(size=n) - 1}
    columns |= {"hi": rng.normal(size=n) + 1, "who": np.arange(n) // 2, "v": np.arange(n) % 2}
    table, folder = pa.table(columns), Path(tempfile.mkdtemp())
    parquet.write_table(table, folder / "t.parquet")
    csv.write_csv(table, folder / "t.csv")
    what, once = ClassColumns("p_*", "y"), ContributionBound("who", 1, ("v",))
    kinds: dict[str, tuple[Any, dict[str, Any]]] = {
        "one": (what, {}), "levels": (what, {"alpha": [0.1, 0.2]}), "groups": (what, {"by": "g", "groups": ["n", "s"]}),
        "classes": (what, {"by_class": True}), "residuals": (TargetColumns("f", "lo"), {}),
        "scores": (ScoreColumn("w", "lac"), {}),
        "sides": (TargetColumns(("lo", "hi"), "f", "cqr_sides"), {}), "people": (what, {"people": once}),
        "groups of people": (what, {"people": once, "by": "g", "groups": ["n", "s"]}), "by alone": (what, {"by": "g"}),
        "class weights": (what, {"class_weights": {"a": 1, "b": 2, "c": 0.5}}),
        "complete": (what, {"skip_incomplete": True}), "weights": (what, {"weights": "w", "weight_bound": 1}),
        "levels of groups": (what, {"alpha": [0.1, 0.2], "by_class": True}),
        "losses": (LossColumns(("lo", "hi"), "l"), {}),
    }  # fmt: skip
    for source in (table, folder / "t.parquet", folder / "t.csv"):
        place = "memory" if source is table else Path(str(source)).suffix
        for kind, (read, more) in kinds.items():
            for name, grid in GRID.items():
                if source is table or name in ("default", "replace", "delta", "100", "none", "n"):
                    asked = {"alpha": 0.1, **budget(grid), **more}
                    yield f"table {place} {kind} {name}", lambda s=source, r=read, a=asked: calibrate_table(s, r, **a)


def ledgers() -> Iterator[Asked]:
    """The digest of a request in a ledger."""

    def kept(make: Callable[[confide.Ledger], Any]) -> list[tuple[str, str, str]]:
        with tempfile.TemporaryDirectory() as folder:
            ledger = confide.Ledger(Path(folder) / "ledger.db", limit=1000.0)
            make(ledger)
            accounts = ledger.accounts().items()
            return sorted((name, e.request, repr(e.cost)) for name, account in accounts for e in account.entries)

    for name in KEPT:
        o = {**budget(GRID[name]), "dataset": "d"}
        yield f"ledger one {name}", lambda o=o: kept(lambda x: confide.calibrate(SCORES, 0.1, ledger=x, **o))
        yield (
            f"ledger levels {name}",
            lambda o=o: kept(lambda x: confide.calibrate_levels(SCORES, [0.1, 0.2], ledger=x, **o)),
        )
        yield (
            f"ledger groups {name}",
            lambda o=o: kept(
                lambda x: confide.calibrate_groups(SCORES, WARD, list("abc"), 0.1, ledger=x, partition="g", **o)
            ),
        )
        yield (
            f"ledger sides {name}",
            lambda o=o: kept(lambda x: confide.calibrate_sides(QUANTILES, TARGETS, 0.1, ledger=x, **o)),
        )
        yield (
            f"ledger rates {name}",
            lambda o=o: kept(lambda x: confide.calibrate_false_negatives(P, TRUTH, 0.2, u=U, ledger=x, **o)),
        )


def take_out_noise() -> None:
    """Selections take the best candidate, noisy counts are the counts: in every module that has the functions."""
    instead: dict[Any, Callable[..., Any]] = {
        select: lambda utilities, *_: int(np.argmax(utilities)),
        noisy_counts: lambda counts, *_: np.asarray(counts),
    }
    for name, module in list(sys.modules.items()):
        if name.startswith("confide"):
            for key, value in list(vars(module).items()):
                if callable(value) and any(value is one for one in instead):
                    setattr(module, key, instead[value])


def plain(value: Any) -> Any:
    """A document without versions, checksums and dates."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items() if key not in ("versions", "sha256", "date")}
    return [plain(one) for one in value] if isinstance(value, list) else value


def answer(make: Callable[[], Any]) -> str:
    """A digest of a release or of an error."""
    try:
        made = make()
    except (confide.ConfideError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    text = json.dumps(plain(json.loads(made.to_json())), sort_keys=True) if hasattr(made, "to_json") else repr(made)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def main(kinds: list[str]) -> None:
    """Print a line for each request."""
    warnings.simplefilter("ignore")
    take_out_noise()
    every = {"arrays": arrays, "renewals": renewals, "tables": tables, "ledgers": ledgers}
    for kind in kinds or every:
        for i, (name, make) in enumerate(every[kind]()):
            if small(True, i % 50 == 0):
                print(f"{name}\t{answer(make)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
