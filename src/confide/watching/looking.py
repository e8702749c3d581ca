"""One look at a batch: read the state, count, charge, draw, keep, write the state; one process at a time.

A process that dies before the state is written has added nothing to it: without a ledger nothing of the batch was
shown, and it is looked at again; with one the charge stands, and where the ledger has kept the noisy counts, the same
look at the same batch finds them there, is not charged again, and goes into the state.
"""

import json
import warnings
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from confide.errors import CoverageWarning, EarlierReleaseWarning, FormatError, InputError
from confide.evaluation import PrivateEvaluation
from confide.mechanisms import Neighbors
from confide.releases import Release, as_release, classes_of
from confide.scores import score_kind
from confide.support import (
    VERSIONS,
    Fields,
    Level,
    ObjectPath,
    Place,
    as_number,
    as_place,
    canonical,
    exact_level,
    has_locks,
    library_versions,
    locked,
    outside,
    parse_object,
    refuse_unknown,
    shapes,
    tell,
    write_text,
)
from confide.tables import Classified, Progress, What, covered_counts, silent, size_counts
from confide.watching.course import Watch
from confide.watching.settings import Settings, check_look_name, promised_of, reference_of, size_bins

if TYPE_CHECKING:
    from confide.ledger import Dataset, Ledger, Payment


class FirstLook(TypedDict, total=False):
    """What the first look of a watch fixes for all, and later ones may say again; `watch` tells what they mean."""

    epsilon: float | None
    batch: int | None
    tolerance: float | None
    looks: int | None
    error: Level | None
    unlabelled: bool | None
    reference: PrivateEvaluation | None
    neighbors: Neighbors | None
    records_per_person: int | None


MECHANISM = "look by discrete-laplace"
LOOK_KIND = "confide.look"


def watch(
    source: Any,
    what: What,
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
    progress: Progress = silent,
    **choices: Unpack[FirstLook],
) -> Watch:
    """Look at one batch of new records, privately, and say whether the release still covers what it promised.

    Parameters
    ----------
    source, what, by, skip_incomplete, progress
        The batch, as in `evaluate_table`; with `unlabelled` as in `predict_table`. It may be empty.
    release
        What is watched. Of several levels one is chosen by `alpha`.
    state
        The file that keeps the noisy counts of all looks, which are public; made at the first look. It is bound to the
        release and to everything that is chosen at the first look.
    look
        The name of the batch, new to the state.
    epsilon, batch, tolerance, looks, error, neighbors, records_per_person
        As in `Watch.start`; chosen at the first look, where epsilon and batch are needed, and known later.
    unlabelled
        Watch the sizes of sets, which need no truth, against those of the first batch. They say nothing about coverage.
    reference
        With `unlabelled`: what `confide.evaluate(..., epsilon=)` found with set sizes, to compare with that instead.
    ledger, dataset, again
        As in `calibrate`: each look is charged before it is drawn. A batch of people who are in no other look may be
        a cell of a public partition, `Dataset("patients", ("look", "2026-03-02"))`: then all looks cost one epsilon.
        The same look at the same batch is answered as before, and free.

    Returns
    -------
    Watch
        With this look; `alarm` says whether there is one.

    Raises
    ------
    InputError
        If the state is of another release or other choices, or the look was taken already; nothing was charged then.
    BudgetError, OtherDataError, FormatError
        If the ledger does not allow it, knows this look from other records, or the state was altered.

    Warns
    -----
    CoverageWarning
        Before the first look, if looks are too small for their noise, or the tolerance for the calibration records.
    EarlierReleaseWarning
        If the ledger has answered this look at this batch before.

    Examples
    --------
    >>> import confide, pyarrow, tempfile
    >>> from confide.tables import Scored
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> batch = pyarrow.table({"s": np.linspace(0, 1, 300)})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     state = Path(folder) / "watch.json"
    ...     first = watch(batch, Scored("s"), released, state=state, look="Monday", epsilon=1.0, batch=300)
    ...     second = watch(batch, Scored("s"), released, state=state, look="Tuesday")
    >>> [one.name for one in second.looks], second.alarm
    (['Monday', 'Tuesday'], None)
    """
    check_look_name(look)
    one, path = level_of(release, alpha), local_state(state)
    refuse_unknown("watch", choices, FirstLook.__annotations__)
    with _locked(path):
        before = opened(path, one, what, **choices)
        if not before.looks:
            for remark in before.settings.remarks(one):
                warnings.warn(CoverageWarning(remark), stacklevel=outside())

        def count() -> NDArray[np.int64]:
            ways: dict[str, Any] = {"by": by, "skip_incomplete": skip_incomplete, "progress": progress}
            if before.of_sizes:
                return size_counts(source, what, one, before.settings.bins, **ways)
            return covered_counts(source, what, one, **ways).ravel()

        before.to_json()  # what cannot be written is refused before it is charged
        payment = _payment(before.settings, look, ledger, dataset, again=again)
        if any(known.name == look for known in before.looks):
            return _as_before(before, look, payment, count)
        after = _looked(before, look, payment, count)
        write_text(path, after.to_json(), overwrite=True, durable=True)
        tell("watching", "looked", look=look, epsilon=before.settings.epsilon, looks=len(after.looks))
        return after


def _locked(path: Path) -> AbstractContextManager[None]:
    """The lock of a state, which ends with its process."""
    if not has_locks():
        raise InputError(
            "state",
            "must be a file that can be locked, which needs Linux or macOS",
            got=repr(str(path)),
            remedy="Take looks there; `confide show` and `confide report` read the state everywhere",
        )
    return locked(path, "state")


def local_state(state: str | Place) -> Path:
    """The file of a watch; looks are added one after the other under a lock, which object stores do not have."""
    if isinstance(place := as_place(state), ObjectPath):
        raise InputError(
            "state",
            "must be a file on a disk, because an object store cannot keep two looks at once apart",
            got="an object of a store",
        )
    return place


def level_of(release: Release, alpha: Level | None) -> Release:
    """The release, or that of one of its levels."""
    if as_release(release).by != "level" and alpha is not None:
        raise InputError("alpha", "must be left out, because the release has one level")
    return release.at(alpha)


def opened(state: Path, release: Release, what: What | None = None, **choices: Unpack[FirstLook]) -> Watch:
    """The watch that a state file holds, or a new one, after its choices were compared with those that are asked for.

    Raises
    ------
    InputError
        If the file is of another release or other choices, or a new watch lacks epsilon or batch.
    """
    given: dict[str, Any] = {name: value for name, value in choices.items() if value is not None}
    if state.exists():
        found = Watch.load(state)
        _compare(found, release, given, state)
        return found
    missing = [name for name in ("epsilon", "batch") if name not in given]
    if missing:
        raise InputError(missing[0], "must be given at the first look of a watch", got=f"no state {str(state)!r}")
    bins = _bins(release, what) if given.pop("unlabelled", False) else ()
    if not bins and "reference" in given:
        raise InputError("reference", "must be left out without unlabelled, because the promise is the reference")
    if bins and "tolerance" in given:
        raise InputError("tolerance", "must be left out with unlabelled, because sizes have no promise")
    return Watch.start(release, bins=bins, **given)


def _bins(release: Release, what: What | None) -> tuple[int, ...]:
    promised_of(release)  # what cannot be watched is refused
    made_for = release.first.score
    if not isinstance(what, Classified | None) or score_kind(made_for).task == "regression":
        raise InputError(
            "unlabelled",
            "must be left out unless sets of classes are watched",
            remedy="Watch coverage once the truth is known, or count widths by `confide evaluate --epsilon`",
        )
    classes = classes_of(release)
    known: Any = what.classes if isinstance(what, Classified) and what.classes is not None else classes
    if known is None:
        raise InputError("classes", "must be given with unlabelled, because the release does not state them")
    return size_bins(known if isinstance(known, int) else len(known))


def _compare(found: Watch, release: Release, given: dict[str, Any], state: Path) -> None:
    """Refuse a state of something else."""
    made = found.settings
    if made.release != release.checksum:
        raise InputError(
            "state",
            "must be of the release that is watched",
            got=repr(str(state)),
            remedy="Give each release, also a renewed one, a state of its own",
        )
    kept: dict[str, Any] = {
        "epsilon": made.epsilon,
        "batch": made.batch,
        "tolerance": made.tolerance,
        "looks": made.looks,
        "error": made.error,
        "unlabelled": found.of_sizes,
        "neighbors": made.neighbors,
        "records_per_person": made.records_per_person,
    }
    known = given.pop("reference", None)
    if known is not None and (not made.bins or reference_of(known, made.release, made.bins) != made.reference):
        raise InputError("reference", "must be left out or be the one of the first look")
    for name, value in given.items():
        if name == "error":
            wanted: Any = float(exact_level(name, value))
        else:
            wanted = as_number(name, value) if isinstance(kept[name], float) else value
        if wanted != kept[name]:
            requirement = f"must be left out or be {kept[name]}, as at the first look, to keep the false-alarm bound"
            raise InputError(name, requirement, got=str(value))


def _payment(
    made: Settings, look: str, ledger: "Ledger | None", dataset: "str | Dataset | None", *, again: bool
) -> "Payment | None":
    if ledger is None and dataset is None:
        if again:
            raise InputError("again", "must be left out without a ledger, which alone remembers earlier looks")
        return None
    from confide.ledger import make_payment

    asked = {
        "look": look,
        "release": made.release,
        "noise": made.noise_epsilon,
        "neighbors": made.neighbors,
        "records_per_person": made.records_per_person,
        "parts": [canonical(name) for name in made.promised],
        "bins": list(made.bins),
    }
    return make_payment(made.privacy, MECHANISM, asked, ledger, dataset, again=again)


def _looked(before: Watch, look: str, payment: "Payment | None", count: Any) -> Watch:
    """The watch with this look: drawn, or found in the ledger."""
    if payment is None:
        return before.look(look, count())
    from confide.ledger import pay

    def draw(counts: NDArray[np.int64]) -> str:
        made = datetime.now(UTC).isoformat(timespec="seconds")
        document = {"kind": LOOK_KIND, "schema": 1, "look": look, "release": before.settings.release, "made": made}
        drawn = {"counts": list(before.draw(counts)), "versions": dict(library_versions())}
        return json.dumps({**document, **drawn})

    return before.with_look(look, *_kept(pay(payment, count, _mark, draw), look))


def _as_before(before: Watch, look: str, payment: "Payment | None", count: Any) -> Watch:
    """The watch as it is, if the ledger says that this look at this batch is the one it has."""
    if payment is None or payment.again:
        raise before.taken(look)
    from confide.ledger import Bill

    bill = Bill.of({None: payment})
    if None not in bill.kept:
        raise before.taken(look)
    entry = bill.recall({None: _mark(count())})[None]
    counts, _, _ = _kept(entry.text, look)
    if counts != next(one.counts for one in before.looks if one.name == look):
        raise before.taken(look)
    text = f"look {look!r} at this very batch was taken on {entry.made}, and is counted once; nothing was charged"
    warnings.warn(EarlierReleaseWarning(text, (entry.made,)), stacklevel=outside())
    return before


def _mark(counts: NDArray[np.int64]) -> bytes:
    """Bytes that are the same for the same counts."""
    return np.ascontiguousarray(counts, dtype="<i8").tobytes()


def _kept(text: str, look: str) -> tuple[tuple[int, ...], str, dict[str, str]]:
    """Noisy counts, when they were drawn and by which versions, from what a ledger keeps of a look."""
    shape: shapes.Shape = {
        "kind": shapes.choice(LOOK_KIND),
        "schema": shapes.integer(1),
        "look": shapes.choice(look),
        "release": shapes.TEXT,
        "made": shapes.TEXT,
        "counts": shapes.listed(shapes.INTEGER),
        "versions": shapes.optional(VERSIONS),
    }
    try:
        fields = Fields("look", parse_object(text))
    except ValueError:
        raise FormatError("ledger", "must keep a look as JSON") from None
    kept = shapes.read_shape(fields, shape)
    return kept["counts"], kept["made"], kept["versions"] or {}
