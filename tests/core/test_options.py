"""Every argument of `calibrate` that is passed to a related function is used there or raises an error with its name."""

import inspect
import warnings
from fractions import Fraction

import numpy as np
import pytest

import confide
from confide import tables
from confide.core import Options
from confide.counting import ScoreHistogram
from confide.errors import InputError
from confide.mechanisms import Chosen
from tests.builders import slow
from tests.refused import refused

RNG = np.random.default_rng(0)
N = 600
SCORES, HALF = RNG.random(N), np.arange(N) % 2
P = RNG.random((N, 2))
TRUTH = RNG.random((N, 2)) < 0.5
IMAGES = [(p[:, None, None].repeat(2, 1).repeat(2, 2), RNG.random((2, 2, 2)) < 0.5) for p in P]
EDGES = confide.Candidates.unit(40)
COUNTS = ScoreHistogram.from_scores(SCORES, EDGES)
LOSSES = np.clip(SCORES[:, None] - EDGES.edges, 0, 1)


def _table():
    import pyarrow as pa

    return pa.table({"s": SCORES, "g": HALF})


SIMILAR = {
    "calibrate": lambda **o: confide.calibrate(SCORES, 0.2, **o),
    "calibrate of levels": lambda **o: confide.calibrate(SCORES, [0.3, 0.2], **o),
    "calibrate of groups": lambda **o: confide.calibrate(SCORES, 0.2, **{"groups": HALF, "names": [0, 1]} | o),
    "calibrate_sides": lambda **o: confide.calibrate_sides(np.column_stack([SCORES, SCORES + 1]), SCORES, 0.3, **o),
    "calibrate_histogram": lambda **o: confide.calibrate_histogram(COUNTS, 0.2, **o),
    "calibrate_histogram of levels": lambda **o: confide.calibrate_histogram(COUNTS, [0.3, 0.2], **o),
    "calibrate_histogram of groups": lambda **o: confide.calibrate_histogram({0: COUNTS, 1: COUNTS}, 0.2, **o),
    "calibrate_false_negatives": lambda **o: confide.calibrate_false_negatives(P, TRUTH, 0.2, **o),
    "calibrate_losses": lambda **o: confide.calibrate_losses(LOSSES, EDGES, 0.2, loss="own", **o),
    "calibrate_masks": lambda **o: confide.calibrate_masks(IMAGES, 0.2, **o),
    "calibrate_table": lambda **o: tables.calibrate_table(_table(), tables.ScoreColumn("s"), 0.2, **o),
}
OPTIONS = {
    "score": "my score",
    "classes": ["no", "yes"],
    "about": {"model": "a model"},
    "fingerprint": confide.ModelFingerprint.of(P),
    "candidates": 55,
    "unit": 3.0,
    "chosen": Chosen("a", ("a", "b"), Fraction(1, 5), 0.1),
    "rho": 0.3,
    "neighbors": "replace_one",
    "n_min": 100,
    "delta": 0.1,
    "records_per_person": 2,
    "mechanism": "noisy-histogram",
    "ledger": None,  # with `dataset`; see the test
    "dataset": None,
    "again": True,
    "class_weights": {0: 1, 1: 2},  # with `labels`
    "labels": HALF,
    "weights": SCORES,  # with `weight_bound`
    "weight_bound": 1.0,
    "groups": HALF,  # with `names`
    "names": [1, 0],
    "by": "class",
    "shares": ["0.3", "0.7"],
}
INTERNAL = {"n": 500, "accounts": {}, "parts": 2, "known_later": True, "partition": "x"}
TOGETHER = {
    "labels": "class_weights",
    "class_weights": "labels",
    "weights": "weight_bound",
    "weight_bound": "weights",
    "groups": "names",
    "names": "groups",
    "ledger": "dataset",
    "dataset": "ledger",
}


def _called(call, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(**{"epsilon": 4.0, **options})


def test_the_table_has_all_arguments():
    known = {
        name for name, one in inspect.signature(confide.calibrate).parameters.items() if one.kind is one.KEYWORD_ONLY
    }
    assert set(OPTIONS) == known | Options.__optional_keys__ - {"partition"}


def _check_refusal(error, name, option):
    """The error names the argument and the public call, and nothing inside the library."""
    said = str(error)
    assert option in said or TOGETHER.get(option, option) in said
    assert not any(word in said for word in ("price_", "suited_", "_terms"))
    assert isinstance(error, confide.ConfideError) or f"{name.split()[0]}()" in said
    assert name != "calibrate" or option in INTERNAL or option in ("again", "unit", "by", "shares")


@pytest.mark.parametrize("option", [*INTERNAL, *slow(OPTIONS)])
@pytest.mark.parametrize("name", SIMILAR)
def test_every_argument_is_used_or_raises_with_its_name(name, option, tmp_path):
    call, given = SIMILAR[name], {**OPTIONS, **INTERNAL}
    given["weights"] = "s" if name == "calibrate_table" else SCORES  # for a table, the name of its column
    asked = {one: given[one] for one in (option, TOGETHER.get(option)) if one is not None}
    ledger = None
    if option in ("ledger", "dataset"):
        ledger = confide.Ledger(tmp_path / "ledger.db")
        asked = {"ledger": ledger, "dataset": "data"} | ({"partition": "half"} if "groups" in name else {})
    if option == "rho":
        asked["epsilon"] = None
    try:
        made = _called(call, **asked)
    except (InputError, TypeError) as error:
        _check_refusal(error, name, option)
        return
    if ledger is not None:
        assert ledger.accounts()["data"].entries
    else:
        assert made.request != _called(call).request, f"{name} swallows {option}"


def test_formerly_ignored_arguments_raise_with_their_name():
    with refused(confide.InputTypeError, "n"):
        confide.calibrate(SCORES, [0.3, 0.2], 1.0, n=500)
    with refused(confide.InputTypeError, "n"):
        confide.calibrate(SCORES, 0.2, 1.0, groups=HALF, names=[0, 1], n=500)
    with refused(InputError, "ledger"):
        confide.calibrate(SCORES, 0.2, 1.0, groups=HALF, names=[0, 1], partition="half")
    with refused(InputError, "classes"):
        tables.calibrate_table({"p_0": P[:, 0]}, tables.ClassColumns("p_*", "y"), 0.2, 1.0, classes=["a"])


def test_an_array_as_a_column_raises_without_its_values():
    with refused(confide.InputTypeError, "column"):
        tables.calibrate_table(_table(), tables.ScoreColumn("s"), 0.2, 1.0, weights=SCORES, weight_bound=1.0)
