"""Blocks of the page on schedulers that cannot run here: code compiles, and its commands parse."""

import ast
import json
import re
import shlex

import click
import pytest

from confide.cli.run import _command
from tests.docs.blocks import ROOT, blocks

PAGE = blocks(ROOT / "docs" / "howto" / "schedulers.md")
CODE = [block for block in PAGE if block.needs]
UNITS = [block for block in PAGE if block.language == "text" and "confide " in block.text]


def commands_in(text):
    """Every command line of confide in a text, with values for shell and template variables."""
    joined = text.replace("\\\n", " ").replace('"\n    "', "")
    for line in joined.splitlines():
        found = re.search(r"(?:^|exec |/bin/|= ?|\")(confide (?!-)[a-z]+ [^>]*--[^>]*)", line.strip())
        if found:
            plain = re.sub(r"\{\{.*?\}\}", "x", found[1].removesuffix('",').rstrip('"'))
            yield shlex.split(plain)[1:]


def context_of(words):
    """The context of a parsed command; it inherits the settings of `confide`, which click caches in the command."""
    root = _command()
    parent = click.Context(root, info_name="confide", **root.context_settings)
    return root.commands[words[0]].make_context(words[0], words[1:], parent=parent)


def test_code_for_other_schedulers_compiles():
    assert {need for block in CODE for need in block.needs} == {"airflow", "dagster"}
    for block in CODE:
        ast.parse(block.text)
        compile(block.text, block.place, "exec")


@pytest.mark.parametrize("block", [*CODE, *UNITS], ids=lambda block: block.place)
def test_commands_of_the_page_parse(block):
    found = list(commands_in(block.text))
    assert found, block.place
    for words in found:
        context_of(words).close()


def test_databricks_job_parses():
    (job,) = [json.loads(block.text) for block in PAGE if block.language == "json"]
    (task,) = job["tasks"]
    words = task["spark_python_task"]["parameters"]
    context = context_of(words)
    assert isinstance(context, click.Context)
    assert task["environment_key"] in [one["environment_key"] for one in job["environments"]]
