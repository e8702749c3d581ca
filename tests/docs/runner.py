"""Runs the blocks of one page as a reader would: in order, in one namespace and one empty folder."""

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

import pytest

from tests.docs.blocks import Block

NUMBER = re.compile(r"\d+(\.\d+)?(e-?\d+)?")
LOOSELY = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run_page(blocks: list[Block], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Run blocks that are to run, and compare what they print where the page shows it."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)  # as for `python` started in this folder
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("NO_COLOR", "1")
    with own_modules(folder):
        run_blocks(blocks, folder, monkeypatch, capsys)


@contextmanager
def own_modules(folder: Path) -> Iterator[None]:
    """Modules that a page wrote and imported are gone after it: another page may have some of the same name."""
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
import json, sys
scope = {"__name__": "__main__"}
for page, line, text in json.load(sys.stdin):
    exec(compile(chr(10) * line + text, page, "exec"), scope)
    print(end=chr(30), flush=True)
"""


def run_elsewhere(python: Path, blocks: list[Block], folder: Path) -> None:
    """Run the Python blocks by another interpreter, in one namespace, and compare what they print."""
    running = [block for block in blocks if block.runs and block.language == "python"]
    sent = json.dumps([(block.page, block.line, block.text) for block in running])
    done = subprocess.run([python, "-c", ELSEWHERE], input=sent, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    printed = iter(done.stdout.split(chr(30)))
    for block in blocks:
        if block in running:
            said = next(printed)
        elif "output" in block.markers:
            assert_shows(block, said)


def assert_shows(block: Block, printed: str) -> None:
    """Compare what the page shows with what was printed by the block before."""
    assert shows(block, printed), f"{block.place} shows\n{block.text}\nbut there was printed\n{printed}"


def shows(block: Block, printed: str) -> bool:
    """Whether a block shows what was printed; where the marker says so, up to the numbers, which noise changes."""
    texts = [block.text, printed]
    if block.markers["output"] == "numbers vary":
        texts = [NUMBER.sub("#", text) for text in texts]
    return doctest.OutputChecker().check_output(*texts, LOOSELY)


def commands(block: Block) -> list[str]:
    """The commands of a block, one per logical line."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [line for line in lines if shlex.split(line, comments=True)]


def run_commands(block: Block, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Run commands in order; `confide` in this process, which saves starting it, all others in a shell."""
    from confide.cli import main

    wanted = commands(block)
    for number, line in enumerate(wanted):
        expected = int(block.markers.get("fails", 0)) if number == len(wanted) - 1 else 0
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
        assert code == expected, f"{block.place}: `{line}` ended with {code}\n{said}{capsys.readouterr().err}"
