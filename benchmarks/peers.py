"""Speed, memory, coverage and set size compared with other conformal libraries: `nox -s bench-peers`.

    python -m benchmarks.peers [PEERS_PYTHON [lac] [aps] [raps]]

30,000 x 1000 calibration and 20,000 x 1000 test probabilities, float32, labels drawn from them. Every library runs in
its own process, and the best of several runs counts. The other libraries have a separate environment.

For APS and RAPS, confide has two rows. A process that makes many calls loads Numba in one of them. In the row of one
call every process calibrates and predicts once, which does not load it; the best of several processes counts.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.small import small

ROWS, NEW, CLASSES = small((30_000, 20_000, 1000), (500, 300, 20))
WORKER = Path(__file__).with_name("peers_worker.py")
MANY_CALLS, ONE_CALL = "confide, many calls", "confide, one call"
CASES = {
    "lac": ("numpy", "confide", "TorchCP", "MAPIE", "puncc", "crepes"),
    "aps": ("numpy", MANY_CALLS, ONE_CALL, "TorchCP", "puncc", "MAPIE"),
    "raps": ("numpy", MANY_CALLS, ONE_CALL, "TorchCP", "puncc", "MAPIE"),
}
OURS = ("numpy", "confide", MANY_CALLS, ONE_CALL)
PROCESSES = small(5, 1)


def probabilities(rng, n, k):
    """Softmax of normal logits of standard deviation 4, and labels drawn from it."""
    p = np.empty((n, k), dtype=np.float32)
    y = np.empty(n, dtype=np.int64)
    for i in range(0, n, 1000):
        logits = 4 * rng.standard_normal((min(1000, n - i), k))
        block = np.exp(logits - logits.max(axis=1, keepdims=True))
        block /= block.sum(axis=1, keepdims=True)
        p[i : i + 1000] = block
        y[i : i + 1000] = np.minimum((np.cumsum(block, axis=1) < rng.random((len(block), 1))).sum(axis=1), k - 1)
    return p, y


def measure(python, folder, library, score):
    """The shortest times of a library; for one call to a process, of several processes. None if it failed."""
    rows = [measure_process(python, folder, library, score) for _ in range(PROCESSES if library == ONE_CALL else 1)]
    if None in rows:
        return None
    return rows[0] | {name: min(row[name] for row in rows) for name in ("calibrate", "predict")}


def measure_process(python, folder, library, score):
    done = subprocess.run(
        [python, str(WORKER), folder, library, score], capture_output=True, text=True, check=False, timeout=900
    )
    if done.returncode:
        print(
            f"{library} {score}: {done.stderr.strip().splitlines()[-1] if done.stderr else 'failed'}", file=sys.stderr
        )
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def table(score, rows):
    totals = {library: row["calibrate"] + row["predict"] for library, row in rows.items() if row is not None}
    lines = [
        f"| {score.upper()} | calibrate ms | predict ms | total ms | vs numpy | extra MB | coverage | size |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for library, row in rows.items():
        if row is not None:
            total = totals[library]
            lines.append(
                f"| {library} | {1e3 * row['calibrate']:.1f} | {1e3 * row['predict']:.1f} | {1e3 * total:.1f} "
                f"| {total / totals['numpy']:.2f} | {row['peak']:.0f} | {row['coverage']:.4f} | {row['size']:.2f} |"
            )
    peers = [total for library, total in totals.items() if library not in OURS]
    for library in OURS[1:]:
        if peers and library in totals:
            lines.append(f"\nThe fastest peer takes {min(peers) / totals[library]:.1f} times as long as {library}.")
    return "\n".join(lines)


def main(peers_python=None, *chosen):
    """Print the tables; return 1 if a library failed in one of them."""
    chosen = chosen or CASES
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(0)
        for name, n in (("_cal", ROWS), ("", NEW)):
            p, y = probabilities(rng, n, CLASSES)
            np.save(Path(folder) / f"p{name}.npy", p)
            np.save(Path(folder) / f"y{name}.npy", y)
        del p
        for score, libraries in CASES.items():
            if score in chosen:
                rows = {}
                for library in libraries:
                    python = sys.executable if library in OURS else peers_python
                    if python:
                        rows[library] = measure(python, folder, library, score)
                print(table(score, rows) + "\n", flush=True)
                failed |= None in rows.values()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
