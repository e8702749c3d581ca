"""The first call of a process: its processor seconds, imports included.

Run as `python -m benchmarks.first_call`. Every line is a separate process, run five times; the least is printed. A
server that applies a release, a script that calibrates once, and a job of the command line need this time before their
first record.
"""

import tempfile
from pathlib import Path

from benchmarks.small import small
from benchmarks.timing import cost_of

REPEATS = small(5, 1)

_SCORES = "import numpy as np, confide; scores = np.random.default_rng(0).random(1000); "
_CALIBRATE = _SCORES + "confide.calibrate(scores, alpha=0.1, epsilon=1.0, score='lac', neighbors={!r})"
_APPLY = "import numpy as np, confide; released = confide.load('released.json'); "
_COMMAND = "calibrate records.csv --probabilities p_* --label y --alpha 0.1 --epsilon 1 --out again.json --force"
_WRITE = """
import csv, numpy as np, confide
rng = np.random.default_rng(0)
with open("records.csv", "w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(["p_a", "p_b", "p_c", "y"])
    for p in rng.dirichlet([6, 2, 1], size=1000):
        rows.writerow([*p, rng.choice(["a", "b", "c"], p=p)])
confide.calibrate(rng.random(1000), alpha=0.1, epsilon=1.0, score="lac").save("released.json")
"""
PROCESSES = {
    "`import numpy`": "import numpy",
    "`import confide`": "import confide",
    "read a release, apply it to one record": _APPLY + "confide.predict_set(np.full((1, 3), 1 / 3), released)",
    "`calibrate` 1000 scores, n public": _CALIBRATE.format("replace_one"),
    "`calibrate` 1000 scores, n secret": _CALIBRATE.format("add_remove"),
    "`confide calibrate` of a CSV file with 1000 rows": f"from confide.cli import main; main({_COMMAND.split()!r})",
}


def main() -> None:
    """Print a table of processor seconds."""
    print("| | now |\n|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cost_of(["-c", _WRITE], folder, 1)
        for shown, program in PROCESSES.items():
            print(f"| {shown} | {cost_of(['-c', program], folder, REPEATS).processor:.2f} |", flush=True)


if __name__ == "__main__":
    main()
