"""`python -m experiments [NAME ...]`: run all experiments, or some, from where they stopped, and write docs/experiments."""

import argparse
import importlib

EXPERIMENTS = {
    "cost": "experiments.cost_table",
    "figure2": "experiments.adjusted_level",
    "figure4": "experiments.bins",
    "figure5": "experiments.epsilons",
    "figures1-6": "experiments.medical",
    "figure3": "experiments.pipeline",
}


def main() -> None:
    """Run the named experiments, or all."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*EXPERIMENTS, []], help="which; all of them by default")
    for name in parser.parse_args().names or EXPERIMENTS:
        importlib.import_module(EXPERIMENTS[name]).run()


if __name__ == "__main__":
    main()
