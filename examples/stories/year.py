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
# A threshold is released in November. A year later the world is another one: will anyone have noticed, at what price, and
# what was done about it?
#
# The drift in this story is real. A city's bicycle rentals were counted every hour of 2011 and 2012 (UCI Bike Sharing), and
# in the second year they grew by two thirds. A model that learned the first year is wrong in the second. An hour of the
# city stands for a patient: what is promised to one record here is promised to a patient there.
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
from confide.tables import Scored, recalibrate_table
from confide.watching import watch

ROOT = next(folder for folder in [Path.cwd(), *Path.cwd().parents] if (folder / "experiments").is_dir())
sys.path.insert(0, str(ROOT))
from experiments.federated.data import folder as data_folder  # noqa: E402

SOURCE = data_folder() / "bike_train.csv"
if not SOURCE.is_file():
    sys.exit("needs the file bike_train.csv; set CONFIDE_DATA to the folder that holds it")
FOLDER = Path(sys.argv[1] if sys.argv[1:] else tempfile.mkdtemp())
FOLDER.mkdir(exist_ok=True)

# %% [markdown]
# ## A model and its errors
#
# Ten months train it, on odd days; it predicts the logarithm of the rentals in an hour from weather, weekday and hour. The
# score of a record is by how much the prediction was off.

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
# Before anything is spent it is decided what may be: four thresholds, two private evaluations, a look at each new batch.
# Every hour is in one batch, in one evaluation at most, and in two calibrations at most. The ledger holds everybody to it.

# %%
year = confide.budget_plan(
    3.0, releases=4, releases_per_person=2, evaluations=2, evaluations_per_person=1, looks=36, looks_per_person=1,
    dp_delta=0,
)  # fmt: skip
print(year)
ledger = confide.Ledger(FOLDER / "budget.db")
ledger.follow("hours", year)
EPSILON = {kind: year.entry_for(kind).epsilon for kind in ("calibration", "evaluation", "look")}

# %% [markdown]
# ## November: a threshold
#
# The even days of the ten months calibrate it.

# %%
released = confide.calibrate(
    scores[before & (day % 2 == 0)], 0.1, EPSILON["calibration"], score="absolute_residual", unit=1.0,
    ledger=ledger, dataset="hours", about={"model": "rentals of 2011", "date": "2011-11-01"},
)  # fmt: skip
print(f"released: {released.threshold:.3f}")

# %% [markdown]
# ## Three looks a month
#
# The file has the first nineteen days of every month: a look at the first week, one at the second, one at the rest. Two
# noisy counts leave each batch, of covered and of missed hours. The alarm is rung when, at whatever time one looks, the
# counts are such that a coverage of at least .85 would have led to them with probability .05 at most; one look too many
# does not make it false.
#
# When it rings, the threshold is renewed on the last three batches, and a new watch begins; two batches lie between
# renewals, so that no hour is in more than two of them. In May, and at the end, a private evaluation says how much the
# threshold covers by now.

# %%
batches = {}
for at in np.flatnonzero((month >= "2011-11") & (month < "2012-11")):
    part = 1 + (day[at] > 7) + (day[at] > 14)
    batches.setdefault(f"{month[at]} {part}", []).append(at)
watches, course, since = [], [], 0


def table(batch_names):
    """Scores as a table, which could as well be a file, a folder or a database."""
    return pa.table({"score": scores[np.concatenate([batches[name] for name in batch_names])]})


def renew(batch_names):
    """The same request on newer records: warm-started, charged anew, and the file names what it renews."""
    new = recalibrate_table(
        released, table(batch_names), Scored("score"), n_typical=450, ledger=ledger, dataset="hours",
        about={"date": batch_names[-1]},
    )  # fmt: skip
    print(f"renewed:  {new.threshold:.3f}, on {', '.join(batch_names)}")
    return new


def evaluate(batch_names):
    """Coverage with an interval that holds with the noise; it may be published."""
    records = table(batch_names)["score"].to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", confide.CoverageWarning)  # these records have calibrated nothing
        found = confide.evaluate(
            released, scores=records, epsilon=EPSILON["evaluation"], ledger=ledger, dataset="hours"
        )
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
            table([name]), Scored("score"), released, state=state, look=name, **first,
            ledger=ledger, dataset="hours",
        )  # fmt: skip
    covered, missed = watched.looks[-1].counts
    print(f"{name}: {covered} covered, {missed} missed{'   ALARM' if watched.alarm else ''}")
    course.append(scores[batches[name]] <= released.threshold)
    since += 1
    if name == half:
        spring = evaluate(latest[-since:])  # not what the threshold was calibrated on
    left = ledger.account("hours").left["calibration"] - (name < half)  # one is kept for May
    if name == half or (watched.alarm and since > 1 and left > 0 and name != names[-1]):
        released, watches, since = renew(latest), [*watches, watched], 0
autumn = evaluate(names[-min(since, 3) :])

# %% [markdown]
# ## What has happened
#
# In January the growth shows: up to half of the hours are missed, and the alarm rings at the first or second look. A renewal
# on batches that are half of December is too narrow for what follows, and the alarm may ring again. By May the season has
# changed, and the threshold covers nearly everything, which helps no one: that is what the private evaluation finds, and the
# planned renewal narrows it. In October the growth is felt again. The last evaluation says so even where the watch, which
# tolerates five points and has seen a good summer, has not rung yet.

# %%
print("thresholds:", ", ".join(f"{one.threshold:.3f}" for one in [*released.predecessors, released]))
every = np.concatenate([batches[name] for name in names])
print(f"covered in the year: {np.concatenate(course).mean():.3f}")
print(f"by the first threshold, had it been kept: {(scores[every] <= released.predecessors[0].threshold).mean():.3f}")

# %% [markdown]
# ## What it cost
#
# What an hour of this city has lost, however often it was counted, and what is left of the plan.

# %%
account = ledger.account("hours")
print(f"at most {account.under_schedule.epsilon:g} of {year.epsilon:g} is lost by an hour; left: {account.left}")

# %% [markdown]
# ## Pages for people
#
# The release with the course of its thresholds and the last evaluation, which may be published with it; each watch; and the
# ledger.

# %%
if sys.argv[1:]:
    released.save(FOLDER / "release.json", overwrite=True)
    confide.report(released, title="Rentals", evaluation=autumn).save(FOLDER / "release.html", overwrite=True)
    confide.report(ledger, title="What was spent").save(FOLDER / "ledger.html", overwrite=True)
    for number, one in enumerate([*watches, watched]):
        confide.report(one, title=f"Watch {number + 1}").save(FOLDER / f"watch-{number}.html", overwrite=True)
    print("pages:", *sorted(page.name for page in FOLDER.glob("*.html")))
