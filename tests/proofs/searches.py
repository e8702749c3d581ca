"""Records every line that the search of the two-sided certificate evaluates, with its spread and multiplier."""

from contextlib import contextmanager

from confide.guarantee import secret_n, two_sided
from confide.guarantee.left_side import LeftSide, Rows, Spread
from tests.proofs.enclosures import TwoSided


class Search:
    """The lines of a search, one by one: its left side, the row, the spread, the value and the slope."""

    def __init__(self):
        self.blocks, self.searched, self.boxes = [], {}, {}

    def __len__(self):
        return sum(len(value) for _, _, _, value, _ in self.blocks)

    def errors(self, rng, most):
        """By how much the true lines may exceed the library's, for at most `most` of them, drawn at random."""
        every = [(block, i) for block, (_, _, _, value, _) in enumerate(self.blocks) for i in range(len(value))]
        chosen = every if len(every) <= most else [every[k] for k in rng.choice(len(every), most, replace=False)]
        return [self._error(block, i) for block, i in chosen]

    def _error(self, block, i):
        left, spread, rows, value, slope = self.blocks[block]
        if id(left) not in self.boxes:
            self.boxes[id(left)] = TwoSided(left, *self.searched[id(left)])
        row = Rows._make(column[i] for column in rows)
        mass = Spread(spread.place[i], spread.mass[i])
        return self.boxes[id(left)].line(int(row.case), row, mass, float(slope[i])) - float(value[i])


@contextmanager
def watched(monkeypatch):
    """Record the lines that are evaluated in the block; caches are cleared, so that every search runs again."""
    search = Search()
    of_secret_n = secret_n._sufficient_points, secret_n._groups_of_small_n, secret_n._needing_of
    for cached in (two_sided.two_sided_holds, two_sided.two_sided_loss, *of_secret_n):
        cached.cache_clear()
    start, line = LeftSide.__init__, LeftSide._line

    def noted_start(left, noise, cases):
        start(left, noise, cases)
        search.searched[id(left)] = (noise, cases)

    def noted_line(left, q, spread, rows):
        found = line(left, q, spread, rows)
        search.blocks.append((left, spread, rows, found[0].copy(), found[1].copy()))
        return found

    with monkeypatch.context() as patched:
        patched.setattr(LeftSide, "__init__", noted_start)
        patched.setattr(LeftSide, "_line", noted_line)
        yield search
