"""Requests that a ledger of version 0.2.0 has answered, one of each kind; `main` was run once, with that version.

A digest of everything public about a request tells whether the ledger has its release. Today's requests must have the
digests that 0.2 gave them. Arguments that have another default today are stated.
"""

import json
import sqlite3
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

import confide

FILE = Path(__file__).parent / "other" / "requests.ledger"
EXPORT = FILE.with_name("requests.export.json")
RELEASED = Path(__file__).parents[2] / "releases" / "samples" / "0.2" / "renewed.json"


def requests(ledger: confide.Ledger) -> dict[str, Callable[[], Any]]:
    """Requests about records that are always the same."""
    n, rng = 80, np.random.default_rng(3)
    scores, place = rng.random(n), np.array(["north", "south"])[np.arange(n) % 2]
    intervals, labels = np.tile([-1.0, 1.0], (n, 1)), np.arange(9) % 3
    secret: dict[str, Any] = {"candidates": confide.Candidates.unit(10), "n_typical": n}
    public: dict[str, Any] = {"candidates": confide.Candidates.unit(10), "neighbors": "replace_one"}
    groups: dict[str, Any] = {"groups": place, "names": ["north", "south"], "partition": "place"}

    def to(name: str, fingerprint: str | None = None) -> dict[str, Any]:
        return {"ledger": ledger, "dataset": confide.Dataset(name, fingerprint=fingerprint)}

    return {
        "threshold": lambda: confide.calibrate(scores, 0.2, 2.0, delta=0.1, score="lac", **secret, **to("secret n")),
        "zCDP": lambda: confide.calibrate(scores, 0.2, rho=0.5, records_per_person=2, **secret, **to("zCDP")),
        "pps": lambda: confide.calibrate(scores, 0.2, 2.0, mechanism="pps", **public, **to("bound", "0" * 64)),
        "levels": lambda: confide.calibrate_levels(scores, [0.3, 0.2], 4.0, **public, **to("public n")),
        "groups": lambda: confide.calibrate_groups(scores, alpha=0.3, epsilon=2.0, **groups, **secret, **to("places")),
        "sides": lambda: confide.calibrate_sides(intervals, 3 * scores - 1.5, 0.4, 4.0, **public, **to("public n")),
        "evaluation": lambda: confide.evaluate(
            confide.Calibration.load(RELEASED), scores=scores, epsilon=1.0, **to("evaluated")
        ),
        "labels": lambda: confide.randomise_labels(labels, 3, 3.0, **to("labels")),
    }


def main() -> None:
    """Write the ledger and its export."""
    warnings.simplefilter("ignore")
    ledger = confide.Ledger(FILE)
    for ask in requests(ledger).values():
        ask()
    EXPORT.write_text(json.dumps(ledger.export()) + "\n", encoding="utf-8")
    with closing(sqlite3.connect(FILE)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for other in ("-wal", "-shm"):
        FILE.with_name(FILE.name + other).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
