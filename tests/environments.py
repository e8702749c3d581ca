"""Separate environments for other libraries, which need other versions of the dependencies."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def python_of(name: str) -> Path:
    """The interpreter of `nox -s NAME`, or the one that CONFIDE_NAME names; without one the test is skipped."""
    variable = f"CONFIDE_{name.upper()}"
    found = Path(os.environ.get(variable, ROOT / f".venv-{name}" / "bin" / "python"))
    if not found.exists():
        pytest.skip(f"needs another environment: `nox -s {name}` sets it up, {variable} names its interpreter")
    return found
