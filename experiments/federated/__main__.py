"""`python -m experiments.federated`: all studies, or one on your own CSV, as PNG and Markdown.

With --silo NAME the silos are those of a column; otherwise records are dealt to m silos of n.

All studies together continue where they were interrupted; a study on your own CSV starts again.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.small import small
from experiments.cache import cached, write_page
from experiments.federated import exact, page, problems, settings, silos
from experiments.federated.data import folder
from experiments.federated.study import rows_of, run

HERE = Path("docs/experiments/federated")


@dataclass(frozen=True)
class Study:
    """Scores of one model on one data set, computed when needed, and the federations to draw from them."""

    name: str
    make: Callable[[], problems.Problem]
    shapes: tuple[tuple[int, int], ...]


def all_studies() -> list[Study]:
    """The synthetic study, and those of the available data sets."""
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


def own_study(path: Path, target: str | None, model: str, shapes: tuple[tuple[int, int], ...] = ()) -> Study:
    """The study of a user's CSV: these (m, n), or both regimes with as many records as it has."""
    problem = problems.from_csv(path, target, model)
    return Study(problem.name, lambda: problem, shapes or settings.shapes_for(len(problem.scores)))


def silo_study(csv: Path, target: str | None, silo: str, model: str, draws: int, out: Path) -> None:
    """Write the study of a column's silos to a file with the CSV's name."""
    problem = silos.from_csv(csv, target, silo, model)
    target_option = f"--target {target} " if target else ""
    command = f"python -m experiments.federated --csv {csv.name} {target_option}--silo {silo} --draws {draws}"
    out.mkdir(parents=True, exist_ok=True)
    write_page(out / f"{problem.name.lower()}.md", silos.page(problem, command, draws))


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m experiments.federated", description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--csv", type=Path, help="a CSV of your own instead of all studies")
    parser.add_argument("--target", help="its target column (default: the last)")
    parser.add_argument("--model", choices=sorted(problems.MODELS), default="forest")
    parser.add_argument("--silo", help="the column that names each record's silo: silos as they are")
    parser.add_argument("--m", type=int, help="how many silos to draw, with --n")
    parser.add_argument("--n", type=int, help="how many records each of them has")
    parser.add_argument("--draws", type=int, help="default: 100, and 200 with --silo")
    options = parser.parse_args()
    if (options.m is None) != (options.n is None) or (options.silo and (options.m or not options.csv)):
        parser.error("--m and --n go together, for silos that are drawn; --silo goes with --csv, and without them")
    if options.silo:
        silo_study(
            options.csv, options.target, options.silo, options.model, options.draws or small(200, 2), options.out
        )
        return
    if (options.csv or options.m) and options.out == HERE:
        parser.error("--csv, --m and --n need --out FOLDER, so that the published page is not overwritten")
    options.out.mkdir(parents=True, exist_ok=True)
    shapes, draws = ((options.m, options.n),) if options.m else (), options.draws or small(100, 2)
    if options.csv:
        studies, parts = [own_study(options.csv, options.target, options.model, shapes)], [settings.OWN]
    else:
        studies, parts = all_studies(), [settings.HEAD, exact.table()]
        exact.figure(options.out / "exact.png")
        parts.append("![exact](exact.png)")
        missing = [name for name, (file, _) in problems.FILES.items() if not (folder() / file).exists()]
        parts += [f"(`{name}` was left out: its file is not in the data folder.)" for name in missing]
    pictures, lines = [], []
    for study in studies:
        for m, n in shapes or study.shapes:
            name = f"{study.name.replace(', ', '_').replace(' ', '_')}_m{m}_n{n}"

            def work(study: Study = study, m: int = m, n: int = n) -> dict:
                return run(study.make(), m, n, draws=draws)

            found = work() if options.csv else cached(f"federated/{name}_{draws}", work)
            rows = rows_of(found)
            page.figure(options.out / f"{name}.png", f"{study.name}: m = {m} silos, n = {n} records each", rows)
            pictures.append(f"![coverage, {study.name}, m = {m}, n = {n}]({name}.png)")
            head, rule, *body = page.table(rows).splitlines()
            lines = lines or [f"| data and model | m | n {head}", f"|---|---|---{rule}"]
            lines += [f"| {study.name} | {m} | {n} {line}" for line in body]
    parts += ["## All studies", settings.STUDIES, "\n".join(lines), *pictures]
    write_page(options.out / "README.md", "\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
