import json
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from confide.cli import main
from confide.cli.exit_codes import USAGE


@dataclass(frozen=True)
class Ran:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))

    @property
    def error(self) -> str:
        """The single line of an error."""
        assert self.code != 0
        assert self.out == ""
        assert self.err.startswith("error: ")
        assert self.err.endswith("\n")
        assert self.err.count("\n") == 1, self.err
        assert "Traceback" not in self.err
        return self.err.removeprefix("error: ").rstrip("\n")

    @property
    def refused(self) -> tuple[int, str]:
        """The exit code, and the subject of the error: an option if there is one, else the name in the error."""
        option = (re.search if self.code == USAGE else re.match)(r"--[a-z][\w-]*", self.error)
        return self.code, option[0] if option else re.split("[:;']", self.error)[0].strip()


@pytest.fixture(autouse=True)
def heard():
    """Handle Ctrl-C, also if the tests run in the background of a shell, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def confide_run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    def run(*arguments: object) -> Ran:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Ran(code, *capsys.readouterr())

    return run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
