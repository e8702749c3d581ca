"""`python -m experiments.federated`: all studies, or one on your own CSV, as PNG and Markdown.

All studies together go on where they were interrupted; a study on your own CSV starts anew.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from experiments.cache import cached
from experiments.federated import exact, page, problems, settings
from experiments.federated.data import folder
from experiments.federated.study import rows_of, run

HERE = Path("docs/experiments/federated")


@dataclass(frozen=True)
class Study:
    """Scores of one model on one data set, made when they are needed, and the federations to draw from them."""

    name: str
    make: Callable[[], problems.Problem]
    shapes: tuple[tuple[int, int], ...]


def all_studies() -> list[Study]:
    """The synthetic study, and those of the data sets that are there."""
    studies = [Study("synthetic, quantile forest", problems.synthetic, settings.SYNTHETIC)]
    for name, (file, target) in problems.FILES.items():
        path = folder() / file
        if path.exists():
            shapes = settings.SMALL if name == "concrete" else settings.LARGE
            for model in settings.MODELS:
                make = _maker(path, target, model)
                studies.append(Study(f"{path.stem}, {model}", make, shapes))
    return studies


def _maker(path: Path, target: str | None, model: str) -> Callable[[], problems.Problem]:
    return cache(lambda: problems.from_csv(path, target, model))


def own_study(path: Path, target: str | None, model: str) -> Study:
    """A CSV of the user's: both regimes, with as many records as it has."""
    problem = problems.from_csv(path, target, model)
    return Study(problem.name, lambda: problem, settings.shapes_for(len(problem.scores)))


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m experiments.federated", description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--csv", type=Path, help="a CSV of your own instead of all studies")
    parser.add_argument("--target", help="its target column (default: the last)")
    parser.add_argument("--model", choices=sorted(problems.MODELS), default="forest")
    parser.add_argument("--draws", type=int, default=100)
    options = parser.parse_args()
    if options.csv and options.out == HERE:
        parser.error("--csv needs --out FOLDER, so that the published page stays as it is")
    options.out.mkdir(parents=True, exist_ok=True)
    if options.csv:
        studies, parts = [own_study(options.csv, options.target, options.model)], [settings.OWN]
    else:
        studies, parts = all_studies(), [settings.HEAD, exact.table()]
        exact.figure(options.out / "exact.png")
        parts.append("![exact](exact.png)")
        missing = [name for name, (file, _) in problems.FILES.items() if not (folder() / file).exists()]
        parts += [f"(`{name}` was left out: its file is not in the data folder.)" for name in missing]
    for study in studies:
        for m, n in study.shapes:
            name = f"{study.name.replace(', ', '_').replace(' ', '_')}_m{m}_n{n}"

            def work(study: Study = study, m: int = m, n: int = n) -> dict:
                return run(study.make(), m, n, draws=options.draws)

            found = work() if options.csv else cached(f"federated/{name}_{options.draws}", work)
            rows = rows_of(found)
            page.figure(options.out / f"{name}.png", f"{study.name}: m = {m} silos, n = {n} records each", rows)
            parts.append(f"## {study.name}, m = {m}, n = {n}\n\n![coverage]({name}.png)\n\n{page.table(rows)}")
    (options.out / "README.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
