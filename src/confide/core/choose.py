"""The private choice of a model or score on a share of the records; the others calibrate (Theorem S1)."""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_numeric, as_vector, refuse_other_rows
from confide.candidates import Candidates, listed
from confide.core.account import undivided
from confide.core.calibrate import calibrate
from confide.core.options import GroupOptions, LedgerOptions, Options
from confide.core.release import Release
from confide.counting import ScoreHistogram, check_scores
from confide.errors import InputError, InputTypeError
from confide.mechanisms import Chosen, ScoreChoice, privacy_statement, with_choice
from confide.scores import NamedScores, name_of_scores, score_kind
from confide.selection import uniforms
from confide.support import (
    MOST_PER_PERSON,
    Level,
    check_unknown_arguments,
    exact_level,
    float_below,
    positive_integer,
    positive_number,
    privacy_loss,
    takes_alpha,
)

if TYPE_CHECKING:
    from confide.ledger import Dataset

# The number of candidates at which sets are compared; it does not affect the privacy loss.
_CANDIDATES = 480

# Widths are compared in steps of 1/1000 of the largest one.
_STEPS = 1000

# The least number of bytes of a key.
_LEAST_KEY = 16


@dataclass(frozen=True, eq=False, repr=False)
class Choice:
    """The chosen score, and the records not used for the choice. It contains private scores, and cannot be pickled.

    Parameters
    ----------
    chosen
        The public statement, which a release contains: the chosen name, and the privacy loss of the choice.
    scores
        The chosen scores of all other records, float64, with the name of the score and its classes. **Private.**
    rest
        Whether each record is one of these other records, which were not used for the choice; bool, shape (n,).
        **Private.**
    options
        The options for the release of a threshold: level, privacy loss, and the cell of the ledger's data set.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> good, poor = np.abs(rng.normal(0, 1, 2000)), np.abs(rng.normal(0, 3, 2000))
    >>> offers = {name: NamedScores.of(s, "absolute_residual") for name, s in (("good", good), ("poor", poor))}
    >>> choice = confide.choose_score(offers, 0.1, 1.0, largest_size=10.0, unit=1.0)
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

    def calibrate(self, **options: Unpack[GroupOptions]) -> Release:
        """Release the chosen score's threshold, as `confide.calibrate` does, from the records not used for the choice.

        Parameters
        ----------
        **options
            The options of `confide.calibrate`. By default alpha, epsilon, unit, records per person and the ledger are
            those of the choice.
        """
        return calibrate(self.scores, **{**self.options, "chosen": self.chosen, **options})

    def __repr__(self) -> str:
        return f"Choice(chosen={self.chosen!r})"

    def __reduce__(self) -> NoReturn:
        raise InputTypeError("choice", "must not be pickled or copied: it contains private scores")


# The arguments of a choice among columns of a table, and of the release of its one threshold.
CHOICE_ARGUMENTS = frozenset(
    {"alpha", "epsilon", "choice_share", "largest_size", *Options.__optional_keys__} - {"chosen"}
)


@takes_alpha
def choose_score(
    scores: Mapping[str, ArrayLike],
    alpha: Level,
    epsilon: float,
    *,
    sizes: Mapping[str, ArrayLike] | None = None,
    largest_size: float | None = None,
    choice_share: Level = "1/5",
    ids: ArrayLike | None = None,
    key: bytes | None = None,
    unit: float | None = None,
    records_per_person: int = 1,
    **options: Unpack[LedgerOptions],
) -> Choice:
    """Choose the model or score with the smallest sets privately, on a random share of the records.

    Each record is put into the share at random, or by a keyed hash of its id. `Choice.calibrate` computes the threshold
    from the other records. The coverage guarantee holds whatever was chosen. Choice and threshold together have the
    larger of the two privacy losses, because no record is used for both (Theorem S1). Nothing is guaranteed about the
    sizes of sets.

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
        For each name the sizes of sets. For sets of labels: the scores of all labels, shape (n, K), as
        `scores.all_scores` returns them. For regression scores: the base and the slope of the width, shape (n, 2); an
        interval at the threshold t has the width base + slope t. By default 0 and 2, if all scores are absolute
        residuals.
    largest_size
        The public size C from which on all sets are equally useless: scores are compared by the mean of min(size, C).
        For sets of labels the default is K, so that the mean size is compared. For intervals there is no default: state
        a width that no useful interval exceeds. The release states C.
    choice_share
        The probability of a record to be in the share that chooses, above 0 and at most 1/2. A share of a fixed number
        of records is not possible, because it would not be private.
    ids, key
        Instead of coins: the person's id for each record, str or int, shape (n,), and at least 16 secret random bytes
        for this kind of ids. With the same key each call has the same share, so that a ledger recognises a repeated
        request.
    unit
        A public typical size of residuals, as in `calibrate`.
    records_per_person
        Public bound on the number of records of one person.
    **options
        `ledger`, `dataset` and `again`, as in `calibrate`. The ledger charges only the larger loss of the two shares,
        as cells of one partition. If the share is drawn again in a second call, its loss is added.

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
    # The scores and the sizes of sets, by name.
    check_unknown_arguments("choose_score", options, tuple(LedgerOptions.__optional_keys__))
    records = positive_integer("records_per_person", records_per_person, most=MOST_PER_PERSON)
    total = privacy_loss("epsilon", epsilon)
    per_record = privacy_loss("epsilon", float_below(Fraction(total) / records))
    named_scores = _read_scores(scores)
    n = len(next(iter(named_scores.values())))
    set_sizes = _read_sizes(named_scores, n, sizes, largest_size)
    tables = {f"sizes[{name!r}]": table for name, table in (sizes or {}).items()}
    refuse_other_rows(ids=ids, **{f"scores[{name!r}]": each for name, each in scores.items()}, **tables)

    # The public statement of the choice, and the records that choose.
    choosing = ScoreChoice(1 - exact_level("alpha", alpha), set_sizes.steps, per_record)
    chosen = Chosen(
        name=next(iter(named_scores)),  # until the choice is made
        among=tuple(named_scores),
        share=exact_level("choice_share", choice_share),
        epsilon=choosing.loss,
        largest_size=set_sizes.largest,
    )
    uniform, partition = _uniform_numbers(n, ids, key, chosen.share)
    chooses = uniform < float(chosen.share)
    offers = [_Offer.of(each, set_sizes.tables[name], unit) for name, each in named_scores.items()]

    def utilities() -> NDArray[np.int64]:
        """The private utility of each score, on the records that choose."""
        return np.array([_utility(choosing, offer, set_sizes, chooses) for offer in offers], dtype=np.int64)

    # The choice: of all that follows from the records that choose, only one draw is released.
    of_release: dict[str, Any] = {"alpha": alpha, "epsilon": epsilon, "records_per_person": records}
    if unit is not None:
        of_release["unit"] = unit
    if options.get("ledger") is None and options.get("dataset") is None:
        if options.get("again"):
            raise InputError("again", "must be left out without a ledger: every call is new")
        name = chosen.among[choosing.choose(utilities())]
    else:
        over = [[offer.scores.score, offer.candidates.digest] for offer in offers]
        identity = {"largest_size": largest_size, "records": records, "over": over}
        choosing_cell, calibrating_cell = _cells(options.get("dataset"), partition)
        name = _charge_and_choose(chosen, choosing, identity, utilities, {**options, "dataset": choosing_cell})
        of_release |= {**options, "dataset": calibrating_cell}

    # The other records calibrate.
    best = named_scores[name]
    rest = ~chooses
    others = NamedScores.of(best[rest], best.score, best.classes)
    return Choice(replace(chosen, name=name), others, rest, of_release)


def _read_scores(scores: Mapping[str, ArrayLike]) -> dict[str, NamedScores]:
    if not isinstance(scores, Mapping):
        raise InputTypeError("scores", "must be a mapping of names to scores", got=type(scores).__name__)
    named = {}
    for name, given in scores.items():
        score, classes = name_of_scores(given, None, None)
        array = as_vector(f"scores[{name!r}]", given, empty=True).astype(np.float64)
        named[name] = NamedScores.of(array, name if score is None else score, classes)
    lengths = {len(each) for each in named.values()}
    if len(lengths) > 1:
        raise InputError("scores", "must have one score of each record under each name", got=f"{len(lengths)} lengths")
    Chosen(next(iter(named), ""), tuple(named), Fraction(1, 2), 1.0)  # an error about the names
    return named


@dataclass(frozen=True, eq=False)
class _SetSizes:
    """The sizes of the sets of all scores, by name.

    A table has the scores of all labels, shape (n, K); or of intervals the base and slope of the width, shape (n, 2).
    """

    tables: Mapping[str, NDArray[np.float64]]
    largest: float
    of_intervals: bool

    @property
    def steps(self) -> int:
        """The number of steps from size 0 to the largest one; a label is a step."""
        return _STEPS if self.of_intervals else int(self.largest)


def _read_sizes(
    scores: Mapping[str, NamedScores], n: int, sizes: Mapping[str, ArrayLike] | None, largest: float | None
) -> _SetSizes:
    # All names have sizes of the same kind: of sets of labels, or of intervals.
    kinds = [score_kind(each.score) for each in scores.values()]
    if sizes is None and all(kind.family == "absolute_residual" for kind in kinds):
        sizes = dict.fromkeys(scores, np.tile([0.0, 2.0], (n, 1)))
    if not isinstance(sizes, Mapping) or set(sizes) != set(scores):
        raise InputError("sizes", "must be given for all names of scores, unless these are all absolute residuals")
    intervals = kinds[0].task == "regression"
    if any((kind.task == "regression") != intervals for kind in kinds):
        raise InputError("scores", "must be all for sets of labels, or all for intervals")

    # Tables of finite numbers.
    tables = {name: as_numeric(f"sizes[{name!r}]", given).astype(np.float64) for name, given in sizes.items()}
    for name, table in tables.items():
        usable = table.ndim == 2 and len(table) == n and table.shape[1] and np.isfinite(table).all()
        if not usable or (intervals and table.shape[1] != 2):
            must = f"must hold finite numbers in the shape ({n}, {2 if intervals else 'K'})"
            raise InputError(f"sizes[{name!r}]", must, got=f"shape {table.shape}")

    # The size from which on all sets are equally bad.
    labels = max(table.shape[1] for table in tables.values())
    if intervals and largest is None:
        must = "must be given for intervals: the public width from which on all are equally bad"
        raise InputError("largest_size", must)
    if intervals:
        limit = positive_number("largest_size", largest)
    else:
        limit = labels if largest is None else positive_integer("largest_size", largest, most=labels)
    return _SetSizes(tables, limit, intervals)


@dataclass(frozen=True, eq=False)
class _Offer:
    """Scores that may be chosen, the sizes of their sets (see `_SetSizes`), and the candidates that are compared."""

    scores: NamedScores
    sizes: NDArray[np.float64]
    candidates: Candidates

    @classmethod
    def of(cls, scores: NamedScores, sizes: NDArray[np.float64], unit: float | None) -> _Offer:
        """With the candidates of the score; raises an error for scores that cannot be counted."""
        candidates = listed(score_kind(scores.score).choose_candidates(None, unit), _CANDIDATES)
        check_scores(scores, scores.score)
        return cls(scores, sizes, candidates)

    def reached(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """The number of scores at or below each candidate, shape (m,)."""
        return ScoreHistogram.from_scores(scores, self.candidates, self.scores.score).counts.cumsum()


def _utility(choosing: ScoreChoice, offer: _Offer, sizes: _SetSizes, rows: NDArray[np.bool_]) -> int:
    """The private utility of a score, on these records."""
    covered = offer.reached(offer.scores[rows])
    table = offer.sizes[rows]
    if not sizes.of_intervals:
        sums = offer.reached(np.sort(table, axis=1)[:, : sizes.steps].ravel())
    else:
        base, slope = table.T
        with np.errstate(over="ignore"):
            widths = (np.clip((base + slope * t) / sizes.largest, 0, 1) for t in offer.candidates.edges)
            in_steps = [np.floor(_STEPS * width).sum() for width in widths]
        sums = np.array([*in_steps, _STEPS * len(table)], dtype=np.int64)
    return choosing.utility(sums, covered, int(covered[-1]))


def _uniform_numbers(n: int, ids: Any, key: Any, share: Fraction) -> tuple[NDArray[np.float64], str]:
    """A number in [0, 1) for each record, of a coin or of the hash of its id; and the name of this division."""
    # Coins, or ids that are usable.
    if (ids is None) != (key is None):
        raise InputError("ids", "ids and key must be given together: the id of each record, and a secret")
    if ids is None:
        return uniforms(n), f"choice by coins {secrets.token_hex(8)}"
    if not isinstance(key, bytes) or len(key) < _LEAST_KEY:
        raise InputError("key", f"must be at least {_LEAST_KEY} secret random bytes")
    names = np.atleast_1d(ids).tolist()
    other = sum(not isinstance(name, str | int) for name in names)
    if len(names) != n or other:
        got = f"{other} of another type" if other else str(len(names))
        raise InputError("ids", f"must be one str or int for each of {n} records", got=got)

    # The first 53 bits of a keyed hash of each id, as many as a double holds; the division is named by another hash.
    hashes = (hmac.digest(key, f"id {name}".encode(), "sha256") for name in names)
    bits = [int.from_bytes(digest[:8], "big") >> 11 for digest in hashes]
    named = hmac.digest(key, f"share {share}".encode(), "sha256")[:8].hex()
    return np.array(bits, dtype=np.float64) * 2.0**-53, f"choice by ids {named}"


def _cells(dataset: str | Dataset | None, partition: str) -> list[Dataset]:
    """The cells of the records that choose, and of those that calibrate."""
    from confide.ledger import Group

    whole = undivided("" if dataset is None else dataset, "The two shares of its records are charged as groups")
    return [replace(whole, group=Group(partition, cell)) for cell in ("choosing", "calibrating")]


def _charge_and_choose(
    chosen: Chosen,
    choosing: ScoreChoice,
    identity: Mapping[str, Any],
    utilities: Callable[[], NDArray[np.int64]],
    options: Mapping[str, Any],
) -> str:
    """Charge the share that chooses, then draw; the name of the chosen score, which a ledger may already contain."""
    from confide.ledger import make_payment, pay

    stated = {"level": str(choosing.level), "steps": choosing.steps, "epsilon": choosing.epsilon}
    identity = {**identity, "choice": stated, "chosen": [*chosen.among, str(chosen.share)]}
    nothing_else = privacy_statement(None, "add_remove", identity["records"])
    privacy = with_choice(nothing_else, chosen.epsilon)
    payment = make_payment(privacy, "choice by the exponential mechanism", identity, **{"ledger": None, **options})
    text = pay(
        payment,
        utilities,
        lambda sums: sums.astype("<i8").tobytes(),
        lambda sums: json.dumps({"chosen": chosen.among[choosing.choose(sums)]}),
    )
    return str(json.loads(text)["chosen"])
