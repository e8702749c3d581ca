"""Stopping times of dpsprt's DP-SPRT, in the environment of the peers: parameters and results are JSON."""

import json
import sys

import numpy as np
from dpsprt.core import dp_sprt_laplace

given = json.loads(sys.argv[1])
rng = np.random.default_rng(given["seed"])
times = []
for _ in range(given["paths"]):
    missed = rng.random(given["before"] + given["records"])
    missed[: given["before"]] = missed[: given["before"]] < given["share"]
    missed[given["before"] :] = missed[given["before"] :] < given["dropped_share"]
    decision, stopped, _ = dp_sprt_laplace(
        missed, given["tested"], given["feared"], given["error"], given["beta"], given["epsilon"],
        random_seed=int(rng.integers(2**31)),
    )  # fmt: skip
    times.append(stopped if decision == 1 else None)
print(json.dumps(times))
