"""`python -m experiments.federated`: all studies, or one on your own CSV, as PNG and Markdown."""

import argparse
from pathlib import Path

from confide.federated.private_quantiles import best_private_qq
from confide.federated.published_private import best_published
from confide.federated.quantile_of_quantiles import best_qq, qq_coverage
from experiments.federated import page, problems
from experiments.federated.study import ALPHA, run

HEAD = """# One-shot federated calibration: experiments

Written by `python -m experiments.federated`. alpha = 0.1. Every draw puts new records into m silos of n; all methods
see the same silos; coverage is measured on records that took no part. `centralised` pools all scores, `fedcp-avg`
averages quantiles (no guarantee), `fedcp-qq` and `fedcp2-qq` are the published methods (without and with privacy),
`private-qq` is ours. Scores are those of conformalized quantile regression; private methods choose among 100 public
candidates taken from reference records. A width is the mean length of the intervals over draws with a finite threshold.
"""


def degrees() -> str:
    """The table of degrees of compensation at m=5, n=200, 100 candidates."""
    lines = ["## Degree of compensation, m = 5, n = 200, 100 candidates", ""]
    lines += ["The coverage if every silo returned exactly its target rank.", ""]
    lines += ["| epsilon | private-qq | fedcp2-qq | fedcp-qq without privacy |", "|---|---|---|---|"]
    plain = best_qq(5, 200, 1 - ALPHA)
    for epsilon in (10.0, 5.0, 1.0):
        ours, published = (
            best_private_qq([200] * 5, 1 - ALPHA, epsilon, 100),
            best_published(5, 200, ALPHA, epsilon, 100),
        )
        value = float(qq_coverage(int(ours.mechanisms[0].offset), ours.k, 5, 200))
        lines.append(f"| {epsilon:g} | {value:.4f} | {published.compensation:.4f} | {plain.coverage:.4f} |")
    return "\n".join(lines)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m experiments.federated", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/experiments/federated"))
    parser.add_argument("--csv", type=Path, help="a CSV of your own instead of all studies")
    parser.add_argument("--target", help="its target column (default: the last)")
    parser.add_argument("--model", choices=sorted(problems.MODELS), default="forest")
    parser.add_argument("--draws", type=int, default=100)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    parts = [HEAD] if options.csv else [HEAD, degrees()]
    if options.csv:
        studies = [(problems.from_csv(options.csv, options.target, options.model), [(5, 200), (40, 20)])]
    else:
        studies = [(problems.synthetic(), [(5, 200), (20, 50), (50, 20), (200, 10)])]
        for name, (file, target) in problems.FILES.items():
            path = problems.folder() / file
            if not path.exists():
                parts.append(f"(`{name}` was left out: {file} is not in the data folder.)")
                continue
            shapes = [(5, 70), (20, 17)] if name == "concrete" else [(5, 200), (100, 20)]
            studies += [(problems.from_csv(path, target, model), shapes) for model in ("ridge", "forest", "neural")]
    for problem, shapes in studies:
        for m, n in shapes:
            rows = run(problem, m, n, draws=options.draws)
            name = f"{problem.name.replace(', ', '_').replace(' ', '_')}_m{m}_n{n}"
            page.figure(options.out / f"{name}.png", f"{problem.name}: m = {m} silos, n = {n} records each", rows)
            parts.append(f"## {problem.name}, m = {m}, n = {n}\n\n![coverage]({name}.png)\n\n{page.table(rows)}")
    (options.out / "README.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
