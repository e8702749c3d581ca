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
from confide.candidates import Candidates
from confide.core.calibrate import LedgerOptions, Options, calibrate
from confide.core.release import Release
from confide.core.sources import check_scores
from confide.counting import ScoreHistogram
from confide.errors import InputError, InputTypeError
from confide.mechanisms import Chosen, PrivacyStatement, ScoreChoice, with_choice
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

    def calibrate(self, **options: Unpack[Options]) -> Release:
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
    {"alpha", "epsilon", "choice_share", "largest_size", *Options.__optional_keys__} - {"chosen", "partition"}
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
    offers, n = _read_offers(scores)
    sizes_of_sets = _read_sizes(offers, n, sizes, largest_size)
    any_sizes = next(iter(sizes_of_sets.values()))  # the largest size is the same under all names
    tables = {f"sizes[{name!r}]": table for name, table in (sizes or {}).items()}
    refuse_other_rows(ids=ids, **{f"scores[{name!r}]": offer for name, offer in scores.items()}, **tables)

    # The public statement of the choice, and the records that choose.
    choosing = ScoreChoice(1 - exact_level("alpha", alpha), any_sizes.steps, per_record)
    chosen = Chosen(
        name=next(iter(offers)),  # until the choice is made
        among=tuple(offers),
        share=exact_level("choice_share", choice_share),
        epsilon=choosing.loss,
        largest_size=any_sizes.largest,
    )
    uniform, partition = _uniform_numbers(n, ids, key, chosen.share)
    chooses = uniform < float(chosen.share)
    grids = {name: _candidates(offer.score, unit) for name, offer in offers.items()}
    for name, offer in offers.items():
        check_scores(offer, grids[name], offer.score)

    def utilities() -> NDArray[np.int64]:
        """The private utility of each score, on the records that choose."""
        by_offer = []
        for name, offer in offers.items():
            covered = ScoreHistogram.from_scores(offer[chooses], grids[name], offer.score).counts.cumsum()
            sums = sizes_of_sets[name].sums(chooses, grids[name], offer.score)
            by_offer.append(choosing.utility(sums, covered, int(covered[-1])))
        return np.array(by_offer, dtype=np.int64)

    # The choice: of all that follows from the records that choose, only one draw is released.
    of_release: dict[str, Any] = {"alpha": alpha, "epsilon": epsilon, "records_per_person": records}
    if unit is not None:
        of_release["unit"] = unit
    if options.get("ledger") is None and options.get("dataset") is None:
        if options.get("again"):
            raise InputError("again", "must be left out without a ledger: every call is new")
        name = chosen.among[choosing.choose(utilities())]
    else:
        over = [[offer.score, grids[name].digest] for name, offer in offers.items()]
        identity = {"largest_size": largest_size, "records": records, "over": over}
        choosing_cell, calibrating_cell = _cells(options.get("dataset"), partition)
        name = _charge_and_choose(chosen, choosing, identity, utilities, {**options, "dataset": choosing_cell})
        of_release |= {**options, "dataset": calibrating_cell}

    # The other records calibrate.
    offer, rest = offers[name], ~chooses
    others = NamedScores.of(offer[rest], offer.score, offer.classes)
    return Choice(replace(chosen, name=name), others, rest, of_release)


def _read_offers(scores: Mapping[str, ArrayLike]) -> tuple[dict[str, NamedScores], int]:
    if not isinstance(scores, Mapping):
        raise InputTypeError("scores", "must be a mapping of names to scores", got=type(scores).__name__)
    offers = {}
    for name, given in scores.items():
        score, classes = name_of_scores(given, None, None)
        array = as_vector(f"scores[{name!r}]", given, empty=True).astype(np.float64)
        offers[name] = NamedScores.of(array, name if score is None else score, classes)
    lengths = {len(offer) for offer in offers.values()}
    if len(lengths) > 1:
        raise InputError("scores", "must have one score of each record under each name", got=f"{len(lengths)} lengths")
    Chosen(next(iter(offers), ""), tuple(offers), Fraction(1, 2), 1.0)  # an error about the names
    return offers, lengths.pop()


@dataclass(frozen=True, eq=False)
class _SetSizes:
    """The scores of all labels, shape (n, K); or of intervals the base and slope of the width, shape (n, 2)."""

    table: NDArray[np.float64]
    largest: float
    of_intervals: bool

    @property
    def steps(self) -> int:
        """The number of steps from size 0 to the largest one; a label is a step."""
        return _STEPS if self.of_intervals else int(self.largest)

    def sums(self, rows: NDArray[np.bool_], candidates: Candidates, score: str | None) -> NDArray[np.int64]:
        """The sum of the sizes of these records' sets at each candidate, in steps, shape (m,)."""
        if not self.of_intervals:
            smallest = np.sort(self.table[rows], axis=1)[:, : self.steps]
            return ScoreHistogram.from_scores(smallest.ravel(), candidates, score).counts.cumsum()
        base, slope = self.table[rows].T
        with np.errstate(over="ignore"):
            widths = (np.clip((base + slope * t) / self.largest, 0, 1) for t in candidates.edges)
            sums = [np.floor(_STEPS * width).sum() for width in widths]
        return np.array([*sums, _STEPS * len(base)], dtype=np.int64)


def _read_sizes(
    offers: Mapping[str, NamedScores], n: int, sizes: Mapping[str, ArrayLike] | None, largest: float | None
) -> dict[str, _SetSizes]:
    """The sizes by name, validated."""
    # All names have sizes of the same kind: of sets of labels, or of intervals.
    kinds = [score_kind(offer.score) for offer in offers.values()]
    if sizes is None and all(kind.family == "absolute_residual" for kind in kinds):
        sizes = dict.fromkeys(offers, np.tile([0.0, 2.0], (n, 1)))
    if not isinstance(sizes, Mapping) or set(sizes) != set(offers):
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
    return {name: _SetSizes(table, limit, intervals) for name, table in tables.items()}


def _candidates(score: str | None, unit: float | None) -> Candidates:
    law = score_kind(score).choose_candidates(None, unit)
    return law if isinstance(law, Candidates) else Candidates.quantiles(law, _CANDIDATES)


def _uniform_numbers(n: int, ids: Any, key: Any, share: Fraction) -> tuple[NDArray[np.float64], str]:
    """A number in [0, 1) for each record, of a coin or of the hash of its id; and the name of this division."""
    # Coins, or ids that are usable.
    if (ids is None) != (key is None):
        raise InputError("ids", "ids and key must be given together: the id of each record, and a secret")
    if ids is None:
        return uniforms(n), f"choice by coins {secrets.token_hex(8)}"
    if not isinstance(key, bytes) or len(key) < _LEAST_KEY:
        raise InputError("key", f"must be at least {_LEAST_KEY} secret random bytes")
    listed = np.atleast_1d(ids).tolist()
    other = sum(not isinstance(name, str | int) for name in listed)
    if len(listed) != n or other:
        got = f"{other} of another type" if other else str(len(listed))
        raise InputError("ids", f"must be one str or int for each of {n} records", got=got)

    # The first 53 bits of a keyed hash of each id, as many as a double holds; the division is named by another hash.
    hashes = (hmac.digest(key, f"id {name}".encode(), "sha256") for name in listed)
    bits = [int.from_bytes(digest[:8], "big") >> 11 for digest in hashes]
    named = hmac.digest(key, f"share {share}".encode(), "sha256")[:8].hex()
    return np.array(bits, dtype=np.float64) * 2.0**-53, f"choice by ids {named}"


def _cells(dataset: str | Dataset | None, partition: str) -> list[Dataset]:
    """The cells of the records that choose, and of those that calibrate."""
    from confide.ledger import Dataset, Group

    whole = dataset if isinstance(dataset, Dataset) else Dataset("" if dataset is None else dataset)
    if whole.group is not None:
        raise InputError(
            "dataset",
            "must be a data set without a group",
            remedy="The two shares of its records are charged as groups",
        )
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

    identity = {**identity, "choice": repr(choosing), "chosen": [*chosen.among, str(chosen.share)]}
    nothing_else = PrivacyStatement(
        "add_remove", epsilon=0.0, records_per_person=identity["records"], add_remove=0.0, replace_one=0.0, rho=0.0
    )
    privacy = with_choice(nothing_else, chosen.epsilon)
    payment = make_payment(privacy, "choice by the exponential mechanism", identity, **{"ledger": None, **options})
    text = pay(
        payment,
        utilities,
        lambda sums: sums.astype("<i8").tobytes(),
        lambda sums: json.dumps({"chosen": chosen.among[choosing.choose(sums)]}),
    )
    return str(json.loads(text)["chosen"])
