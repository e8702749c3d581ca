"""Commands in their small form: seconds in place of minutes, so that every command is run before a change lands.

`python -m tests.commands` runs each in a copy of the checkout, where results may be overwritten, and names that copy in
`CONFIDE_SMALL`. Elsewhere every command runs whole.
"""

import os
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[1]
SMALL = os.environ.get("CONFIDE_SMALL") == str(ROOT)

T = TypeVar("T")


def small(whole: T, few: T) -> T:
    """The first, or in the small form the second."""
    return few if SMALL else whole
