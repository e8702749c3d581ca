"""The directive `package`: generates a reference page from the names that a subpackage exports.

`.. package:: confide.scores` documents first the names that `confide` exports from the subpackage, as users call them
(`confide.lac_score`), then its other exports. A module is documented by its `__all__`, or else by the public functions
and classes that it defines. The option `first` lists names to put first.
"""

import ast
import importlib
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.ext.autodoc.mock import mock
from sphinx.pycode import ModuleAnalyzer

import confide

METADATA_ROUTING = re.compile(r"set_\w+_request")  # methods that scikit-learn adds to every estimator


def imported(module: ModuleType) -> list[str]:
    """The names that a package's `__init__.py` imports from within the package, or defines."""
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"{module.__name__}."):
            names += [alias.name for alias in node.names]
    return sorted({name for name in names if not name.startswith("_")})


def exported(module: ModuleType) -> dict[str, str]:
    """Map names to full names: the exports of `confide` from a module first, then the module's other exports.

    Examples
    --------
    >>> import confide.scores
    >>> exported(confide.scores)["lac_score"]
    'confide.lac_score'
    """
    own = getattr(module, "__all__", None)
    if hasattr(module, "__path__"):
        own = imported(module)
    elif own is None:
        own = [n for n, v in vars(module).items() if n[0] != "_" and is_defined_in(v, module.__name__)]
    users = [name for name in confide.__all__ if is_defined_in(getattr(confide, name), module.__name__)]
    others = [name for name in own if name not in users]
    order = sorted(users, key=str.casefold), sorted(others, key=str.casefold)
    return {name: f"confide.{name}" for name in order[0]} | {name: f"{module.__name__}.{name}" for name in order[1]}


def is_defined_in(value: Any, module: str) -> bool:
    """Return whether a function or a class is defined in a module or below it."""
    where = getattr(value, "__module__", None) or ""
    return callable(value) and (where == module or where.startswith(f"{module}."))


def entry(module: ModuleType, name: str, full: str) -> list[str]:
    """The lines that document one name."""
    value = getattr(confide if full.count(".") == 1 else module, name)
    if inspect.isclass(value):
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
        return [f".. {kind}:: {full}", "   :members:", ""]
    if inspect.isroutine(value):
        return [f".. autofunction:: {full}", ""]
    if isinstance(value, ModuleType):
        return [f".. py:module:: {full}", "", *(value.__doc__ or "").splitlines()[:1], ""]
    return [
        f".. py:data:: {name}",
        f"   :module: {module.__name__}",
        "",
        *(f"   {line}" for line in text_below(module.__name__, name)),
        "",
    ]


def text_below(package: str, name: str) -> list[str]:
    """The docstring below the definition of a constant or an alias in one of a package's modules."""
    for module in [one for one in sys.modules if f"{one}.".startswith(f"{package}.")]:
        found = ModuleAnalyzer.for_module(module).find_attr_docs().get(("", name))
        if found:
            return found
    return []


class Package(Directive):
    """`.. package:: MODULE`: the first line of its docstring, and its exports."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"first": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        """One description per name."""
        config = self.state.document.settings.env.config
        with mock(config.autodoc_mock_imports):
            module = importlib.import_module(self.arguments[0])
            names = exported(module)
            first = self.options.get("first", "").split()
            if unknown := [name for name in first if name not in names]:
                raise self.error(f"{module.__name__} does not export {', '.join(unknown)}")
            ordered = {name: names[name] for name in [*first, *names]}
            users = [name for name, full in ordered.items() if full == f"confide.{name}"]
            others = [name for name in ordered if name not in users]
            lines = [(inspect.getdoc(module) or "").partition("\n")[0], ""]
            lines += [line for name in users for line in entry(module, name, names[name])]
            if users and others:
                lines += [f".. rubric:: As ``{module.__name__}.NAME``", ""]
            lines += [line for name in others for line in entry(module, name, names[name])]
        node = nodes.Element()
        self.state.nested_parse(StringList(lines, source=self.arguments[0]), self.content_offset, node)
        return node.children


def skip(app: Sphinx, what: str, name: str, value: Any, skipped: bool, options: Any) -> bool | None:
    """Skip members that are not public."""
    return True if METADATA_ROUTING.fullmatch(name) else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to the build."""
    app.add_directive("package", Package)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
