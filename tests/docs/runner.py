"""Run the blocks of one page in order, in one namespace and one empty folder."""

import doctest
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from confide.scores import score
from tests.docs.blocks import Block

NUMBER = re.compile(r"(?:(?<=\s)-)?\d+(\.\d+)?(e-?\d+)?")  # with its sign: noise changes that, too
LOOSELY = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run_page(blocks: list[Block], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Run blocks, and compare their output if the page shows it."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)  # as if `python` were started in this folder
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("NO_COLOR", "1")
    with own_modules(folder), mock.patch.dict(score._REGISTERED):
        run_blocks(blocks, folder, monkeypatch, capsys)


@contextmanager
def own_modules(folder: Path) -> Iterator[None]:
    """Remove modules that a page wrote and imported, because another page may use the same names."""
    try:
        yield
    finally:
        for name, module in list(sys.modules.items()):
            if folder in Path(getattr(module, "__file__", None) or "/").parents:
                del sys.modules[name]


def run_blocks(blocks: list[Block], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Run the blocks one after the other."""
    scope: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    for block in blocks:
        if block.runs:
            if block.language == "python":
                exec(compile("\n" * block.line + block.text, block.page, "exec"), scope)  # noqa: S102
            else:
                run_commands(block, monkeypatch, capsys)
            printed = capsys.readouterr().out
        elif "output" in block.markers:
            assert_shows(block, printed)


ELSEWHERE = """
import json, subprocess, sys
scope = {"__name__": "__main__"}
for page, line, text, commands in json.load(sys.stdin):
    if commands is None:
        exec(compile(chr(10) * line + text, page, "exec"), scope)
    for command, expected in commands or ():
        done = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, text=True)
        print(done.stdout, end="")
        if done.returncode != expected:
            sys.exit(f"{page}:{line}: `{command}` ended with {done.returncode}")
    print(end=chr(30), flush=True)
"""


def run_elsewhere(python: Path, blocks: list[Block], folder: Path, environment: dict[str, str] | None = None) -> None:
    """Run the blocks by another interpreter, Python in one namespace, and compare what they print."""
    running = [block for block in blocks if block.runs]
    sent = json.dumps([(b.page, b.line, b.text, expected(b) if b.language == "bash" else None) for b in running])
    values = dict(os.environ if environment is None else environment) | {"NO_COLOR": "1"}
    values["PATH"] = f"{python.parent}{os.pathsep}{values['PATH']}"
    command = [python, "-c", ELSEWHERE]
    done = subprocess.run(command, input=sent, cwd=folder, env=values, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    printed = iter(done.stdout.split(chr(30)))
    said = ""
    for block in blocks:
        if block in running:
            said = next(printed)
        elif "output" in block.markers:
            assert_shows(block, said)


def assert_shows(block: Block, printed: str) -> None:
    """Compare the shown output with that of the block before."""
    assert shows(block, printed), f"{block.place} shows\n{block.text}\nbut there was printed\n{printed}"


def shows(block: Block, printed: str) -> bool:
    """Return whether a block shows the output; up to the numbers if the marker says so, because noise changes them."""
    texts = [block.text, printed]
    if block.markers["output"] == "numbers vary":
        texts = [NUMBER.sub("#", text) for text in texts]
    return doctest.OutputChecker().check_output(*texts, LOOSELY)


def commands(block: Block) -> list[str]:
    """The commands of a block, one per logical line."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [line for line in lines if shlex.split(line, comments=True)]


def expected(block: Block) -> list[tuple[str, int]]:
    """The commands of a block with their exit codes; the page states that of the last one."""
    lines, last = commands(block), int(block.markers.get("fails", 0))
    return [(line, 0) for line in lines[:-1]] + [(line, last) for line in lines[-1:]]


def run_commands(block: Block, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Run commands in order: `confide` in this process, to save its start, all others in a shell."""
    from confide.cli import main

    for line, wanted in expected(block):
        words = shlex.split(line, comments=True)
        if words[0] == "confide" and not {"|", ">", "&&"} & set(words):
            with monkeypatch.context() as patch:
                patch.setattr("sys.argv", words)
                code = main()
            said = ""
        else:
            done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
            code, said = done.returncode, done.stderr
            print(done.stdout, end="")
        assert code == wanted, f"{block.place}: `{line}` ended with {code}\n{said}{capsys.readouterr().err}"
