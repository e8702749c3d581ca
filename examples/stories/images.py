# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Private model, private sets
#
# CIFAR-10 with privacy from end to end: a model trained with DP-SGD on some images, a threshold calibrated with
# differential privacy on others, and the sets of a third part.
#
# Run it from a checkout, with `pip install 'confide[experiments]'`: `python examples/stories/images.py`. It uses 10,000
# images and takes a minute; `CONFIDE_STORY=small` takes fewer. The full experiment, 1000 splits of all images, is
# `python -m experiments --full pps-figure3`.

# %%
import os
import sys
from pathlib import Path

import numpy as np
import torch

import confide

ROOT = next(folder for folder in [Path.cwd(), *Path.cwd().parents] if (folder / "experiments").is_dir())
sys.path.insert(0, str(ROOT))
from experiments import cifar10  # noqa: E402
from experiments.models import build, probabilities, train  # noqa: E402
from experiments.noise_images import Whitening, noise_images  # noqa: E402
from experiments.scattering import Scattering  # noqa: E402

SMALL = os.environ.get("CONFIDE_STORY") == "small"
IMAGES, TRAIN, HELD = (2400, 1200, 600) if SMALL else (10_000, 6000, 2000)

# %% [markdown]
# ## Images
#
# From the folder that `CONFIDE_DATA` names, or downloaded once and checked by hash.

# %%
try:
    pictures, labels = cifar10.load("test")
except OSError as error:
    sys.exit(
        f"needs CIFAR-10: set CONFIDE_DATA to the folder that holds cifar10_test.parquet, or allow the download ({error})"
    )
order = np.random.default_rng(0).permutation(len(labels))[:IMAGES]
pictures, labels = pictures[order], labels[order]
part_train, part_held, part_new = slice(0, TRAIN), slice(TRAIN, TRAIN + HELD), slice(TRAIN + HELD, None)

# %% [markdown]
# ## Features that use no training data
#
# A network trained from scratch under DP-SGD is poor with so few images. Fixed features and one trained linear layer are
# better (Tramer and Boneh 2021): a scattering transform of wavelets and moduli, with nothing learned. They are whitened
# with their covariance on images of pure noise, which contain no personal data.

# %%
torch.set_num_threads(2)
transform = Scattering()
whiten = Whitening(transform, noise_images(500, np.random.default_rng(0)))
features = torch.cat([whiten(transform(pictures[i : i + 50])) for i in range(0, IMAGES, 50)])
print(f"{features[0].numel()} features per image")

# %% [markdown]
# ## A model with differential privacy
#
# Opacus chooses the noise for epsilon = 8, delta = 1e-5. The seed is for this page. Train a model for publication without
# one and with Opacus' secure mode.

# %%
model = build("scattering")
settings = {"epochs": 6 if SMALL else 15, "batch": 600 if SMALL else 2000, "rate": 2.0, "accountant": "rdp"}
spent = train(model, features[part_train], torch.tensor(labels[part_train]), epsilon=8.0, delta=1e-5, **settings)
p = probabilities(model, features)
right = (p.argmax(1) == labels)[part_new].mean()
print(f"accuracy {right:.2f} for epsilon {spent['epsilon']:.2f}, delta {spent['delta']:g}")

# %% [markdown]
# ## A threshold with differential privacy
#
# 90 % coverage at epsilon = 1, once with the noise that privacy needs and once without, to show the price.

# %%
scores = confide.lac_score(p[part_held], labels[part_held])
released = confide.calibrate(scores, alpha=0.1, epsilon=1.0)
bare = confide.calibrate(scores, alpha=0.1, mechanism="none", neighbors="replace_one")
for name, calibration in (("private", released), ("not private", bare)):
    sets = confide.predict_set(p[part_new], calibration, classes=list(cifar10.CLASSES))
    covered = confide.evaluation.coverage(sets.contains(np.array(cifar10.CLASSES)[labels[part_new]]))
    print(f"{name:12} threshold {calibration.threshold:.3f}, coverage {covered}, mean size {sets.sizes.mean():.2f}")

# %% [markdown]
# ## Examples of sets

# %%
sets = confide.predict_set(p[part_new], released, classes=list(cifar10.CLASSES))
for label, names in zip(labels[part_new][:6], sets.labels()[:6], strict=True):
    print(f"{cifar10.CLASSES[label]:10} {', '.join(names) or '(empty)'}")

# %% [markdown]
# ## Protection
#
# - Each training image: (8, 1e-5). Each calibration image: 1, against every reader of the threshold or of any number of
#   sets. No image is in both parts, so the two do not add up.
# - Not protected: the images for which sets are predicted, and the accuracies and coverages printed above.

# %%
print(released)
