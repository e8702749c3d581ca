"""The place of the data sets."""

import os
from pathlib import Path


def folder() -> Path:
    """The folder that CONFIDE_DATA names, or shared/data next to the project."""
    return Path(os.environ.get("CONFIDE_DATA", Path(__file__).parents[3] / "shared" / "data"))
