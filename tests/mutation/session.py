"""Which mutants there are: cosmic-ray's, of the rooms and operators of mutants.toml, in an order drawn from a seed.

Left out are mutants in annotations, in blocks for type checkers, and in what is raised, whose words are no promise.
"""

import ast
import random
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cosmic_ray.commands.init import init
from cosmic_ray.modules import find_modules
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB
from cosmic_ray.work_item import MutationSpec

from benchmarks.small import small

ROOT = Path(__file__).parents[2]
SOURCE = Path("src", "confide")  # which a session stores, so that it is read from any folder
SEED = 20
SETTINGS = tomllib.loads((Path(__file__).parent / "mutants.toml").read_text(encoding="utf-8"))
SETTINGS["rooms"] = small(SETTINGS["rooms"], {"selection": SETTINGS["rooms"]["selection"]})


class Mutant(NamedTuple):
    job: str
    room: str
    spec: MutationSpec

    @property
    def file(self) -> Path:
        return ROOT / self.spec.module_path

    @property
    def lines(self) -> range:
        return range(self.spec.start_pos[0], self.spec.end_pos[0] + 1)

    def source(self) -> str:
        """The file with the mutant in it."""
        text = self.file.read_text(encoding="utf-8")
        mutated = mutate_code(text, get_operator(self.spec.operator_name)(), self.spec.occurrence)
        assert mutated is not None, self
        return mutated

    def __str__(self) -> str:
        file, operator = self.spec.module_path.relative_to(SOURCE), self.spec.operator_name.partition("/")[2]
        return f"{file}:{self.spec.start_pos[0]} {operator}"


def opened(path: Path) -> WorkDB:
    """The session at `path`, made if there is none; the working folder is the repository."""
    database = WorkDB(path, WorkDB.Mode.create)
    if not database.num_work_items:
        init(sorted(_rooms()), database, {})
    return database


def mutants(database: WorkDB) -> dict[str, list[Mutant]]:
    """By room, in an order drawn from SEED: the first hundred of a room are a random sample of it."""
    found: defaultdict[str, list[Mutant]] = defaultdict(list)
    kept, rooms = re.compile("core/(" + "|".join(SETTINGS["operators"]["keep"]) + ")"), _rooms()
    for item in database.work_items:
        (spec,) = item.mutations
        if kept.fullmatch(spec.operator_name) and not _is_left_out(spec):
            found[rooms[spec.module_path]].append(Mutant(item.job_id, rooms[spec.module_path], spec))
    for room, listed in found.items():
        listed.sort(key=lambda m: (m.file, m.spec.operator_name, m.spec.occurrence))
        random.Random(f"{SEED} {room}").shuffle(listed)
    return {room: [m for m in found[room] if not _is_star(m.spec)] for room in SETTINGS["rooms"]}


@cache
def _rooms() -> dict[Path, str]:
    return {
        file: room
        for room, paths in SETTINGS["rooms"].items()
        for file in find_modules([SOURCE / path for path in paths])
    }


def _is_star(spec: MutationSpec) -> bool:
    """Whether what cosmic-ray takes for a product or a power is the star of `f(*, x)` or `f(*x)`."""
    line, column = spec.start_pos
    text = (ROOT / spec.module_path).read_text(encoding="utf-8").splitlines()[line - 1]
    before, after = text[:column].rstrip(), text[column:].lstrip("*")
    return text[column] == "*" and (before == "" or before[-1] in "(,[{" or after.startswith(","))


def _is_left_out(spec: MutationSpec) -> bool:
    return any(first <= spec.start_pos and spec.end_pos <= last for first, last in _words_and_types(spec.module_path))


@cache
def _words_and_types(file: Path) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """From where to where a file has annotations, blocks for type checkers, and what is raised."""
    nodes = _nodes(ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))))
    return [((n.lineno, n.col_offset), (n.end_lineno or 0, n.end_col_offset or 0)) for n in nodes]


def _nodes(tree: Iterable[ast.AST]) -> Iterator[ast.expr | ast.stmt]:
    for node in tree:
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            yield node.returns
        elif isinstance(node, ast.Raise) and node.exc is not None:
            yield node.exc
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            yield node
