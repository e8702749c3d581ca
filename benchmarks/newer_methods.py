"""Newer methods by others beside ours: what they certify, and what they cover.

python -m benchmarks.newer_methods              every table, in about a minute
python -m benchmarks.newer_methods rob-fcp      the table of docs/federated-liars.md
"""

import argparse
from collections.abc import Callable, Iterator

from confide.papers import rob_fcp


def rob_fcp_table() -> Iterator[str]:
    """Rob-FCP's lower bound of coverage for 17 honest silos and 3 liars; below 0 it says nothing."""
    bins = (2, 10, 100)
    yield f"| scores per silo | {' | '.join(f'H = {h}' for h in bins)} |"
    yield "|" + "---|" * (1 + len(bins))
    for n in (200, 1000, 10000, 100000):
        yield f"| {n} | {' | '.join(short(rob_fcp.lower_bound(17, 3, n, h)) for h in bins)} |"


def short(value: float) -> str:
    """Three digits, without a leading zero: .574, -20.2."""
    text = f"{value:.3f}" if abs(value) < 1 else f"{value:.3g}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


TABLES: dict[str, Callable[[], Iterator[str]]] = {"rob-fcp": rob_fcp_table}


def main() -> None:
    """Print the named tables, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.newer_methods", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*TABLES, []])
    for name in parser.parse_args().names or TABLES:
        print(f"\n{name}\n")
        for line in TABLES[name]():
            print(line, flush=True)


if __name__ == "__main__":
    main()
