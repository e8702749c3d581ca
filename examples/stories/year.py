# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # A year of one threshold
#
# A threshold is released in November. During the following year the population changes. This story shows how the change is
# detected, what that costs, and how the threshold is renewed.
#
# The drift is real. A city's bicycle rentals were counted every hour of 2011 and 2012 (UCI Bike Sharing), and in the
# second year they grew by two thirds. A model of the first year is wrong in the second. An hour of the city represents a
# patient: a guarantee for one record here is a guarantee for a patient there.
#
# Run it from a checkout: `python examples/stories/year.py`. With the name of a folder it also writes the pages.

# %%
import csv
import sys
import tempfile
import warnings
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from sklearn.ensemble import HistGradientBoostingRegressor

import confide
from confide.ledger import Dataset, Group
from confide.tables import ScoreColumn, recalibrate_table
from confide.watching import watch

ROOT = next(folder for folder in [Path.cwd(), *Path.cwd().parents] if (folder / "experiments").is_dir())
sys.path.insert(0, str(ROOT))
from experiments.cifar10 import data_folder  # noqa: E402

SOURCE = data_folder() / "bike_train.csv"
if not SOURCE.is_file():
    sys.exit("needs the file bike_train.csv; set CONFIDE_DATA to the folder that holds it")
FOLDER = Path(sys.argv[1] if sys.argv[1:] else tempfile.mkdtemp())
FOLDER.mkdir(exist_ok=True)

# %% [markdown]
# ## A model and its errors
#
# The model is trained on the odd days of ten months. It predicts the logarithm of the rentals in an hour from weather,
# weekday and hour. The score of a record is the absolute error of the prediction.

# %%
with SOURCE.open() as file:
    rows = list(csv.DictReader(file))
when = [datetime.fromisoformat(row["datetime"]) for row in rows]
measured = ["season", "holiday", "workingday", "weather", "temp", "atemp", "humidity", "windspeed"]
features = np.array(
    [[*(float(row[name]) for name in measured), at.hour, at.weekday()] for row, at in zip(rows, when, strict=True)]
)
rentals = np.log1p([int(row["count"]) for row in rows])
day, month = np.array([at.day for at in when]), np.array([f"{at:%Y-%m}" for at in when])
before = month < "2011-11"

model = HistGradientBoostingRegressor(max_iter=200, random_state=0)
model.fit(features[before & (day % 2 == 1)], rentals[before & (day % 2 == 1)])
scores = np.abs(rentals - model.predict(features))

# %% [markdown]
# ## A budget for the year
#
# The plan is fixed before any charge: four thresholds, two private evaluations, a monitor of each new batch. Every hour
# is in one batch and in one evaluation at most. Batches and evaluations are therefore cells of a partition, of which the
# ledger counts the largest. An hour is in two successive calibrations at most, so that odd and even calibrations are two
# more partitions. The limit of the ledger is the total of the plan.

# %%
year = confide.budget_plan(
    3.0, releases=4, releases_per_person=2, evaluations=2, evaluations_per_person=1, looks=36, looks_per_person=1,
    dp_delta=0,
)  # fmt: skip
print(year)
ledger = confide.Ledger(FOLDER / "budget.db", limit=year.epsilon)
EPSILON = {entry.kind: entry.epsilon for entry in year.entries}


def hours(partition, cell):
    """The data set in the ledger; releases about different cells of a partition cost the largest."""
    return Dataset("hours", Group(partition, str(cell)))


# %% [markdown]
# ## November: a threshold
#
# The even days of the ten months are the calibration records.

# %%
released = confide.calibrate(
    scores[before & (day % 2 == 0)], 0.1, EPSILON["calibration"], score="absolute_residual", unit=1.0,
    ledger=ledger, dataset=hours("calibrations 0", 0), about={"model": "rentals of 2011", "date": "2011-11-01"},
)  # fmt: skip
print(f"released: {released.threshold:.3f}")

# %% [markdown]
# ## Three batches a month
#
# The file has the first nineteen days of every month: one batch is the first week, one the second, one the rest. Two noisy
# counts are released from each batch, of covered and of missed hours. If coverage is at least 0.85, an alarm is raised
# with probability at most 0.05 over all batches together. More batches do not increase this bound.
#
# After an alarm the threshold is renewed on the last three batches, and a new monitor starts. There are two batches
# between renewals, so that no hour is in more than two of them. In May, and at the end, a private evaluation reports the
# coverage of the current threshold.

# %%
batches = {}
for at in np.flatnonzero((month >= "2011-11") & (month < "2012-11")):
    part = 1 + (day[at] > 7) + (day[at] > 14)
    batches.setdefault(f"{month[at]} {part}", []).append(at)
watches, course, since, thresholds = [], [], 0, [released.threshold]


def table(batch_names):
    """Scores as a table, which could also be a file, a folder or a database."""
    return pa.table({"score": scores[np.concatenate([batches[name] for name in batch_names])]})


def renew(batch_names, number):
    """Repeat the request on newer records: a new charge, and the file states which release it renews."""
    new = recalibrate_table(
        released, table(batch_names), ScoreColumn("score"), about={"date": batch_names[-1]},
        ledger=ledger, dataset=hours(f"calibrations {number % 2}", number),
    )  # fmt: skip
    print(f"renewed:  {new.threshold:.3f}, on {', '.join(batch_names)}")
    return new


def evaluate(batch_names):
    """Coverage with an interval that includes the noise; it may be published."""
    records = table(batch_names)["score"].to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", confide.CoverageWarning)  # these records were not in a calibration
        found = confide.evaluate(
            released, scores=records, epsilon=EPSILON["evaluation"],
            ledger=ledger, dataset=hours("evaluations", batch_names[-1]),
        )  # fmt: skip
    print(found)
    return found


names, half = list(batches), "2012-05 3"
for number, name in enumerate(names):
    latest = names[max(0, number - 2) : number + 1]
    state = FOLDER / f"watch-{len(watches)}.json"
    first = {} if state.exists() else {"epsilon": EPSILON["look"], "batch": 150, "tolerance": 0.05, "looks": 36}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", confide.CoverageWarning)  # a renewal has few records for this tolerance
        watched = watch(
            table([name]), ScoreColumn("score"), released, state=state, look=name, **first,
            ledger=ledger, dataset=hours("batches", name),
        )  # fmt: skip
    covered, missed = watched.looks[-1].counts
    print(f"{name}: {covered} covered, {missed} missed{'   ALARM' if watched.alarm else ''}")
    course.append(scores[batches[name]] <= released.threshold)
    since += 1
    if name == half:
        spring = evaluate(latest[-since:])  # without the calibration records of the threshold
    left = 3 - len(watches) - (name < half)  # one is reserved for May
    if name == half or (watched.alarm and since > 1 and left > 0 and name != names[-1]):
        released, watches, since = renew(latest, len(watches) + 1), [*watches, watched], 0
        thresholds.append(released.threshold)
autumn = evaluate(names[-min(since, 3) :])

# %% [markdown]
# ## Result
#
# In January up to half of the hours are missed, because rentals grow, and the alarm is raised at the first or second batch.
# A renewal on batches that are half of December is too narrow for the following months, and a second alarm is possible.
# By May the season has changed, and the threshold covers nearly everything, so that intervals are too wide. The private
# evaluation finds this, and the planned renewal narrows them. In October rentals grow again. The last evaluation shows it
# even if the monitor, which tolerates five points and includes a good summer, has not raised an alarm yet.

# %%
print("thresholds:", ", ".join(f"{threshold:.3f}" for threshold in thresholds))
every = np.concatenate([batches[name] for name in names])
print(f"covered in the year: {np.concatenate(course).mean():.3f}")
print(f"by the first threshold, had it been kept: {(scores[every] <= thresholds[0]).mean():.3f}")

# %% [markdown]
# ## Privacy cost
#
# The total privacy loss of an hour of this city over all its uses.

# %%
print(f"the privacy loss of an hour is at most {ledger.account('hours').spent().epsilon:g} of {year.epsilon:g}")

# %% [markdown]
# ## Reports
#
# The release with the course of its thresholds and the last evaluation, which may be published with it; each monitor; and
# the ledger.

# %%
if sys.argv[1:]:
    released.save(FOLDER / "release.json", overwrite=True)
    confide.report(released, title="Rentals", evaluation=autumn).save(FOLDER / "release.html", overwrite=True)
    confide.report(ledger, title="What was spent").save(FOLDER / "ledger.html", overwrite=True)
    for number, one in enumerate([*watches, watched]):
        confide.report(one, title=f"Watch {number + 1}").save(FOLDER / f"watch-{number}.html", overwrite=True)
    print("pages:", *sorted(page.name for page in FOLDER.glob("*.html")))
