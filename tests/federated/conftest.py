from collections.abc import Callable

import pytest

from confide.cli import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command; what it says, or with `code` the error."""

    def run(*words: object, code: int = 0) -> str:
        capsys.readouterr()
        assert main([str(word) for word in words]) == code, capsys.readouterr().err
        done = capsys.readouterr()
        return done.err if code else done.out

    return run
