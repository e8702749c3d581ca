"""Monitor a release: test with noisy counts of new records whether coverage still holds.

watch_state.py  `Watch`: settings and looks, as a value and as a file
looks.py        `Look`: the noisy counts of a batch; `Point`: the state of a watch after a look
settings.py     what is fixed before the first look, such as the bins of set sizes of a private evaluation
e_process.py    bets on noisy counts, whose wealth does not grow on average while coverage holds; the tests of a
                monitor, and a confidence sequence for coverage over all looks
correction.py   how looks correct a threshold, with exact positions; the coverage that records had
corrected.py    `CorrectedRelease`: the thresholds in force
take_look.py    `watch`: one look at a table, charged and stored

Only the noisy counts of a look are private and may be published. The exact counts must not leave the process.
"""

from confide.watching.corrected import CorrectedRelease
from confide.watching.correction import Correction, Realised, Scale
from confide.watching.looks import CoverageOfLooks, Look, Point, evidence_text
from confide.watching.settings import Settings, promised_of, records_for, size_bins
from confide.watching.take_look import FirstLook, level_of, load_or_start, local_state, watch
from confide.watching.watch_state import Watch

__all__ = [
    "CorrectedRelease", "Correction", "Look", "Point", "Realised", "Scale", "Settings", "Watch",
    "records_for", "size_bins", "watch",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
