"""The five data sets as the paper uses them, and two replacements of the sizes of those that are not distributed.

Features are those of Romano, Patterson and Candes (2019), to whom the paper refers: bike's date becomes hour, weekday,
month and year, its season and weather a column a value.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.small import small
from experiments.cifar10 import data_folder
from experiments.federated import tables

Arrays = tuple[np.ndarray, np.ndarray]
_FEW = ((10, 10), (5, 20))
LARGE, MIDDLE = small(((100, 10), (10, 100)), _FEW), small(((80, 10), (10, 80)), _FEW)
SMALL = small(((40, 10), (10, 40)), _FEW)
_SCORES = [f"{subject}{grade}" for subject in ("read", "math") for grade in ("k", "1", "2", "3")]


def bio() -> Arrays:
    """CASP.csv: the first column is the target."""
    table = pd.read_csv(data_folder() / "CASP.csv")
    return tables.features(table, ["RMSD"]), table["RMSD"].to_numpy(np.float64)


def bike() -> Arrays:
    """bike_train.csv without the two columns that add up to the target."""
    table = pd.read_csv(data_folder() / "bike_train.csv", parse_dates=["datetime"])
    date = table["datetime"].dt
    parts = {"hour": date.hour, "day": date.dayofweek, "month": date.month, "year": date.year - 2011}
    x = pd.get_dummies(table.assign(**parts), columns=["season", "weather"], dtype=float)
    x = x.drop(columns=["datetime", "casual", "registered", "count"])
    return x.to_numpy(np.float64), table["count"].to_numpy(np.float64)


def concrete() -> Arrays:
    """Concrete_Data.csv: the last column is the target."""
    table = pd.read_csv(data_folder() / "Concrete_Data.csv").to_numpy(np.float64)
    return table[:, :-1], table[:, -1]


def community() -> Arrays:
    """communities.data of the UCI repository: no header, five columns that identify, columns with missing values left out."""
    table = pd.read_csv(data_folder() / "communities.data", header=None, na_values="?").iloc[:, 5:]
    kept = table.dropna(axis=1).to_numpy(np.float64)
    return kept[:, :-1], kept[:, -1]


def star() -> Arrays:
    """STAR.csv of the R package AER: the sum of eight test scores, pupils without missing values, strings as numbers."""
    table = pd.read_csv(data_folder() / "STAR.csv").dropna()
    return tables.features(table, _SCORES), table[_SCORES].sum(axis=1).to_numpy(np.float64)


@dataclass(frozen=True)
class DataSet:
    """A data set, the figures that show it and their (m, n).

    Parameters
    ----------
    name
        Name of the stored results.
    title
        Name in the figures.
    load
        Features of shape (rows, columns) and targets.
    file
        File that must be in the data folder.
    records
        Number of records that take part, drawn once at random; all of them by default.
    shapes
        (m, n) with m >> n and with m << n.
    figures
        The paper's figures, for m >> n and for m << n; () for settings of ours.
    published
        Its name in the authors' table.
    """

    name: str
    title: str
    load: Callable[[], Arrays]
    file: str
    records: int | None
    shapes: tuple[tuple[int, int], ...]
    figures: tuple[int, ...] = ()
    published: str | None = None

    @property
    def there(self) -> bool:
        """Return whether its file is in the data folder."""
        return (data_folder() / self.file).exists()

    def arrays(self) -> Arrays:
        """Features and targets of the records that take part."""
        x, y = self.load()
        rows = np.random.default_rng(2023).permutation(len(y))[: self.records]
        return x[rows], y[rows]


DATA_SETS = (
    DataSet("concrete", "concrete", concrete, "Concrete_Data.csv", None, SMALL, (16, 17), "concrete"),
    DataSet("community", "community", community, "communities.data", None, MIDDLE, (12, 13), "community"),
    DataSet("star", "star", star, "STAR.csv", None, MIDDLE, (14, 15), "star"),
    DataSet("bike-2000", "bike, 2000 records in place of community and star", bike, "bike_train.csv", 2000, MIDDLE),
    DataSet(
        "bike-1030", "bike, 1030 records as in the authors' table", bike, "bike_train.csv", 1030, SMALL, (), "bike"
    ),
    DataSet("bio-4000", "bio, 4000 records as in the authors' table", bio, "CASP.csv", 4000, LARGE, (), "bio"),
    DataSet("bike", "bike", bike, "bike_train.csv", None, LARGE, (10, 11), "bike"),
    DataSet("bio", "bio", bio, "CASP.csv", None, LARGE, (8, 9), "bio"),
)
"""Cheapest first. The figures follow the order in which the text names the sets."""
BY_NAME = {one.name: one for one in DATA_SETS}
