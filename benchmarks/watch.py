"""Delay until a monitor detects a drop of coverage from 0.9 to 0.85, and its rate of false alarms.

    python -m benchmarks.watch              records until the alarm, with probability 0.9: docs/benchmarks.md
    python -m benchmarks.watch --alarms     false alarms within 104 looks, in a few minutes

Level 0.9, tolerance 0.02, error 0.05, 52 batches (looks) planned; 1000 paths, with the same random numbers in every
cell. "At once": coverage drops before the first batch; "after 20": after twenty good batches. Wealth enters as in
`confide watch`, all at the first batch ("one start"), or evenly over the 52 batches and none after ("even").
"""

import argparse
import math
import time

import numpy as np

from benchmarks.small import small
from confide.watching.e_process import advance, bets, cash, entering_wealth, log_e_values, log_evidence
from tests.watching.power import looks_to_alarm

NOTHING = 1e-300
RULES = {
    "one start": {"entering_wealth": lambda t, _: 1.0 if t == 1 else NOTHING, "cash": lambda t, _: 0.0},
    "even": {"entering_wealth": lambda t, n: 1 / n if t <= n else NOTHING, "cash": lambda t, n: max(0.0, (n - t) / n)},
    "confide": {},
}


def records(batch: int, epsilon: float, before: int, rule: str) -> int | None:
    """Records after the drop until the alarm with probability 0.9."""
    found = looks_to_alarm(0.88, batch, epsilon, 0.9, 0.85, before=before, most=60_000 // batch, **RULES[rule])
    return None if found is None else found * batch


def false_alarms(batch: int, epsilon: float, coverage: float, paths: int, looks: int = 104) -> float:
    """Share of the paths with an alarm within so many batches."""
    rng, bet = np.random.default_rng(3), bets([0.88], batch, epsilon)
    log_wealth, done = np.full((paths, bet.price.shape[1]), -np.inf), np.zeros(paths, bool)
    chance = -math.expm1(-epsilon)
    for look in range(1, looks + 1):
        c = rng.binomial(batch, coverage, paths)
        a, b, u, v = rng.geometric(chance, (4, paths))
        log_wealth = advance(log_wealth, log_e_values(bet, c + a - b, batch - c + u - v), entering_wealth(look, 52))
        done |= log_evidence(log_wealth, cash(look, 52)) >= math.log(20)
    return float(done.mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--alarms", action="store_true")
    parser.add_argument("--paths", type=int, default=small(100_000, 100))
    given = parser.parse_args()
    if given.alarms:
        for batch, epsilon in ((50, 0.1), (100, 1.0), (500, 0.3)):
            found = [false_alarms(batch, epsilon, p, given.paths) for p in (0.88, 0.9)]
            print(f"{batch} records, epsilon {epsilon:g}: {found[0]:.4f} at .88, {found[1]:.5f} at .9", flush=True)
        return
    cells = [(0, "one start"), (0, "confide"), (20, "one start"), (20, "even"), (20, "confide")]
    print(
        "| batch | epsilon |",
        " | ".join(f"{'after 20' if before else 'at once'}, {rule}" for before, rule in cells),
        "|",
    )
    print("|---" * (2 + len(cells)) + "|")
    start = time.perf_counter()
    for batch in small((50, 100, 200, 500, 1000, 2000), (2000,)):
        for epsilon in (0.1, 0.3, 1.0):
            row = [records(batch, epsilon, *cell) for cell in cells]
            print(
                f"| {batch} | {epsilon:g} |",
                " | ".join("> 60000" if n is None else str(n) for n in row),
                "|",
                flush=True,
            )
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
