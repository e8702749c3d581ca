from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from confide.cli import main
from tests.federated.helpers import Federation


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command; what it says, or with `code` the error."""

    def run(*words: object, code: int = 0) -> str:
        capsys.readouterr()
        assert main([str(word) for word in words]) == code, capsys.readouterr().err
        done = capsys.readouterr()
        return done.err if code else done.out

    return run


@pytest.fixture
def seven(tmp_path: Path) -> Federation:
    """Seven silos of different sizes."""
    rng = np.random.default_rng(0)
    return Federation(tmp_path, [rng.random(100 + 10 * i) for i in range(7)])
