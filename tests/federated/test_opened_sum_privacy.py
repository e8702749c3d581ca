"""Theorems F8 and F9: what an attacker learns from all messages of both rounds, for any survivor sets sent to silos."""

import itertools

import numpy as np
import pytest
from scipy import stats

from confide.federated import sharing
from confide.federated.protocols.channels import least_needed
from confide.federated.sharing import P
from tests.builders import slow

SILOS = (0, 1, 2)
LISTS = [frozenset(some) for size in range(4) for some in itertools.combinations(SILOS, size)]
"""Survivor sets of honest answers.

The empty one stands for a share holder without a request, or for a set with only answers of Byzantine silos.
"""


def reduced(rows, columns):
    """Reduce the rows modulo P by the first columns.

    Return the other columns of the rows that are zero there.
    """
    rows = [list(row) for row in rows]
    done = 0
    for column in range(columns):
        pivot = next((i for i in range(done, len(rows)) if rows[i][column] % P), None)
        if pivot is None:
            continue
        rows[done], rows[pivot] = rows[pivot], rows[done]
        inverse = pow(rows[done][column], -1, P)
        for i in range(done + 1, len(rows)):
            if factor := rows[i][column] * inverse % P:
                rows[i] = [(a - factor * b) % P for a, b in zip(rows[i], rows[done], strict=True)]
        done += 1
    return [row[columns:] for row in rows[done:]]


def learned(lists, colluders, needed):
    """Return a basis of the sums of honest values that follow from these sets' parts and the colluders' shares.

    Every honest silo's polynomial has random coefficients, which are eliminated. The first share holders are honest.
    """
    seen = []
    for i, silos in enumerate(lists, start=1):
        seen.append(
            ([pow(i, e, P) * (u in silos) for u in SILOS for e in range(1, needed)], [u in silos for u in SILOS])
        )
    for j, own in itertools.product(range(len(lists) + 1, len(lists) + colluders + 1), SILOS):
        seen.append(([pow(j, e, P) * (u == own) for u in SILOS for e in range(1, needed)], [u == own for u in SILOS]))
    rows = reduced(
        [coefficients + [int(v) for v in values] for coefficients, values in seen], len(SILOS) * (needed - 1)
    )
    echelon = []
    for k in range(len(SILOS)):
        rows = [row for row in rows if any(row)]
        if lead := next((row for row in rows if row[k]), None):
            scaled = [v * pow(lead[k], -1, P) % P for v in lead]
            echelon.append(tuple(scaled))
            rows = [[(a - row[k] * b) % P for a, b in zip(row, scaled, strict=True)] for row in rows]
    return echelon


@pytest.mark.parametrize(
    ("openers", "colluders", "needed"), [(3, 0, 3), (4, 0, 3), (5, 0, 4), (4, 1, 4), (5, 1, 4), (5, 2, 5)]
)
def test_all_that_is_learned_is_one_sum(openers, colluders, needed):
    """F8 by rank over the field, for all ways to send sets: one sum, of a set that enough share holders received."""
    assert needed >= least_needed(openers, colluders)
    opened = 0
    honest = openers - colluders
    families = (
        itertools.product(LISTS, repeat=honest) if honest < 5 else itertools.combinations_with_replacement(LISTS, 5)
    )
    for lists in families:
        basis = learned(lists, colluders, needed)
        enough = [some for some in set(lists) if some and lists.count(some) >= needed - colluders]
        expected = [tuple(int(u in some) for u in SILOS) for some in enough]
        assert basis == expected
        assert len(basis) <= 1
        opened += len(basis)
    assert opened


def test_fewer_parts_would_open_a_single_silo():
    """2 needed > holders + colluders is not enough: sets a, ab, b at the points 1, 2, 3 give 3 a - b."""
    assert least_needed(3, 0) == 3
    basis = learned((LISTS[1], LISTS[4], LISTS[2]), 0, 2)
    assert basis == [(1, -pow(3, -1, P) % P, 0)]
    leaking = [
        lists for lists in itertools.product(LISTS[:5], repeat=3)
        if any(row.count(0) == 1 for row in learned(lists, 0, 2))
        and len({v for row in learned(lists, 0, 2) for v in row if v}) > 1
    ]  # fmt: skip
    assert len(leaking) == 6
    assert all(needed < least_needed(openers, c) for openers, c, needed in ((6, 0, 4), (7, 1, 5)))


FIELD = 7


@pytest.fixture
def small_field(monkeypatch):
    """Deal shares modulo 7 with all polynomials at once: one column for each choice of all coefficients."""
    monkeypatch.setattr(sharing, "BITS", 3)
    monkeypatch.setattr(sharing, "P", FIELD)
    monkeypatch.setattr(sharing, "_SPLIT", 3)

    def views(values, openers, needed, colluders, lists):
        """Return the view of coordinator and colluders for these values, shape (columns, numbers seen)."""
        rows = len(values) * (needed - 1)
        drawn = np.indices((FIELD,) * rows, dtype=np.uint64).reshape(rows, -1)
        dealt = []
        for u, value in enumerate(values):
            own = drawn[u * (needed - 1) : (u + 1) * (needed - 1)]
            monkeypatch.setattr(sharing, "_uniform", lambda rows, size, own=own: own)
            dealt.append(sharing.deal(np.full(drawn.shape[1], value), openers, needed))
        seen = []
        for i, silos in enumerate(lists):
            total = np.zeros(drawn.shape[1], dtype=np.uint64)
            for u in silos:
                total = sharing.add(total, dealt[u][i])
            seen.append(total)
        seen += [dealt[u][j] for u in range(len(values)) for j in range(len(lists), len(lists) + colluders)]
        return np.array(seen).T

    return views


def codes(views):
    """Return one number for each view."""
    return views.astype(np.int64) @ FIELD ** np.arange(views.shape[1])


def shares_law(scale, honest, half=40):
    """Return the distribution of one silo's noise share modulo 7, from scipy's negative binomial."""
    one = stats.nbinom.pmf(np.arange(half + 1), 1 / honest, -np.expm1(-1 / scale))
    law = np.convolve(one, one[::-1])
    return np.array([law[(np.arange(-half, half + 1) - r) % FIELD == 0].sum() for r in range(FIELD)])


def losses(views, openers, needed, colluders, lists, scale, honest):
    """Return the largest log-ratio of any view if a count of silo 0 grows by one, over all coefficients and noise."""
    seen = {
        values: np.bincount(codes(views(values, openers, needed, colluders, lists)), minlength=1)
        for values in itertools.product(range(FIELD), repeat=2)
    }
    table = np.zeros((FIELD, FIELD, FIELD ** (len(lists) + 2 * colluders)))
    for (a, b), law in seen.items():
        table[a, b, : len(law)] = law / law.sum()
    noise = shares_law(scale, honest)
    shifted = np.array([np.roll(noise, a) for a in range(FIELD)])  # row a: the distribution of count a plus its noise
    laws = np.einsum("ax,by,xyv->abv", shifted, shifted, table, optimize=True)
    worst = 0.0
    for a, b in itertools.product(range(FIELD), repeat=2):
        one, other = laws[a, b], laws[(a + 1) % FIELD, b]
        there = (one > 0) | (other > 0)
        assert ((one > 0) == (other > 0)).all()
        worst = max(worst, float(np.abs(np.log(one[there] / other[there])).max()))
    return worst


A, B, BOTH, NONE = (0,), (1,), (0, 1), ()


def test_loss_of_both_rounds_by_enumeration(small_field):
    """All views of a coordinator that sends arbitrary survivor sets to 3 share holders.

    The privacy loss is at most 1/scale for each count that changes. The noise is the sum of both silos' shares. Only
    the set of both silos, sent to all, reveals anything. The set of one silo is too short for this noise and would
    reveal more, so that share holders refuse it.
    """
    scale, found = 1.2, {}
    for lists in itertools.combinations_with_replacement((NONE, A, B, BOTH), 3):
        found[lists] = losses(small_field, 3, 3, 0, lists, scale, honest=2)
    opened = {lists: loss for lists, loss in found.items() if loss > 1e-9}
    assert set(opened) == {(BOTH,) * 3, (A,) * 3}
    assert 0.2 / scale < opened[(BOTH,) * 3] <= 1 / scale + 1e-9 < opened[(A,) * 3]


@pytest.mark.parametrize(
    ("lists", "opens"),
    [((BOTH,) * 3, True), ((A, BOTH, B), False), *slow([((BOTH, BOTH, A), False), ((NONE,) * 3, False)])],
)
def test_loss_with_a_colluding_share_holder_by_enumeration(small_field, lists, opens):
    """One of 4 share holders colludes and reveals its shares of every silo: the first messages alone reveal nothing."""
    few = [(0, 1), (1, 0), (3, 4), (6, 1)]
    laws = {v: np.sort(codes(small_field(v, 4, 4, 1, lists))) for v in few}
    same = [(v, w) for v, w in itertools.combinations(few, 2) if (laws[v] == laws[w]).all()]
    equal_sums = [(v, w) for v, w in itertools.combinations(few, 2) if (sum(v) - sum(w)) % FIELD == 0]
    assert same == (equal_sums if opens else list(itertools.combinations(few, 2)))
