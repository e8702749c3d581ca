"""`python -m experiments [--full] [NAME ...]`: run experiments from where they stopped.

Without `--full` the parts are `PARTS`, which together stay under an hour. With it they are `FULL_PARTS`: the papers' own
settings, in unlimited time. Each registry maps a part's name to `module:function`. The function takes no arguments and
stores every long unit under a name in `cache.cached`, so that an interrupted run continues. It writes pictures, and by
`cache.write_tables` the tables of its page in docs/experiments, whose text is written by hand.
"""

import argparse
import subprocess
import sys

from experiments.cache import ROOT

PARTS = {
    "cost": "experiments.cost_table:run",
    "pps-figure2": "experiments.private_prediction_sets.figure2:run",
    "pps-figures4-5": "experiments.private_prediction_sets.figures4_5:run",
    "pps-figures1-6": "experiments.private_prediction_sets.figures1_6:run",
    "federated-paper": "experiments.federated.paper.runs:default",
}
"""Parts of `nox -s experiments`, in under an hour."""

FULL_PARTS = {
    **{name: code for name, code in PARTS.items() if name.startswith("pps-")},
    "pps-figure3": "experiments.private_prediction_sets.figure3:run",
    "federated-paper-full": "experiments.federated.paper.runs:full",
}
"""Parts of `nox -s experiments -- --full`: the papers' settings in full."""


def run_part(name: str, code: str) -> None:
    """Run `module:function` in its own process."""
    module, function = code.split(":")
    program = f"from {module} import {function}; {function}()"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False)  # noqa: S603  (our own modules)
    if done.returncode:
        sys.exit(f"{name} failed; see above. Run the same command again to continue.")


def main() -> None:
    """Run the named experiments, or all."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("--full", action="store_true", help="the papers' full settings, whatever they take")
    parser.add_argument("names", nargs="*", help="which; all of them by default: " + ", ".join({**PARTS, **FULL_PARTS}))
    options = parser.parse_args()
    parts = FULL_PARTS if options.full else PARTS
    unknown = [name for name in options.names if name not in parts]
    if unknown:
        parser.error(f"{unknown[0]} is none of {', '.join(parts)}" + ("" if options.full else " (see --full)"))
    for name in options.names or parts:
        run_part(name, parts[name])


if __name__ == "__main__":
    main()
