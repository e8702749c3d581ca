# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Four hospitals, one model
#
# Cleveland, Budapest, Switzerland and Long Beach recorded the same thirteen things about patients with chest pain, and whether
# heart disease was found (Detrano et al. 1989; UCI Heart Disease). They may not pool their patients. Two of them train a
# model; all four want sets that hold the truth for 80 % of the patients, and no one outside a hospital is to learn whether
# a given patient was among those it calibrated on.
#
# Run it from a checkout: `python examples/stories/hospitals.py`.

# %%
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

import confide
from confide import federated
from confide.federated.silo_report import coverage_in_silo, own_calibration, shrunk_threshold

ROOT = next(folder for folder in [Path.cwd(), *Path.cwd().parents] if (folder / "experiments").is_dir())
sys.path.insert(0, str(ROOT))
from experiments.federated.data import folder as data_folder  # noqa: E402
from experiments.federated.heart import NAMES, read  # noqa: E402

if not (data_folder() / "uci_heart").is_dir():
    sys.exit(
        "needs the folder uci_heart with the four hospitals' CSV files; set CONFIDE_DATA to the folder that holds it"
    )

# %% [markdown]
# ## Who has what
#
# A third of each hospital's patients is for calibration, a third stands for the patients to come, and the rest is for
# training where the model is trained. Switzerland and Long Beach see sicker patients than the others: the hospitals are not
# alike, which will matter.

# %%
rng = np.random.default_rng(0)
training, calibration, later = {}, {}, {}
for name in NAMES:
    features, disease = read(name)
    order = rng.permutation(len(disease))
    third = len(order) // 3
    for part, rows in ((training, order[:third]), (calibration, order[third : 2 * third]), (later, order[2 * third :])):
        part[name] = features[rows], disease[rows]
    print(f"{name:12} {len(disease)} patients, {disease.mean():.0%} with heart disease")

# %% [markdown]
# ## One model
#
# Trained on a third of the patients of the first two hospitals. Its training patients are *not* protected by what
# follows; they agreed, or the model is trained privately (see the image story).

# %%
known = [np.concatenate([training[name][i] for name in NAMES[:2]]) for i in (0, 1)]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # scikit-learn, about columns that one hospital never recorded
    model = HistGradientBoostingClassifier(max_iter=60, max_depth=3, random_state=0).fit(*known)


def scores(part):
    """One number per patient: one minus the probability that the model gave to what was found."""
    return {name: confide.lac_score(model.predict_proba(x), y) for name, (x, y) in part.items()}


own_scores, later_scores = scores(calibration), scores(later)

# %% [markdown]
# ## One plan
#
# Each hospital has keys, and has compared the coordinator's fingerprint by phone. The coordinator signs a plan before any
# data is touched; it says what will be promised and what it will cost each patient, and every hospital can refuse.
#
# `secure-sum` adds the hospitals' histograms of scores under masks and noise; only the sum is ever opened. It is the method
# for hospitals that are not alike: the promise is for a patient from a hospital drawn by its size.

# %%
ALPHA, EPSILON = 0.2, 4.0
grid = confide.Candidates.unit(41)
coordinator = federated.SiloKeys.generate("coordinator")
keys = {name: federated.SiloKeys.generate(name) for name in NAMES}
invited = [keys[name].public(size=len(own_scores[name])) for name in NAMES]
plan = federated.plan(invited, ALPHA, EPSILON, method="secure-sum", score="lac", candidates=grid)
letter = plan.sign(coordinator)
print(plan.privacy())
for answers, promise in plan.promises().items():
    print(f"{answers} answers: coverage at least {promise.coverage:.3f}")

# %% [markdown]
# ## One answer each
#
# What a hospital sends is a vector of masked counts, worthless alone. Its ledger charges the loss before the records
# are used and refuses what exceeds its budget.

# %%
peers = {silo.name: silo.identity for silo in invited}
policy = federated.Policy(coordinator.public().signing, budget=EPSILON, per_plan=EPSILON, peers=peers)
with tempfile.TemporaryDirectory() as room:
    replies = [
        federated.answer(letter, own_scores[name], keys[name], policy, federated.SiloLedger(f"{room}/{name}.db"))
        for name in NAMES
    ]
released = federated.aggregate(letter, replies)
print(released)

# %% [markdown]
# ## What does it mean for a patient?

# %%
patient = later["cleveland"][0][:3]
sets = confide.predict_set(model.predict_proba(patient), released, classes=["no disease", "disease"])
for labels in sets.labels():
    print(" or ".join(labels) or "neither: unlike the patients that calibrated")

# %% [markdown]
# ## Does one threshold serve all four?
#
# On average, as promised. Hospital by hospital, not necessarily: the model knows the first two. The left column needs
# labels and is not private; the right one is what a hospital could tell the others, at epsilon = 1 of its own.

# %%
covered = {name: later_scores[name] <= released.threshold for name in NAMES}
print(f"all together {np.concatenate(list(covered.values())).mean():.3f}")
for name in NAMES:
    estimated = coverage_in_silo(name, later_scores[name], released.threshold, epsilon=1.0)
    print(f"{name:12} {covered[name].mean():.3f}   reported: {estimated.estimate}")

# %% [markdown]
# ## What can a hospital do that is covered too little?
#
# Calibrate for itself, from its own budget. With a few dozen patients a threshold at 80 % is noisy; a safety net at 70 % is
# less so. The larger of the net and the common threshold holds for the hospital itself at 70 %, whatever the others are
# like, and at 80 % if they are alike.

# %%
with warnings.catch_warnings():
    warnings.simplefilter("ignore", confide.CoverageWarning)  # +inf is an honest answer here
    for name in NAMES:
        alone = own_calibration(own_scores[name], ALPHA, EPSILON, score="lac", candidates=grid)
        net = own_calibration(own_scores[name], 0.3, EPSILON, score="lac", candidates=grid)
        threshold = shrunk_threshold(released, net)
        print(
            f"{name:12} common {released.threshold:.3f}, alone {alone.threshold:.3f}, with the net {threshold:.3f}: "
            f"covers {(later_scores[name] <= threshold).mean():.3f}"
        )

# %% [markdown]
# A patient of this story has lost epsilon = 4 to the common threshold, and what their own hospital spent as well. The losses
# add up: in earnest, each hospital would decide on one of these releases, and keep count in its ledger.
