"""Real data sets that are not part of the project: tests that need one skip, with a message, where it is absent."""

import os
from pathlib import Path

import pytest


def shared_data(name: str) -> Path:
    """The path of a data file, from the folder named by CONFIDE_DATA or from ../shared/data."""
    folder = Path(os.environ.get("CONFIDE_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not (folder / name).exists():
        pytest.skip(f"needs {name}; set CONFIDE_DATA to the folder that holds it")
    return folder / name
