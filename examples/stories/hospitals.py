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
# Cleveland, Budapest, Switzerland and Long Beach recorded the same thirteen features of patients with chest pain, and the
# diagnosis of heart disease (Detrano et al. 1989; UCI Heart Disease). They may not pool their patients. Two of them train
# a model. All four need sets that contain the true label of 80 % of the patients. An attacker outside a hospital must not
# learn whether a given patient was among its calibration records.
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

ROOT = next(folder for folder in [Path.cwd(), *Path.cwd().parents] if (folder / "experiments").is_dir())
sys.path.insert(0, str(ROOT))
from experiments.cifar10 import data_folder  # noqa: E402
from experiments.federated.heart import NAMES, read  # noqa: E402

if not (data_folder() / "uci_heart").is_dir():
    sys.exit(
        "needs the folder uci_heart with the four hospitals' CSV files; set CONFIDE_DATA to the folder that holds it"
    )

# %% [markdown]
# ## Data
#
# A third of each hospital's patients is for calibration, a third represents new patients, and the rest is for training
# where the model is trained. Switzerland and Long Beach have sicker patients than the others: the hospitals are non-IID,
# which matters below.

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
# The model is trained on a third of the patients of the first two hospitals. The steps below do *not* protect these
# patients: they agreed, or the model is trained privately (see the image story).

# %%
joined = [np.concatenate([training[name][i] for name in NAMES[:2]]) for i in (0, 1)]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # scikit-learn, about columns that one hospital never recorded
    model = HistGradientBoostingClassifier(max_iter=60, max_depth=3, random_state=0).fit(*joined)


def scores(part):
    """Return one score per patient: one minus the model's probability of the true diagnosis."""
    return {name: confide.lac_score(model.predict_proba(x), y) for name, (x, y) in part.items()}


own_scores, later_scores = scores(calibration), scores(later)

# %% [markdown]
# ## One plan
#
# Each hospital has keys, and has compared the coordinator's fingerprint by phone. The coordinator signs a plan before any
# data are used. The plan states the guarantee and the privacy cost for each patient, and every hospital can reject it.
#
# `secure-sum` adds the hospitals' histograms of scores under masks and noise, and only the sum is revealed. It is the
# method for non-IID hospitals: the guarantee is for a patient from a hospital drawn by its size.

# %%
ALPHA, EPSILON = 0.2, 4.0
grid = confide.Candidates.unit(41)
coordinator = federated.SiloKeys.generate("coordinator")
keys = {name: federated.SiloKeys.generate(name) for name in NAMES}
invited = [keys[name].public(size=len(own_scores[name])) for name in NAMES]
plan = federated.plan(invited, ALPHA, EPSILON, method="secure-sum", score="lac", candidates=grid)
signed_plan = plan.sign(coordinator)
print(plan.privacy())
for answers, promise in plan.promises().items():
    print(f"{answers} answers: coverage at least {promise.coverage:.3f}")

# %% [markdown]
# ## One answer each
#
# A hospital sends a vector of masked counts, which reveals nothing alone. Its ledger charges the privacy loss before the
# records are used and rejects a charge that exceeds its budget.

# %%
peers = {silo.name: silo.identity for silo in invited}
policy = federated.Policy(coordinator.public().signing, budget=EPSILON, per_plan=EPSILON, peers=peers)
with tempfile.TemporaryDirectory() as folder:
    replies = [
        federated.answer(signed_plan, own_scores[name], keys[name], policy, federated.SiloLedger(f"{folder}/{name}.db"))
        for name in NAMES
    ]
released = federated.aggregate(signed_plan, replies)
print(released)

# %% [markdown]
# ## Sets of patients

# %%
patient = later["cleveland"][0][:3]
sets = confide.predict_set(model.predict_proba(patient), released, classes=["no disease", "disease"])
for labels in sets.labels():
    print(" or ".join(labels) or "neither: both labels conform less than the threshold allows")

# %% [markdown]
# ## Coverage in each hospital
#
# The guarantee is an average over the hospitals. Coverage in one hospital can be lower: the model was trained at the first
# two. The left column needs labels and is not private. The right one is private, with epsilon = 1 of its own, so that a
# hospital could report it to the others.

# %%
covered = {name: later_scores[name] <= released.threshold for name in NAMES}
print(f"all together {np.concatenate(list(covered.values())).mean():.3f}")
for name in NAMES:
    found = confide.evaluate(released, scores=later_scores[name], epsilon=1.0, neighbors="replace_one")
    print(f"{name:12} {covered[name].mean():.3f}   reported: {found.coverage}")

# %% [markdown]
# ## A safety net for a hospital with low coverage
#
# A hospital can calibrate for itself, from its own budget. With a few dozen patients a threshold at 80 % is noisy; a
# safety net at 70 % is less noisy. The larger of the net and the common threshold has 70 % coverage in the hospital
# itself, for all other hospitals, and 80 % if the hospitals are IID.

# %%
with warnings.catch_warnings():
    warnings.simplefilter("ignore", confide.CoverageWarning)  # +inf is a valid answer here
    for name in NAMES:
        request = {"score": "lac", "candidates": grid, "neighbors": "replace_one"}
        alone = confide.calibrate(own_scores[name], ALPHA, EPSILON, **request)
        net = confide.calibrate(own_scores[name], 0.3, EPSILON, **request)
        threshold = max(released.threshold, net.threshold)
        print(
            f"{name:12} common {released.threshold:.3f}, alone {alone.threshold:.3f}, with the net {threshold:.3f}: "
            f"covers {(later_scores[name] <= threshold).mean():.3f}"
        )

# %% [markdown]
# A patient of this story has a privacy loss of epsilon = 4 from the common threshold, and also the loss of the releases of
# their own hospital. The losses add up. In practice each hospital would choose one of these releases and record it in its
# ledger.
