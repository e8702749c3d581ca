"""The arguments of the Python API that each command takes, by options or by `--set NAME=VALUE`; and names as values.

They are stated here, so that `--help` needs neither NumPy nor a table's engine; a test compares them with the API.
"""

from typing import Literal, TypeAlias, get_args

# Values of options

Neighbors: TypeAlias = Literal["add_remove", "replace_one"]
NEIGHBORS = get_args(Neighbors)
RULES = ("basic", "zcdp")
METHODS = ("private-qq", "secure-sum", "fedcp2-qq", "fedcp2-qq-sum")
DIALECTS = ("duckdb", "postgres", "spark", "databricks", "snowflake", "bigquery", "datafusion")

# Arguments

COLUMN_NAMES = (
    "probabilities", "label", "classes", "score", "label_positions", "logits", "prediction", "target", "column",
    "losses", "loss", "bound", "truth",
)  # fmt: skip
"""The arguments that name the columns of a score, and the score."""

PEOPLE = "people"
READING = ("decimal", "skip_incomplete")
ACCOUNTING = ("one_cell", "charged_by", "ledger_key")
"""The arguments of a ledger's charge that have no option."""

REQUEST_NAMES = (
    "alpha", "epsilon", "rho", "neighbors", "n", "n_min", "delta", "records_per_person", "mechanism", "candidates",
    "unit", "by", "groups", "by_class", "partition", "shares", "share_low", "class_weights", "weights", "weight_bound",
    "skip_incomplete", "about", "fingerprint",
)  # fmt: skip
CHOICE_NAMES = ("choose", "choice_share", "largest_size")
NOISE_NAMES = ("noise", "n_noisy", "n_noise")

NAMES = frozenset([*COLUMN_NAMES, *READING, *REQUEST_NAMES, *CHOICE_NAMES, *NOISE_NAMES, PEOPLE])
"""The names that a request may state."""

CALIBRATE = NAMES | {*ACCOUNTING}

RENEWED = ("epsilon", "rho", "candidates", "about", "fingerprint", "by", "n", "weights", "partition")
RECALIBRATE = frozenset([*COLUMN_NAMES, *READING, *RENEWED, PEOPLE, *ACCOUNTING])
"""The arguments of a renewal; all others are those of the release."""

PREDICT = frozenset(
    [*READING, "probabilities", "classes", "prediction", "logits", "alpha", "by", "keep", "fingerprint"]
)

PRIVATE_NAMES = (
    "epsilon", "neighbors", "n", "records_per_person", "group_names", "parts", "width_bins", "confidence",
)  # fmt: skip
EVALUATE = frozenset([*COLUMN_NAMES, *READING, *PRIVATE_NAMES, *ACCOUNTING, PEOPLE]).union(
    ("candidates", "alpha", "by", "examples", "fingerprint")
)

LOOK_NAMES = (
    "batch", "tolerance", "looks", "error", "neighbors", "records_per_person", "reference", "correct", "delay",
    "epsilon", "unlabelled",
)  # fmt: skip
WATCH = frozenset([*COLUMN_NAMES, *READING, *LOOK_NAMES, "alpha", "by", "fingerprint", *ACCOUNTING])

PLAN_NAMES = (
    "about", "candidates", "classes", "closes", "colluding", "delta", "dropouts", "liars", "method", "missing", "n_min",
    "n_typical", "neighbors", "population", "score", "shares", "unit",
)  # fmt: skip
"""The choices of a federation's plan."""

FEDERATED_PLAN = NAMES | {*PLAN_NAMES}
ANSWER = frozenset([*COLUMN_NAMES, *READING, PEOPLE, "by"])
