"""One look at a batch: read the state, count, charge, draw, store, write the state. One process at a time does this.

If a process stops before it writes the state, take the look again: without a ledger no number of the batch was shown,
and a ledger that has stored the noisy counts returns them without another charge.
"""

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from confide.core import Release, as_release
from confide.errors import CoverageWarning, InputError
from confide.evaluation import Evaluation
from confide.scores import score_kind
from confide.support import (
    FileLocation,
    Level,
    ObjectPath,
    as_number,
    as_place,
    caller_stacklevel,
    canonical_name,
    check_unknown_arguments,
    class_count,
    exact_level,
    has_locks,
    library_versions,
    locked,
    log_event,
    require,
    write_text,
)
from confide.tables import ClassColumns, ColumnSpec, Progress, monitoring_coverage_counts, no_progress, size_counts
from confide.watching.corrected import CorrectedRelease, in_force
from confide.watching.looks import Look, look_text, now, stored_look
from confide.watching.settings import promised_of, reference_of, size_bins
from confide.watching.watch_state import Choices, Watch

if TYPE_CHECKING:
    from confide.ledger import Dataset, Ledger, Payment


class FirstLook(Choices, total=False):
    """Choices that the first look of a watch fixes; later looks may repeat them. `watch` describes them."""

    epsilon: float | None
    unlabelled: bool | None


def watch(
    source: Any,
    what: ColumnSpec,
    release: Release,
    *,
    state: str | Path,
    look: str,
    alpha: Level | None = None,
    by: str | None = None,
    skip_incomplete: bool = False,
    ledger: "Ledger | None" = None,
    dataset: "str | Dataset | None" = None,
    again: bool = False,
    progress: Progress = no_progress,
    **choices: Unpack[FirstLook],
) -> Watch:
    """Take one private look at a batch of new records and test whether the release still has its coverage.

    Parameters
    ----------
    source, what, by, skip_incomplete, progress
        The batch, as in `evaluate_table`; with `unlabelled` as in `predict_table`. It may be empty. Collect small
        batches in a folder until there are about `batch` records, and count them as one look. Choose the batches by the
        calendar or by public numbers, because their exact numbers of records are secret.
    release, alpha
        The release to monitor; if it has several levels, that of miscoverage alpha.
    state
        File for the noisy counts of all looks, which are public. The first look creates it. It is bound to the release
        and to the choices of the first look.
    look
        Name of the batch, not yet in the state.
    epsilon, batch, tolerance, looks, error, neighbors, records_per_person
        As in `Watch.start`. The first look fixes them and requires epsilon; later looks may omit them.
    unlabelled
        Monitor set sizes, which need no labels, against those of the first batch. They do not show coverage.
    correct, delay
        As in `Watch.start`. The records of each look are then counted by the thresholds that were in force when their
        sets were predicted: those of `CorrectedRelease` after all looks before it, less the delay.
    reference
        With `unlabelled`: a private evaluation with set sizes (`confide.evaluate(..., epsilon=)`), with which looks are
        compared instead of the first one.
    ledger, dataset, again
        As in `calibrate`: each look is charged before it is drawn. If every person is in at most one look, the batch
        may be a cell of a public partition, `Dataset("patients", ("look", "2026-03-02"))`. Then all looks together
        cost one epsilon. The same look at the same batch returns the earlier counts at no cost.

    Returns
    -------
    Watch
        The watch with this look; `alarm` is the look that raised the alarm, or None.

    Raises
    ------
    InputError
        If the state belongs to another release or other choices, or the look was taken before; nothing is charged.
    BudgetError, OtherDataError, FormatError
        If the ledger does not allow the look, stores it for other records, or the state was altered.

    Warns
    -----
    CoverageWarning
        Before the first look, if looks are too small for their noise, or the tolerance is too small for the number of
        calibration records.
    EarlierReleaseWarning
        If the ledger has returned counts of this look at this batch before.

    Examples
    --------
    >>> import confide, pyarrow, tempfile
    >>> from confide.tables import ScoreColumn
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> batch = pyarrow.table({"s": np.linspace(0, 1, 300)})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     state = Path(folder) / "watch.json"
    ...     first = watch(batch, ScoreColumn("s"), released, state=state, look="Monday", epsilon=1.0, batch=300)
    ...     second = watch(batch, ScoreColumn("s"), released, state=state, look="Tuesday")
    >>> [taken.name for taken in second.looks], second.alarm
    (['Monday', 'Tuesday'], None)
    """
    level = level_of(release, alpha)
    path = local_state(state)
    check_unknown_arguments("watch", choices, FirstLook.__annotations__)
    with _locked(path):
        # Prepare, from public choices alone: the state, and the thresholds that the records were served
        before = load_or_start(path, level, what, **choices)
        for remark in () if before.looks else before.settings.remarks(level):
            warnings.warn(CoverageWarning(remark), stacklevel=caller_stacklevel())
        names = [earlier.name for earlier in before.looks]
        served = in_force(level, before, names.index(look) if look in names else len(names))

        reading = {"by": by, "skip_incomplete": skip_incomplete, "progress": progress}
        count = partial(_counts, source, what, served, before.settings.bins, reading)

        # Rehearse what can fail; then check the limit, read, compare, charge, draw and store
        payment = _payment(before, look, served, ledger, dataset, again=again)
        if look not in names or not _is_answered(payment):
            before.with_look(look, [0] * before.settings.cells).to_json()
        after = _taken(before, look, payment, count)

        # Write the state last: until then, the same look can be taken again
        if after is not before:
            write_text(path, after.to_json(), overwrite=True, durable=True)
            log_event("watching", "looked", look=look, epsilon=before.settings.epsilon, looks=len(after.looks))
        return after


def _counts(
    source: Any, what: ColumnSpec, served: Release, bins: tuple[int, ...], reading: dict[str, Any]
) -> NDArray[np.int64]:
    """Records in each bin of set sizes, or without bins covered and missed records of each part in turn."""
    if bins:
        return size_counts(source, what, served, bins, **reading)
    return monitoring_coverage_counts(source, what, served, **reading).ravel()


def _locked(path: Path) -> AbstractContextManager[None]:
    must = "must be a file that can be locked, which needs Linux or macOS"
    remedy = "Take looks there; `confide show` and `confide report` read the state everywhere"
    require("state", has_locks(), must, repr(str(path)), remedy)
    return locked(path, "state")


def local_state(state: str | FileLocation) -> Path:
    """Path of a state file. Looks are added under a lock, which object stores do not have."""
    must = "must be a local file, because an object store cannot serialise two looks at the same time"
    if isinstance(place := as_place(state), ObjectPath):
        raise InputError("state", must, got="an object of a store")
    return place


def level_of(release: Release, alpha: Level | None) -> Release:
    """The release itself, or its release for one level."""
    suited = as_release(release).by == "level" or alpha is None
    require("alpha", suited, "must be left out, because the release has one level")
    return release.at(alpha)


def load_or_start(state: Path, release: Release, what: ColumnSpec | None = None, **choices: Unpack[FirstLook]) -> Watch:
    """Load the watch of a state file, or start one; choices must agree with those of the file.

    Raises
    ------
    InputError
        If the file belongs to another release or other choices, or a new watch lacks epsilon.
    """
    given: dict[str, Any] = {name: value for name, value in choices.items() if value is not None}
    if state.exists():
        stored = Watch.load(state)
        _compare(stored, release, state, **given)
        return stored
    require("epsilon", "epsilon" in given, "must be given at the first look of a watch", f"no state {str(state)!r}")
    bins = _bins(release, what) if given.pop("unlabelled", False) else ()
    return Watch.start(release, bins=bins, **given)


def _bins(release: Release, what: ColumnSpec | None) -> tuple[int, ...]:
    promised_of(release)  # raises if it cannot be monitored
    suited = isinstance(what, ClassColumns | None) and score_kind(release.first.score).task != "regression"
    remedy = "Monitor coverage once labels are available, or count widths with `confide evaluate --epsilon`"
    require("unlabelled", suited, "must be left out unless sets of classes are monitored", remedy=remedy)
    stated = what.classes if isinstance(what, ClassColumns) else None
    names: Any = release.classes if stated is None else stated
    require("classes", names is not None, "must be given with unlabelled, because the release does not state them")
    return size_bins(class_count(names))


def _compare(
    stored: Watch, release: Release, state: Path, *, reference: Evaluation | None = None, **choices: Any
) -> None:
    # The same release
    settings = stored.settings
    remedy = "Use a separate state for each release, also for a renewed one"
    same = settings.release == release.checksum
    require("state", same, "must belong to the monitored release", repr(str(state)), remedy)

    # The same choices, as far as they are repeated
    stated = vars(settings) | {"unlabelled": stored.monitors_sizes}
    if settings.correction is not None:
        stated |= {"correct": settings.correction.gamma, "delay": settings.correction.delay}
    if reference is not None:
        same = stored.monitors_sizes and reference_of(reference, settings.release, settings.bins) == settings.reference
        require("reference", same, "must be left out or be the one of the first look")
    remedy = "Begin anew, with a new state"
    for name, value in choices.items():
        require(name, name in stated, "must be left out, because the state has no correction", remedy=remedy)
        must = f"must be left out or be {stated[name]}, as at the first look, to keep the false-alarm bound"
        require(name, _is_same(name, value, stated[name]), must, str(value))


def _is_same(name: str, value: Any, stated: Any) -> bool:
    """Whether a choice is the stated one; raises an error for a value that cannot be chosen."""
    if name == "correct":
        return bool(value == "auto" or exact_level(name, value) == stated)
    if name == "error":
        return bool(float(exact_level(name, value)) == stated)
    return bool((as_number(name, value) if isinstance(stated, float) else value) == stated)


def _payment(
    watch: Watch, look: str, served: Release, ledger: "Ledger | None", dataset: "str | Dataset | None", *, again: bool
) -> "Payment[None] | None":
    if ledger is None and dataset is None:
        require("again", not again, "must be left out without a ledger, which alone stores earlier looks")
        return None
    from confide.ledger import make_payment

    settings = watch.settings
    request: dict[str, Any] = {
        "look": look,
        "release": settings.release,
        "noise": settings.noise_epsilon,
        "neighbors": settings.neighbors,
        "records_per_person": settings.records_per_person,
        "parts": [canonical_name(name) for name in settings.promised],
        "bins": list(settings.bins),
    }
    if isinstance(served, CorrectedRelease):
        request["positions"] = list(served.watch.positions[-1])
    return make_payment(watch.privacy, "look by discrete-laplace", request, ledger, dataset, again=again)


def _is_answered(payment: "Payment[None] | None") -> bool:
    """Whether a ledger has a look for this request: the same one, if the batch is the same."""
    if payment is None:
        return False
    from confide.ledger import Transaction

    return None in Transaction.of(payment).stored


def _taken(before: Watch, name: str, payment: "Payment[None] | None", count: Callable[[], NDArray[np.int64]]) -> Watch:
    """The watch with this look, drawn now or stored in the ledger; unchanged if it has the stored one."""
    if payment is None:
        return before.look(name, count())
    from confide.ledger import check_stored, pay

    def text(counts: Sequence[int]) -> str:
        return look_text(before.settings.release, Look(name, now(), tuple(counts), library_versions()))

    # What is too long for the ledger raises before the charge
    longest = text([-(2**63)] * before.settings.cells)
    check_stored("release", len(longest), "Monitor a release with fewer groups")
    stored = pay(payment, count, _count_bytes, lambda counts: text(before.draw(counts)))
    look = stored_look(stored, name)
    return before if look in before.looks else replace(before, looks=(*before.looks, look))


def _count_bytes(counts: NDArray[np.int64]) -> bytes:
    """Bytes of the exact counts, which identify the batch; the ledger stores a keyed fingerprint of them only."""
    return np.ascontiguousarray(counts, dtype="<i8").tobytes()
