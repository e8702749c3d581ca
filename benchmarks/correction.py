"""A threshold that corrects itself, on two years of a city's bicycle rentals.

    python -m benchmarks.correction            the table of docs/benchmarks.md
    python -m benchmarks.correction --picture  also docs/images/correction.svg, from the first repetition

Needs bike_train.csv: CONFIDE_DATA, or ../shared/data. Hours of the first half of 2011 train a model (odd days) and
calibrate a threshold (even days) at level 0.9 with epsilon 1. All later days are predicted, one after the other: 342
days of up to 24 hours, 19 days of each month. Every record is charged epsilon 1 in all by each private rule. "Worst" is
the smallest coverage of 30 consecutive days, the mean of 20 repetitions with fresh noise.
"""

import argparse
import csv
import sys
import warnings
from datetime import datetime

import numpy as np

import confide
from benchmarks.small import ROOT, small
from experiments.federated.data import folder

ALPHA, WINDOW, DAY = 0.1, 30, 24
REPETITIONS = small(20, 2)
MEASURED = ("season", "holiday", "workingday", "weather", "temp", "atemp", "humidity", "windspeed")


def errors() -> tuple[np.ndarray, list[np.ndarray]]:
    """Absolute errors of the calibration hours, and of the hours of each later day."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    with (folder() / "bike_train.csv").open() as file:
        rows = list(csv.DictReader(file))
    when = [datetime.fromisoformat(row["datetime"]) for row in rows]
    features = [
        [*(float(row[name]) for name in MEASURED), at.hour, at.weekday()] for row, at in zip(rows, when, strict=True)
    ]
    x, rentals = np.array(features), np.log1p([int(row["count"]) for row in rows])
    first, odd = np.array([f"{at:%Y-%m}" < "2011-07" for at in when]), np.array([at.day % 2 == 1 for at in when])
    model = HistGradientBoostingRegressor(max_iter=200, random_state=0).fit(x[first & odd], rentals[first & odd])
    score, day = np.abs(rentals - model.predict(x)), np.array([at.toordinal() for at in when])
    return score[first & ~odd], [score[day == one] for one in np.unique(day[~first])]


def calibrate(scores: np.ndarray, epsilon: float, **how: object) -> confide.Calibration:
    return confide.calibrate(scores, ALPHA, epsilon, score="absolute_residual", **how)


def fixed(released: confide.Calibration, days: list[np.ndarray]) -> list[float]:
    return [released.threshold] * len(days)


def renewed(last: int, epsilon: float):
    """A new threshold every seven days, from the last days; each record is in last/7 of them."""

    def rule(released: confide.Calibration, days: list[np.ndarray]) -> list[float]:
        found = [released.threshold]
        for day in range(1, len(days)):
            if day % 7 == 0:
                records = np.concatenate(days[max(0, day - last) : day])
                guess = released.threshold
                around = confide.Candidates.around(guess) if np.isfinite(guess) else None
                renewal = calibrate(records, epsilon, candidates=around, n_typical=last * DAY)
                found.append(renewal.threshold)
            else:
                found.append(found[-1])
        return found

    return rule


def corrected(gamma: float | str, epsilon: float = 1.0):
    """The library's correction, one look a day."""

    def rule(released: confide.Calibration, days: list[np.ndarray]) -> list[float]:
        watch = confide.Watch.start(released, epsilon=epsilon, batch=DAY, looks=365, correct=gamma)
        found = []
        for day, scores in enumerate(days):
            scale = watch.settings.correction.scales[0]
            found.append(scale.at(position(watch)))
            covered = int((scores <= found[-1]).sum())
            watch = watch.look(str(day), [covered, len(scores) - covered])
        return found

    return rule


def position(watch: confide.Watch) -> int:
    """The position in force."""
    return watch.positions[-1][0]


RULES = {
    "fixed": fixed,
    "renewed weekly, last 7 days": renewed(7, 1.0),
    "renewed weekly, last 28 days": renewed(28, 0.25),
    "corrected, gamma 0.05": corrected(0.05),
    "corrected, gamma 0.1": corrected(0.1),
    "corrected, gamma 0.2": corrected(0.2),
}


def rolling(thresholds: list[float], days: list[np.ndarray]) -> np.ndarray:
    """Coverage of each 30 consecutive days."""
    covered = [int((scores <= limit).sum()) for scores, limit in zip(days, thresholds, strict=True)]
    ones = np.ones(WINDOW)
    return np.convolve(covered, ones, "valid") / np.convolve([len(scores) for scores in days], ones, "valid")


def picture(courses: dict[str, np.ndarray]) -> None:
    """Draw the rolling coverage of some rules."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.9, 3.0), layout="constrained")
    axes = figure.subplots()
    for (name, course), colour in zip(courses.items(), ("#8a8a8a", "#c2723a", "#1f6f8b"), strict=True):
        axes.plot(np.arange(len(course)) + WINDOW, course, label=name, color=colour)
    axes.axhline(1 - ALPHA, color="#555555", linestyle="--", linewidth=0.8)
    axes.set(xlabel="day", ylabel=f"coverage of the last {WINDOW} days", ylim=(0.35, 1))
    axes.legend(frameon=False, loc="lower left")
    figure.savefig(ROOT / "docs" / "images" / "correction.svg", metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", action="store_true")
    draw = parser.parse_args().picture
    if not (folder() / "bike_train.csv").is_file():
        sys.exit("needs the file bike_train.csv; set CONFIDE_DATA to the folder that holds it")
    warnings.simplefilter("ignore", confide.CoverageWarning)
    first, days = errors()
    courses = {}
    print("rule,coverage,worst 30 days,5 % of 30 days,median half-width,mean half-width,days of +inf")
    for name, rule in RULES.items():
        rows = []
        for repetition in range(REPETITIONS):
            thresholds = rule(calibrate(first, 1.0), days)
            course = rolling(thresholds, days)
            if repetition == 0:
                courses[name] = course
            hits = sum(int((scores <= limit).sum()) for scores, limit in zip(days, thresholds, strict=True))
            finite = np.array([limit for limit in thresholds if np.isfinite(limit)])
            infinite = len(thresholds) - len(finite)
            share = hits / sum(map(len, days))
            rows.append(
                (share, course.min(), np.quantile(course, 0.05), np.median(thresholds), finite.mean(), infinite)
            )
        print(f'"{name}",' + ",".join(f"{value:.3f}" for value in np.mean(rows, axis=0)), flush=True)
    if draw:
        shown = ("fixed", "renewed weekly, last 28 days", "corrected, gamma 0.1")
        picture({name: courses[name] for name in shown})


if __name__ == "__main__":
    main()
