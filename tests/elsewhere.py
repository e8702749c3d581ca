"""What is not part of the project: tests that need it skip, with a message, where it is absent."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def shared_data(name: str) -> Path:
    """The path of a real data file, from the folder named by CONFIDE_DATA or from ../shared/data."""
    folder = Path(os.environ.get("CONFIDE_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / name).exists():
        pytest.skip(f"needs {name}; set CONFIDE_DATA to the folder that holds it")
    return folder / name


def python_of(name: str) -> Path:
    """The interpreter of `nox -s NAME`, for versions of other libraries, or the one that CONFIDE_NAME names."""
    variable = f"CONFIDE_{name.upper()}"
    interpreter = Path(os.environ.get(variable, ROOT / f".venv-{name}" / "bin" / "python"))
    if not interpreter.exists():
        pytest.skip(f"needs another environment: `nox -s {name}` sets it up, {variable} names its interpreter")
    return interpreter
