"""Time of each part of the experiments: every part runs in its own process, and its times add up over resumed runs."""

import json
import os
import platform
import resource
import subprocess
import sys
import time
from typing import Any

from experiments.cache import RESULTS, ROOT, write_docs

PARTS = {
    "cost": "experiments.cost_table:run",
    "figure2": "experiments.adjusted_level:run",
    "figure4": "experiments.bins:run",
    "figure5": "experiments.epsilons:run",
    "figures1-6": "experiments.medical:run",
    "figure3": "experiments.pipeline:run",
    "pps-figure2": "experiments.private_prediction_sets.figure2:run",
    "pps-figures4-5": "experiments.private_prediction_sets.figures4_5:run",
    "pps-figures1-6": "experiments.private_prediction_sets.figures1_6:run",
    "federated": "experiments.federated.__main__:main",
    "hospitals": "experiments.federated.hospitals:main",
    "federated-paper": "experiments.federated.paper.runs:default",
}
"""Parts of `nox -s experiments`, in under an hour."""

FULL_PARTS = {
    **{name: code for name, code in PARTS.items() if name.startswith("pps-")},
    "pps-figure3": "experiments.private_prediction_sets.figure3:run",
    "federated-paper-full": "experiments.federated.paper.runs:full",
}
"""Parts of `nox -s experiments -- --full`: the papers' settings in full."""

TIMES = RESULTS / "times.json"


def run_part(name: str, code: str) -> None:
    """Run `module:function` in its own process and add its time, also if it is interrupted or fails."""
    module, function = code.split(":")
    before, start = _child_seconds(), time.monotonic()
    program = f"from {module} import {function}; {function}()"
    part = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT)  # noqa: S603  (our own modules)
    try:
        part.wait()
    finally:
        failed = part.wait()  # Ctrl-C also reaches the part; its times count after it has ended
        times = recorded()
        wall, cpu = times.get(name, (0.0, 0.0))
        times[name] = (wall + time.monotonic() - start, cpu + _child_seconds() - before)
        TIMES.parent.mkdir(parents=True, exist_ok=True)
        TIMES.write_text(json.dumps(times, indent=1), encoding="utf-8")
    if failed:
        sys.exit(f"{name} failed; see above. Run the same command again to continue.")
    sys.stdout.write(f"{name}: {times[name][0]:.0f} s, of processors {times[name][1]:.0f} s\n")


def recorded() -> dict[str, Any]:
    """Wall and processor seconds of each part since the results were empty."""
    return json.loads(TIMES.read_text(encoding="utf-8")) if TIMES.exists() else {}


def write_timing(*, full: bool = False) -> None:
    """Write the page of times; parts that have not run yet are left out and listed below the sum."""
    times, parts = recorded(), FULL_PARTS if full else PARTS
    known = [name for name in parts if name in times]
    lines = [f"| {name} | {times[name][0] / 60:.1f} | {times[name][1] / 60:.1f} |" for name in known]
    wall, cpu = (sum(times[name][i] for name in known) / 60 for i in (0, 1))
    missing = [name for name in parts if name not in times]
    lines.append(f"| **sum** | **{wall:.1f}** | **{cpu:.1f}** |")
    lines += ["", "Not run yet: " + ", ".join(missing) + "."] if missing else []
    page = PAGE.format(
        what="the papers' settings in full" if full else "the experiments",
        command=" --full" if full else "",
        cores=os.cpu_count(),
        machine=platform.machine(),
        table="\n".join(lines),
    )
    write_docs("timing-full.md" if full else "timing.md", page)


def _child_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


PAGE = """# Time: {what}

Written by `python -m experiments{command}` from an empty `experiments/results`. Interrupted parts continue where they
stopped and their times add up. {cores} cores ({machine}), which had other work at the same time: processor minutes are
the parts' own.

| part | minutes | processor minutes |
|---|---:|---:|
{table}
"""
