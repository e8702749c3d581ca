"""The private choice of a model or score on a share of the records; the others calibrate (docs/theory-selection.md)."""

from __future__ import annotations

import hmac
import json
import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_numeric, as_vector, fresh_uniforms
from confide.calibration.calibrate import LedgerOptions, Options, calibrate
from confide.candidates import Candidates
from confide.counting import ScoreHistogram
from confide.errors import InputError, InputTypeError
from confide.mechanisms import Chosen, PrivacyStatement, ScoreChoice
from confide.releases import Calibration
from confide.scores import NamedScores, name_of_scores, score_kind
from confide.support import (
    LEAST_LOSS,
    MOST_PER_PERSON,
    Level,
    check_unknown_arguments,
    exact_level,
    float_above,
    float_below,
    positive_integer,
    positive_number,
    privacy_loss,
)

if TYPE_CHECKING:
    from confide.ledger import Dataset

Sizes: TypeAlias = ArrayLike | tuple[ArrayLike, ArrayLike]
"""The scores of all labels, shape (n, K): a set has the labels with a score up to the threshold t. Or a tuple
(base, slope) of numbers or arrays of shape (n,): an interval has the width base + slope t, and at least 0."""

_CANDIDATES = 480
"""The number of candidates at which sets are compared; it does not affect the privacy loss."""

_STEPS = 1000
"""Widths are compared in steps of 1/1000 of the largest one."""


@dataclass(frozen=True, eq=False, repr=False)
class Choice:
    """The chosen score, and the records that did not choose. It contains private scores, and cannot be pickled.

    Parameters
    ----------
    chosen
        The public statement, which a release contains: the chosen name, and the privacy loss of the choice.
    scores
        The chosen scores of all other records, float64, with the name of the score and its classes. **Private.**
    rest
        Whether each record is among them; bool, shape (n,). **Private.**
    options
        The options for the release of a threshold: level, privacy loss, and the cell of the ledger's data set.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> good, poor = np.abs(rng.normal(0, 1, 2000)), np.abs(rng.normal(0, 3, 2000))
    >>> offers = {name: NamedScores.of(s, "absolute_residual") for name, s in (("good", good), ("poor", poor))}
    >>> choice = confide.choose_score(offers, 0.1, 1.0, most=10.0, unit=1.0)
    >>> choice.name, choice.calibrate().chosen.among
    ('good', ('good', 'poor'))
    """

    chosen: Chosen
    scores: NamedScores
    rest: NDArray[np.bool_]
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name of the chosen model or score, which is public."""
        return self.chosen.name

    @property
    def dataset(self) -> Dataset | None:
        """The data set that a ledger charges for the threshold: the cell of the records that did not choose."""
        return self.options.get("dataset")

    def calibrate(self, **options: Unpack[Options]) -> Calibration:
        """Release the threshold of the chosen score, as `confide.calibrate` does, from the records that did not choose.

        Parameters
        ----------
        **options
            The options of `confide.calibrate`. By default alpha, epsilon, unit, records per person and the ledger are
            those of the choice.
        """
        released: Calibration = calibrate(self.scores, **{**self.options, "chosen": self.chosen, **options})
        return released

    def __repr__(self) -> str:
        return f"Choice(chosen={self.chosen!r})"

    def __reduce__(self) -> NoReturn:
        raise InputTypeError("choice", "must not be pickled or copied: it contains private scores")


def choose_score(
    scores: Mapping[str, ArrayLike],
    alpha: Level,
    epsilon: float,
    *,
    sizes: Mapping[str, Sizes] | None = None,
    most: float | None = None,
    share: Level = "1/5",
    ids: ArrayLike | None = None,
    key: bytes | None = None,
    unit: float | None = None,
    records_per_person: int = 1,
    **options: Unpack[LedgerOptions],
) -> Choice:
    """Choose the model or score with the smallest sets privately, on a random share of the records.

    Each record is in the share by a coin of its own, or by a keyed hash of its id. The other records calibrate:
    `Choice.calibrate`. The coverage guarantee holds whatever was chosen. Choice and threshold together lose the larger
    of both epsilons, because no record is in both (Theorem S1). Nothing is guaranteed about the sizes of sets.

    Parameters
    ----------
    scores
        For each public name, the scores of the same records in the same order, shape (n,); see `calibrate`. An array
        without a name has the score of its key. Models and names are fixed before these records are seen.
    alpha
        Miscoverage level at which sizes are compared, in (0, 1); also that of `Choice.calibrate`.
    epsilon
        Privacy loss per person of the choice, at least 1e-6; also that of `Choice.calibrate`.
    sizes
        For each name the sizes of sets: the scores of all labels, shape (n, K), as `scores.all_scores` returns them; or
        a tuple (base, slope) for intervals of the width base + slope t at the threshold t. By default (0, 2), if all
        scores are absolute residuals.
    most
        The public size C from which on all sets are equally bad: labels (default: the square root of K, rounded up,
        and at least 2), or a width in the units of the target, which has no default.
    share
        The probability of a record to be in the share that chooses, above 0 and at most 1/2. A share of a fixed number
        of records is not possible, because it would not be private.
    ids, key
        Instead of coins: the person's id for each record, str or int, shape (n,), and at least 16 secret random bytes
        for this kind of ids. The same key gives the same share again, and a ledger recognises it.
    unit
        A public typical size of residuals, as in `calibrate`.
    records_per_person
        Public bound on the number of records of one person.
    **options
        `ledger`, `dataset` and `again`, as in `calibrate`. The two shares are cells of one partition, which cost their
        maximum. Coins that are drawn again are another partition, whose cost adds up.

    Returns
    -------
    Choice

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used; then nothing was chosen or charged.
    BudgetError, OtherDataError, LedgerError
        If the ledger does not allow it; then nothing was chosen.

    Examples
    --------
    >>> from confide.scores import all_scores, class_score
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(5) / 5, 3000)
    >>> labels = (p.cumsum(axis=1) < rng.random((3000, 1))).sum(axis=1).clip(max=4)
    >>> names = ["lac", "aps", "top_k"]
    >>> offers = {name: class_score(p, labels, name) for name in names}
    >>> choice = choose_score(offers, 0.1, 2.0, sizes={name: all_scores(p, name) for name in names})
    >>> released = choice.calibrate()
    >>> released.score in names, released.privacy.epsilon
    (True, 2.0)
    """
    check_unknown_arguments("choose_score", options, tuple(LedgerOptions.__optional_keys__))
    offers = _read_offers(scores)
    n = len(next(iter(offers.values())))
    part, records = exact_level("share", share), positive_integer("records_per_person", records_per_person)
    level, total = 1 - exact_level("alpha", alpha), privacy_loss("epsilon", epsilon)
    if records > MOST_PER_PERSON or Fraction(total) / records < Fraction(LEAST_LOSS):
        raise InputError("epsilon", f"must be at least {LEAST_LOSS:g} for each record of a person", got=f"{total:g}")
    grids = {name: _candidates(offer.score, unit) for name, offer in offers.items()}
    read, steps = _read_sizes(offers, sizes, most)
    choosing = ScoreChoice(level, steps, float_below(Fraction(total) / records))
    chosen = Chosen(next(iter(offers)), tuple(offers), part, choosing.loss)
    numbers, partition = _numbers(n, ids, key, part)
    in_share = numbers < float(part)
    for name, offer in offers.items():
        ScoreHistogram.from_scores(offer, grids[name], offer.score)  # names the position among all records

    def utilities() -> NDArray[np.int64]:
        found = []
        for name, offer in offers.items():
            covered = ScoreHistogram.from_scores(offer[in_share], grids[name], offer.score).counts.cumsum()
            found.append(choosing.utility(read[name].sums(in_share, grids[name]), covered, int(covered[-1])))
        return np.array(found, dtype=np.int64)

    given: dict[str, Any] = {"alpha": alpha, "epsilon": epsilon, "records_per_person": records}
    given |= {} if unit is None else {"unit": unit}
    if all(value is None for value in (options.get("ledger"), options.get("dataset"))):
        if options.get("again"):
            raise InputError("again", "must be left out without a ledger: every call is new")
        chosen = replace(chosen, name=chosen.among[choosing.choose(utilities())])
    else:
        content = {"among": [*chosen.among], "share": str(part), "level": str(level), "steps": steps, "most": most}
        content |= {"scores": [offer.score for offer in offers.values()], "epsilon": chosen.epsilon, "records": records}
        content |= {"candidates": [grid.digest for grid in grids.values()]}
        chosen, cell = _pay(chosen, choosing, content, partition, records, utilities, options)
        given |= {"ledger": options["ledger"], "dataset": cell, "again": options.get("again", False)}
    rest = ~in_share
    offer = offers[chosen.name]
    return Choice(chosen, NamedScores.of(offer[rest], offer.score, offer.classes), rest, given)


def _read_offers(scores: Mapping[str, ArrayLike]) -> dict[str, NamedScores]:
    """The scores by name, all of the same length."""
    if not isinstance(scores, Mapping):
        raise InputTypeError("scores", "must be a mapping of names to scores", got=type(scores).__name__)
    offers = {}
    for name, given in scores.items():
        if not isinstance(name, str):
            raise InputTypeError("scores", "must have names of type str", got=type(name).__name__)
        score, classes = name_of_scores(given, None, None)
        array = as_vector(f"scores[{name!r}]", given, empty=True).astype(np.float64)
        offers[name] = NamedScores.of(array, name if score is None else score, classes)
    try:
        Chosen(next(iter(offers), ""), tuple(offers), Fraction(1, 2), 1.0)
    except InputError as error:
        raise InputError("scores", error.requirement, error.got) from None
    if len(lengths := {len(offer) for offer in offers.values()}) > 1:
        raise InputError("scores", "must have one score of each record under each name", got=f"{len(lengths)} lengths")
    return offers


def _candidates(score: str | None, unit: float | None) -> Candidates:
    law = score_kind(score).choose_candidates(None, unit)
    return law if isinstance(law, Candidates) else Candidates.quantiles(law, _CANDIDATES)


@dataclass(frozen=True, eq=False)
class _LabelSizes:
    """The scores of all labels, shape (n, K); the size counts those up to the threshold, at most `most`."""

    table: NDArray[np.float64]
    most: int
    score: str | None

    def sums(self, rows: NDArray[np.bool_], candidates: Candidates) -> NDArray[np.int64]:
        """The sum of the sizes of these records' sets at each candidate, shape (m,)."""
        smallest = self.table[rows]
        if self.most < smallest.shape[1]:
            smallest = np.partition(smallest, self.most - 1, axis=1)[:, : self.most]
        return ScoreHistogram.from_scores(smallest.ravel(), candidates, self.score).counts.cumsum()


@dataclass(frozen=True, eq=False)
class _Widths:
    """Widths base + slope t, in steps from 0 to `most`."""

    base: NDArray[np.float64]
    slope: NDArray[np.float64]
    most: float

    def sums(self, rows: NDArray[np.bool_], candidates: Candidates) -> NDArray[np.int64]:
        """The sum of the widths of these records' intervals at each candidate, in steps, shape (m,)."""
        base, slope = self.base[rows], self.slope[rows]
        with np.errstate(over="ignore"):
            widths = (np.clip((base + slope * t) / self.most, 0, 1) for t in candidates.edges)
            sums = [int(np.floor(_STEPS * width).sum()) for width in widths]
        return np.array([*sums, _STEPS * len(base)], dtype=np.int64)


def _read_sizes(
    offers: Mapping[str, NamedScores], sizes: Mapping[str, Sizes] | None, most: float | None
) -> tuple[dict[str, _LabelSizes | _Widths], int]:
    """The sizes of sets by name, and the number of steps from 0 to the largest size."""
    n = len(next(iter(offers.values())))
    if sizes is None:
        if any(score_kind(offer.score).family != "absolute_residual" for offer in offers.values()):
            raise InputError("sizes", "must be given, unless all scores are absolute residuals")
        sizes = dict.fromkeys(offers, (0.0, 2.0))
    if not isinstance(sizes, Mapping) or set(sizes) != set(offers):
        raise InputError("sizes", "must have the names of scores")
    if len({isinstance(given, tuple) for given in sizes.values()}) > 1:
        raise InputError("sizes", "must be scores of all labels for all names, or widths for all")
    read: dict[str, _LabelSizes | _Widths] = {}
    if isinstance(next(iter(sizes.values())), tuple):
        if most is None:
            raise InputError("most", "must be given for intervals: the public width from which on all are equally bad")
        width = positive_number("most", most)
        for name, given in sizes.items():
            where = f"sizes[{name!r}]"
            assert isinstance(given, tuple)
            if len(given) != 2:
                raise InputError(where, "must be a pair (base, slope)", got=f"{len(given)} values")
            base, slope = (np.broadcast_to(_numbers_of_records(where, value, n), (n,)) for value in given)
            read[name] = _Widths(base, slope, width)
        return read, _STEPS
    tables = {name: as_numeric(f"sizes[{name!r}]", given) for name, given in sizes.items()}
    for name, table in tables.items():
        if table.ndim != 2 or len(table) != n or not table.shape[1]:
            where = f"must have shape ({n}, K), the scores of all labels of each record"
            raise InputError(f"sizes[{name!r}]", where, got=f"shape {table.shape}")
        ScoreHistogram.from_scores(table.ravel(), Candidates.unit(1), offers[name].score)  # rejects unusable numbers
    widest = max(table.shape[1] for table in tables.values())
    limit = max(2, math.isqrt(widest - 1) + 1) if most is None else positive_integer("most", most, most=widest)
    for name, table in tables.items():
        read[name] = _LabelSizes(table.astype(np.float64), limit, offers[name].score)
    return read, limit


def _numbers_of_records(name: str, given: Any, n: int) -> NDArray[np.float64]:
    array = as_numeric(name, given).astype(np.float64)
    if array.shape not in ((), (n,)):
        raise InputError(name, f"must be numbers, or have shape ({n},)", got=f"shape {array.shape}")
    if others := np.count_nonzero(~np.isfinite(array)):
        raise InputError(name, "must hold finite numbers", got=f"{others} others")
    return array


_LEAST_KEY = 16


def _numbers(n: int, ids: Any, key: Any, share: Fraction) -> tuple[NDArray[np.float64], str]:
    """A number in [0, 1) for each record, of a coin or of the hash of its id; and the name of this division."""
    if (ids is None) != (key is None):
        raise InputError("ids", "ids and key must be given together: the id of each record, and a secret")
    if ids is None:
        return fresh_uniforms(n), f"choice by coins {secrets.token_hex(8)}"
    if not isinstance(key, bytes) or len(key) < _LEAST_KEY:
        raise InputError("key", f"must be at least {_LEAST_KEY} secret random bytes")
    listed = np.asarray(ids).tolist()
    if len(listed) != n or not all(isinstance(one, str | int) for one in listed):
        raise InputError("ids", f"must be one str or int for each of {n} records", got=str(len(listed)))
    bits = [int.from_bytes(hmac.digest(key, f"id {one}".encode(), "sha256")[:8], "big") >> 11 for one in listed]
    named = hmac.digest(key, f"share {share}".encode(), "sha256")[:8].hex()
    return np.array(bits, dtype=np.float64) * 2.0**-53, f"choice by ids {named}"


def _pay(
    chosen: Chosen,
    choosing: ScoreChoice,
    content: Mapping[str, Any],
    partition: str,
    records: int,
    utilities: Any,
    options: LedgerOptions,
) -> tuple[Chosen, Dataset]:
    """Charge the share that chooses, then draw; with the cell of the other records."""
    from confide.ledger import Dataset, Group, make_payment, pay

    dataset = options.get("dataset")
    whole = dataset if isinstance(dataset, Dataset) else Dataset("" if dataset is None else dataset)
    if whole.group is not None:
        raise InputError("dataset", "must be the whole one, without a group", remedy="Its two shares are charged")
    one = chosen.epsilon
    loss = float_above(records * Fraction(one)), records, one, float_above(2 * Fraction(one)), None
    choice, rest = (replace(whole, group=Group(partition, cell)) for cell in ("choosing", "calibrating"))
    payment = make_payment(
        PrivacyStatement("add_remove", *loss), "choice by permute-and-flip", content, options.get("ledger"), choice,
        again=options.get("again", False),
    )  # fmt: skip
    text = pay(
        payment,
        utilities,
        lambda seen: seen.astype("<i8").tobytes(),
        lambda seen: json.dumps({"chosen": chosen.among[choosing.choose(seen)]}),
    )
    return replace(chosen, name=json.loads(text)["chosen"]), rest
