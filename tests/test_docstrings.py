"""Docstrings of the source name parameters, fields and exceptions that exist."""

import ast
import builtins
import re
from functools import cache
from itertools import chain, pairwise

import pytest

from tests.docs.blocks import ROOT

SOURCE = ROOT / "src"


def _definitions(body):
    """Functions and classes of a body, those of classes and of conditions included."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node
        if isinstance(node, ast.ClassDef | ast.If | ast.Try):
            yield from _definitions(node.body)


@cache
def modules():
    """Every module: its definitions, and the names that it imports from others."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_bytes())
        blocks = [node.body if isinstance(node, ast.If) else [node] for node in tree.body]
        statements = [node for node in chain(*blocks) if isinstance(node, ast.ImportFrom)]
        imported = {
            alias.asname or alias.name: (node.module, alias.name) for node in statements for alias in node.names
        }
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        found[module] = list(_definitions(tree.body)), imported
    return found


@cache
def classes(module):
    return {node.name: node for node in modules().get(module, [()])[0] if isinstance(node, ast.ClassDef)}


@cache
def exceptions():
    return {*dir(builtins), "click.UsageError", "MlflowException", *chain(*map(classes, modules()))}


def _parameters(module, function):
    arguments = function.args
    listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    names = {argument.arg for argument in listed if argument}
    annotation = ast.unparse(arguments.kwarg) if arguments.kwarg else ""
    unpacked = re.search(r"Unpack\[(\w+)\]", annotation)
    return names | (_fields(module, unpacked[1]) if unpacked else set())


@cache
def _fields(module, name):
    """Parameters, fields, properties and attributes of a class and of its bases, wherever these are defined."""
    while name not in classes(module):
        imported = modules()[module][1] if module in modules() else {}
        if name not in imported:
            return frozenset()
        module, name = imported[name]
    defined, names = classes(module)[name], set()
    for base in map(ast.unparse, defined.bases):
        names |= _fields(module, re.match(r"\w+", base)[0])
    for node in ast.walk(defined):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.id if isinstance(node, ast.Name) else node.attr)
        elif isinstance(node, ast.FunctionDef):
            names |= {node.name, *(_parameters(module, node) if node.name == "__init__" else ())}
    return frozenset(names)


def _headings(docstring):
    """Pairs of a section and a line of it that is not indented, such as the names of parameters."""
    section = None
    for line, following in pairwise([*docstring.split("\n"), ""]):
        if following and set(following) == {"-"}:
            section = line
        elif line[:1].strip(" -"):
            yield section, line


def faults(module, node):
    """Names in a docstring that its object does not have, and exceptions that do not exist."""
    for section, line in _headings(ast.get_docstring(node) or ""):
        names = {name.strip(" *") for name in line.partition(":")[0].split(",")}
        if section in ("Raises", "Warns"):
            yield from sorted(names - exceptions())
        elif section in ("Parameters", "Attributes"):
            is_class = isinstance(node, ast.ClassDef)
            yield from sorted(names - (_fields(module, node.name) if is_class else _parameters(module, node)))


@pytest.mark.slow
def test_documented_names_exist():
    definitions = [(module, node) for module, (nodes, _) in modules().items() for node in nodes]
    assert len(definitions) > 1000
    assert [(module, node.name, fault) for module, node in definitions for fault in faults(module, node)] == []


@pytest.mark.slow
def test_public_functions_document_their_parameters():
    """Where a docstring has a section of parameters, it names each of them."""
    surface = (ROOT / "tests" / "surface" / "public.txt").read_text(encoding="utf-8")
    public, checked = set(re.findall(r"^(\w+)\(", surface, flags=re.MULTILINE)), 0
    for module, (nodes, _) in modules().items():
        for node in nodes:
            text = ast.get_docstring(node) or ""
            if isinstance(node, ast.FunctionDef) and node.name in public and "\nParameters\n" in text:
                undocumented = _parameters(module, node) - set(re.findall(r"\w+", text))
                given = {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)} - {"self"}
                assert not undocumented & given, (module, node.name)
                checked += 1
    assert checked > 50


def test_faults_are_found():
    text = '"""A.\n\n{}\n{}\n{}\n    Its meaning.\n"""'
    for section, right, wrong in (
        ("Parameters", "x, *y, **options", "x, z"),
        ("Raises", "ValueError, InputError", "ValueError, NoSuchError"),
        ("Warns", "CoverageWarning", "If it is small"),
    ):
        for name, expected in ((right, []), (wrong, [wrong.split(", ")[-1]])):
            docstring = text.format(section, "-" * len(section), name)
            function = ast.parse(f"def f(x, *y, **options):\n    {docstring}").body[0]
            assert list(faults("confide", function)) == expected
