"""A release and batches of new records come in; noisy counts of each batch, and whether coverage still holds, leave.

course.py     `Watch`: settings and looks, as a value and as JSON
sequence.py   what is tested, and what all looks say about coverage at any time
settings.py   what is fixed before the first look, sizes that a private evaluation counted among it
e_process.py  bets on noisy counts whose stakes cannot grow while coverage is kept
power.py      how soon a drop is seen, from public numbers
looking.py    `watch`: one look at a table, paid for and kept

Only what a look has drawn is private by noise and may leave; the counts before it never do.
"""

from confide.watching.course import Look, Point, Watch, evidence_text
from confide.watching.looking import level_of, local_state, opened, watch
from confide.watching.power import WatchPower, records_enough, watch_power
from confide.watching.settings import ERROR, LOOKS, TOLERANCE, Settings, promised_of, records_for, size_bins

__all__ = [
    "Look", "Point", "Settings", "Watch", "WatchPower", "records_for", "size_bins", "watch", "watch_power",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
