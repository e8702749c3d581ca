"""Four real hospitals: diagnoses of heart disease. Imports no plotting."""

import csv

import numpy as np

from experiments.cifar10 import data_folder

NAMES = ("cleveland", "hungarian", "switzerland", "va")


def read(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features with NaN for missing values, and the diagnosis."""
    with (data_folder() / "uci_heart" / f"{name}.csv").open() as file:
        rows = list(csv.reader(file))[1:]
    table = np.array([[float(v) if v.strip() not in ("?", "") else np.nan for v in row] for row in rows])
    return table[:, :-1], (table[:, -1] > 0).astype(int)
