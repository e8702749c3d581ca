"""All mutants, the sample of them, and the place of the sample in this tree.

Mutants are cosmic-ray's, of the packages and operators of mutants.toml. Those in annotations, in blocks for type
checkers, and in raised errors, whose words are no guarantee, are left out. `sample.txt` has the sample: each mutant by
its function, its operator and the text of its line, so that it is found again when the code around it has changed.
"""

import ast
import random
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, replace
from functools import cache, cached_property
from itertools import islice
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).parents[2]
SOURCE = "src/confide"
SAMPLE = Path(__file__).parent / "sample.txt"
SEED = 20
SETTINGS = tomllib.loads((Path(__file__).parent / "mutants.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Site:
    """The identity of a mutant when other code changes: a line of sample.txt."""

    file: str
    function: str
    operator: str
    line: str
    """The text of the mutated line."""
    on_line: int
    """Its index among the operator's mutants of lines with this text in this function."""
    in_function: int
    """Its index among the operator's mutants in this function."""
    of_function: int
    """Number of mutants of the operator in the function."""

    @property
    def package(self) -> str:
        return self.file.partition("/")[0]

    def written(self) -> str:
        return "\t".join(str(value) for value in astuple(self))

    @classmethod
    def read(cls, line: str) -> "Site":
        *texts, on_line, in_function, of_function = line.split("\t")
        return cls(*texts, int(on_line), int(in_function), int(of_function))  # type: ignore[call-arg]


@dataclass(frozen=True)
class Mutant:
    """A mutant of this tree."""

    site: Site
    occurrence: int
    """Its index among the operator's mutants in its file, as cosmic-ray counts."""
    first: tuple[int, int]
    last: tuple[int, int]

    @property
    def path(self) -> str:
        return f"{SOURCE}/{self.site.file}"

    @property
    def file(self) -> Path:
        return ROOT / self.path

    @property
    def lines(self) -> range:
        return range(self.first[0], self.last[0] + 1)

    @cached_property
    def source(self) -> str:
        """The file with the mutant in it."""
        operator = get_operator(f"core/{self.site.operator}")()
        mutated = mutate_code(self.file.read_text(encoding="utf-8"), operator, self.occurrence)
        assert mutated is not None, self
        return mutated

    def __str__(self) -> str:
        return f"{self.site.file}:{self.first[0]} {self.site.function} {self.site.operator}"


def drawn(count: int) -> list[Site]:
    """Draw so many mutants of this tree from SEED, as equally as possible from each package, in turn."""
    by_package: defaultdict[str, list[Site]] = defaultdict(list)
    for mutant in mutants():
        by_package[mutant.site.package].append(mutant.site)
    for name, sites in by_package.items():
        random.Random(f"{SEED} {name}").shuffle(sites)
    in_turn = (sites[i] for i in range(count) for sites in by_package.values() if i < len(sites))
    return list(islice(in_turn, count))


def sample() -> list[Site]:
    return [Site.read(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]


def found(sites: Iterable[Site]) -> dict[Site, tuple[Mutant | None, str]]:
    """The places of sites of another tree in this one, and how each was found; None for a removed one.

    It is the same if its function has a line with this text, in this file or another; rewritten if the line has
    changed, but the function has as many mutants of this operator as before.
    """
    by_line: defaultdict[tuple[str, str, int], list[Mutant]] = defaultdict(list)
    by_count: dict[tuple[str, str, str, int, int], Mutant] = {}
    for mutant in mutants():
        site = mutant.site
        by_line[site.operator, site.line, site.on_line].append(mutant)
        by_count[site.file, site.function, site.operator, site.in_function, site.of_function] = mutant
    return {site: _found(site, by_line[site.operator, site.line, site.on_line], by_count) for site in sites}


def _found(
    site: Site, same_line: list[Mutant], by_count: dict[tuple[str, str, str, int, int], Mutant]
) -> tuple[Mutant | None, str]:
    def name(function: str) -> str:
        return function.rpartition(".")[2].lstrip("_")

    nearer = [
        ("same", [m for m in same_line if (m.site.file, m.site.function) == (site.file, site.function)]),
        ("moved", [m for m in same_line if m.site.file == site.file and name(m.site.function) == name(site.function)]),
        ("moved", [m for m in same_line if name(m.site.function) == name(site.function)]),
        ("moved", [m for m in same_line if m.site.file == site.file]),
        ("moved", same_line),
    ]
    for how, mutants_there in nearer:
        if len(mutants_there) == 1:
            return mutants_there[0], how
    rewritten = by_count.get((site.file, site.function, site.operator, site.in_function, site.of_function))
    return rewritten, "rewritten" if rewritten else "gone"


@cache
def mutants() -> list[Mutant]:
    """All mutants of this tree, file by file."""
    keep = re.compile("core/(" + "|".join(SETTINGS["operators"]["keep"]) + ")")
    kept = sorted(name for name in operator_names() if keep.fullmatch(name))
    files = [file for name in SETTINGS["packages"]["keep"] for file in sorted((ROOT / SOURCE / name).rglob("*.py"))]
    return [mutant for file in files for mutant in _of_file(file, kept)]


def _of_file(file: Path, operators: list[str]) -> Iterator[Mutant]:
    text = file.read_text(encoding="utf-8")
    lines, nodes, tree = text.splitlines(), list(ast_nodes(get_ast(text))), ast.parse(text)
    functions, left_out = list(_functions(tree)), [_place(node) for node in _left_out(ast.walk(tree))]
    for operator_name in operators:
        operator, named = get_operator(operator_name)(), operator_name.partition("/")[2]
        of_file: list[Mutant] = []
        in_function, on_line = Counter[str](), Counter[tuple[str, str]]()
        places = [place for node in nodes for place in operator.mutation_positions(node)]
        for occurrence, (first, last) in enumerate(places):
            line = lines[first[0] - 1]
            if _is_star(line, first[1]) or any(begin <= first and last <= end for begin, end in left_out):
                continue
            function = max((f for f in functions if f[0][0] <= first and last <= f[0][1]), default=(None, ""))[1]
            key = (function, line.strip())
            site = Site(
                str(file.relative_to(ROOT / SOURCE)), function, named, key[1], on_line[key], in_function[function], 0
            )
            of_file.append(Mutant(site, occurrence, first, last))
            in_function[function] += 1
            on_line[key] += 1
        for mutant in of_file:
            counted = replace(mutant.site, of_function=in_function[mutant.site.function])
            yield replace(mutant, site=counted)


Place = tuple[tuple[int, int], tuple[int, int]]


def _place(node: ast.expr | ast.stmt) -> Place:
    return (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)


def _functions(inside: ast.AST, before: str = "") -> Iterator[tuple[Place, str]]:
    """Functions and classes with their names, including nested ones."""
    for node in ast.iter_child_nodes(inside):
        name = before
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{before}.{node.name}".lstrip(".")
            begin, end = _place(node)
            yield (min([begin, *(_place(one)[0] for one in node.decorator_list)]), end), name
        yield from _functions(node, name)


def _left_out(tree: Iterable[ast.AST]) -> Iterator[ast.expr | ast.stmt]:
    for node in tree:
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            yield node.returns
        elif isinstance(node, ast.Raise) and node.exc is not None:
            yield node.exc
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            yield node


def _is_star(line: str, column: int) -> bool:
    """Return whether a product or power of cosmic-ray is the star of `f(*, x)` or `f(*x)`."""
    before, after = line[:column].rstrip(), line[column:].lstrip("*")
    return line[column] == "*" and (before == "" or before[-1] in "(,[{" or after.startswith(","))
