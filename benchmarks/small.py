"""Commands in their small form: seconds instead of minutes, so that every command runs before a merge.

`python -m tests.commands` runs each in a copy of the checkout, where results may be overwritten, and sets
`CONFIDE_SMALL` to that copy. Otherwise every command runs in full.
"""

import os
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[1]
SMALL = os.environ.get("CONFIDE_SMALL") == str(ROOT)

T = TypeVar("T")


def small(whole: T, few: T) -> T:
    """Return the first value, or in the small form the second."""
    return few if SMALL else whole
