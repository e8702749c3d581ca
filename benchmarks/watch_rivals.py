"""A watch compared with DP-SPRT and with AboveThreshold: delay until an alarm, and false alarms.

    python -m benchmarks.watch_rivals [PEERS_PYTHON]        docs/benchmarks.md, in some minutes

Coverage drops from 0.9 to 0.85; the tests are of 0.88 with error 0.05. "At once": it drops before the first record.
"Late": after 10,000 good records. A record costs epsilon once in every row. False alarms: share of courses of 60,000
records at a coverage of 0.88 with an alarm.

- "watch": `confide watch` with the looks that epsilon deserves, or with looks of a stated size. It does not know the
  drop, publishes the counts, and its bound holds for every number of looks.
- "watch, Gaussian": the same with Gaussian noise of the zCDP loss rho = epsilon^2/2. It has no pure epsilon.
- "DP-SPRT": dpsprt's test of 0.12 against 0.15 missed records. It knows the drop, publishes the alarm alone, checks
  after each record, and its other decision is switched off by an error of 1e-290.
- "AboveThreshold": on the log likelihood ratio of 0.15 to 0.12, which knows the drop, with looks of a stated size and
  a bound for the looks of 60,000 records. It publishes the alarm alone.
"""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.small import small
from confide.watching.e_process import DROPS, Bets, advance, bets, cash, entering_wealth, log_e_values, log_evidence
from confide.watching.settings import records_enough

GOOD, TESTED, DROPPED, ERROR = 0.9, 0.88, 0.85, 0.05
BEFORE, MOST, CHANCE = 10_000, 60_000, 0.9
EPSILONS = small((0.1, 0.3, 1.0), (1.0,))
PATHS = small(2000, 20)
PEER_PATHS = small(300, 5)
"""DP-SPRT draws a noise for each record."""

Course = tuple[float, float, int]
"""Coverage before and after the drop, and the records before it."""
COURSES: tuple[Course, ...] = ((GOOD, DROPPED, 0), (GOOD, DROPPED, BEFORE), (TESTED, TESTED, 0))
Noise = Callable[[np.random.Generator, int], NDArray[np.float64]]
MISSED, COVERED = math.log((1 - DROPPED) / (1 - TESTED)), math.log(DROPPED / TESTED)
"""Log likelihood ratios of a record, for AboveThreshold."""


def laplace_noise(epsilon: float) -> Noise:
    """Discrete Laplace noise of scale 1/epsilon."""
    chance = -math.expm1(-epsilon)
    return lambda rng, size: (rng.geometric(chance, size) - rng.geometric(chance, size)).astype(float)


def gaussian_noise(sigma: float) -> Noise:
    """Rounded normal noise, which stands for the discrete Gaussian."""
    return lambda rng, size: np.round(rng.normal(0, sigma, size))


def gaussian_bets(batch: int, sigma: float) -> Bets:
    """As `bets`, with the mean factor exp(sigma^2 (s^2 + u^2)/2) that discrete Gaussian noise has at most."""
    feared = TESTED - np.asarray(DROPS)[:, None]
    farthest = np.maximum(2 * feared - TESTED, TESTED / 100)
    bet = farthest + (TESTED - farthest) * np.linspace(0, 1, 401)[:-1]
    s, u = np.log(TESTED / bet), np.log1p((TESTED - bet) / (1 - TESTED))
    price = sigma**2 * (s**2 + u**2) / 2
    best = np.argmax(batch * (u * (1 - feared) - s * feared) - price, axis=-1)[:, None]
    return Bets(*(np.take_along_axis(values, best, axis=-1).T for values in (s, u, price)))


def covered_in(look: int, batch: int, course: Course, rng: np.random.Generator) -> NDArray[np.int64]:
    """Covered records of a look in each path; the drop may be within the look."""
    before, after, records = course
    good = min(max(records - (look - 1) * batch, 0), batch)
    return rng.binomial(good, before, PATHS) + rng.binomial(batch - good, after, PATHS)


def watch_alarms(batch: int, bet: Bets, noise: Noise, course: Course) -> NDArray[np.float64]:
    """Records until the alarm of each path, from the first record; infinity without an alarm."""
    rng, alarmed_at = np.random.default_rng(7), np.full(PATHS, np.inf)
    log_wealth = np.full((PATHS, len(DROPS)), -np.inf)
    for look in range(1, (course[2] + MOST) // batch + 1):
        covered = covered_in(look, batch, course, rng)
        x, y = covered + noise(rng, PATHS), batch - covered + noise(rng, PATHS)
        log_wealth = advance(log_wealth, log_e_values(bet, x, y), entering_wealth(look, 52))
        alarm = log_evidence(log_wealth, cash(look, 52)) >= math.log(1 / ERROR)
        alarmed_at[alarm & np.isinf(alarmed_at)] = look * batch
    return alarmed_at


def line_of_above_threshold(looks: int, query: float, threshold: float) -> float:
    """The line that the noisy ratio crosses in so many looks with probability at most ERROR, if coverage is as tested.

    Without noise the ratio reaches log(1/a) with probability at most a; the noise exceeds c with the rest of ERROR.
    """
    chance = (np.arange(20_000) + 0.5) / 20_000
    noise = -np.sign(chance - 0.5) * np.log1p(-2 * np.abs(chance - 0.5)) * threshold

    def exceeds(c: float) -> float:
        high = c + noise
        below = np.where(high > 0, 1 - np.exp(-np.abs(high) / query) / 2, np.exp(-np.abs(high) / query) / 2)
        return float(np.mean(-np.expm1(looks * np.log(below))))

    lines = []
    for share in (0.2, 0.4, 0.6, 0.8):
        low, high = 0.0, 100 * (query + threshold)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if exceeds(middle) <= (1 - share) * ERROR else (middle, high)
        lines.append(math.log(1 / (share * ERROR)) + high)
    return min(lines)


def above_threshold_alarms(batch: int, epsilon: float, course: Course) -> NDArray[np.float64]:
    """As `watch_alarms`. One record changes the ratio of every later look by at most MISSED."""
    query, threshold, looks = 4 * MISSED / epsilon, 2 * MISSED / epsilon, (course[2] + MOST) // batch
    rng, alarmed_at, ratio = np.random.default_rng(8), np.full(PATHS, np.inf), np.zeros(PATHS)
    line = line_of_above_threshold(looks, query, threshold) + rng.laplace(0, threshold, PATHS)
    for look in range(1, looks + 1):
        covered = covered_in(look, batch, course, rng)
        ratio += covered * COVERED + (batch - covered) * MISSED
        alarm = ratio + rng.laplace(0, query, PATHS) >= line
        alarmed_at[alarm & np.isinf(alarmed_at)] = look * batch
    return alarmed_at


def dp_sprt_alarms(python: str, epsilon: float, course: Course) -> NDArray[np.float64]:
    """As `watch_alarms`, in the environment of the peers."""
    before, after, records = course
    given = {
        "share": 1 - before, "dropped_share": 1 - after, "before": records, "records": small(4, 1) * MOST, "seed": 9,
        "tested": 1 - TESTED, "feared": 1 - DROPPED, "error": ERROR, "beta": 1e-290, "epsilon": epsilon,
        "paths": PEER_PATHS,
    }  # fmt: skip
    worker = Path(__file__).with_name("watch_worker.py")
    done = subprocess.run([python, str(worker), json.dumps(given)], capture_output=True, text=True, check=True)
    return np.array([math.inf if time is None else time for time in json.loads(done.stdout)])


def row(name: str, alarms: Callable[..., NDArray[np.float64]], *arguments: object) -> None:
    """Print the delays with probability 0.9 of the first two courses, and the false alarms of the last."""
    cells = []
    for course in COURSES[:2]:
        at = alarms(*arguments, course)
        delays = at[at > course[2]] - course[2]
        delay = float(np.quantile(delays, CHANCE, method="inverted_cdf")) if len(delays) else math.inf
        cells.append(f"> {MOST:,}" if delay > MOST else f"{delay:,.0f}")
    false = float(np.mean(alarms(*arguments, COURSES[2]) <= MOST))
    print(f"| {name} | {cells[0]} | {cells[1]} | {false:.4f} |", flush=True)


def main() -> None:
    python = sys.argv[1] if len(sys.argv) > 1 else ".venv-peers/bin/python"
    print("| epsilon, test | at once | late | false alarms |\n|---|---|---|---|")
    for epsilon in EPSILONS:
        deserved = records_enough(GOOD, epsilon)
        for batch in (deserved, 50, 1000):
            bet, noise = bets([TESTED], batch, epsilon), laplace_noise(epsilon)
            note = ", deserved" if batch == deserved else ""
            row(f"{epsilon:g}, watch, {batch:,}{note}", watch_alarms, batch, bet, noise)
        bet, noise = gaussian_bets(deserved, 1 / epsilon), gaussian_noise(1 / epsilon)
        row(f"{epsilon:g}, watch, Gaussian, {deserved:,}", watch_alarms, deserved, bet, noise)
        for batch in (50, 1000):
            row(f"{epsilon:g}, AboveThreshold, {batch:,}", above_threshold_alarms, batch, epsilon)
        row(f"{epsilon:g}, DP-SPRT", dp_sprt_alarms, python, epsilon)


if __name__ == "__main__":
    main()
