"""Demo: real data for examples (`digits`), and a complete run from training to a report (`run`).

The data are handwritten digits from scikit-learn (UCI "Optical Recognition of Handwritten Digits").
"""

import csv
import math
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.core import Plan, Release, calibrate, plan
from confide.errors import InputError
from confide.evaluation import coverage
from confide.reports import as_sentence, report
from confide.scores import lac_score, set_mask
from confide.sets import CoverageEstimate, PredictionSets
from confide.support import FileKind, FileLocation, check_new, kind_of, needs_extra, new_file
from confide.tables import ClassColumns, evaluate_table, predict_table, refuse_existing_predictions

TRAINING = 60
CALIBRATION = 700

# The request
ALPHA = 0.1
EPSILON = 1.0


@dataclass(frozen=True)
class Digits:
    """Class probabilities that a model gives to real images, and the true digits: 700 to calibrate, 1037 new ones."""

    probabilities: NDArray[np.float64]
    labels: NDArray[np.int64]
    new_probabilities: NDArray[np.float64]
    new_labels: NDArray[np.int64]

    @property
    def accuracy(self) -> float:
        """Share of the new images whose most probable digit is the true one."""
        return float(np.mean(self.new_probabilities.argmax(axis=1) == self.new_labels))

    def columns(self) -> dict[str, NDArray[Any]]:
        """Columns of the images for calibration: `p_0` to `p_9`, float64, and `digit`, int64.

        Examples
        --------
        >>> import pyarrow
        >>> from confide.demo import digits
        >>> pyarrow.table(digits().columns()).shape
        (700, 11)
        """
        return _columns(self.probabilities, self.labels)

    def new_columns(self) -> dict[str, NDArray[Any]]:
        """The same columns of the new images."""
        return _columns(self.new_probabilities, self.new_labels)

    def write(self, folder: str | Path = ".") -> None:
        """Write `calibration.csv` and `new.csv`, with the columns `p_0` to `p_9` and `digit`.

        Files of these names are replaced.
        """
        for name, columns in {"calibration.csv": self.columns(), "new.csv": self.new_columns()}.items():
            with (Path(folder) / name).open("w", newline="", encoding="utf-8") as file:
                rows = csv.writer(file)
                rows.writerow(columns)
                rows.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))


def _columns(probabilities: NDArray[np.float64], labels: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    return {**{f"p_{k}": probabilities[:, k] for k in range(10)}, "digit": labels}


@dataclass(frozen=True)
class ThresholdResult:
    """Sets of one threshold for the unseen images, and which of them contain the true digit."""

    threshold: float
    sets: PredictionSets
    covered: NDArray[np.bool_]

    @property
    def coverage(self) -> CoverageEstimate:
        """Share of sets with the true digit."""
        return coverage(self.covered)


def digits() -> Digits:
    """Train a small model on real images of handwritten digits, and return its probabilities for other images.

    The model is a logistic regression that was trained on only 60 images. It is therefore often unsure, and its
    prediction sets have several members. Every call returns the same result. Needs scikit-learn (the extra
    `standard`).
    """
    with needs_extra("the demo", "standard"):
        from sklearn.datasets import load_digits
        from sklearn.linear_model import LogisticRegression

    # Few images train, so that the model is often unsure.
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    training, calibration, unseen = np.split(order, [TRAINING, TRAINING + CALIBRATION])
    model = LogisticRegression(C=0.1, max_iter=1000).fit(images[training], labels[training])
    return Digits(
        probabilities=model.predict_proba(images[calibration]),
        labels=labels[calibration],
        new_probabilities=model.predict_proba(images[unseen]),
        new_labels=labels[unseen],
    )


def apply_threshold(data: Digits, threshold: float) -> ThresholdResult:
    """The sets of a threshold for the unseen images."""
    sets = PredictionSets(set_mask(data.new_probabilities, "lac", threshold))
    return ThresholdResult(threshold, sets, sets.contains(data.new_labels))


@dataclass(frozen=True)
class DemoFiles:
    """The files that the demo writes."""

    calibration: Path
    sets: Path
    images: Path
    page: Path

    @classmethod
    def of(cls, folder: Path) -> "DemoFiles":
        """The files in this folder."""
        return cls(
            calibration=folder / "calibration.json",
            sets=folder / "sets.parquet",
            images=folder / "images.parquet",
            page=folder / "report.html",
        )

    def check(self, *, force: bool) -> None:
        """Check before anything is computed that only files of an earlier demo are replaced, with `force`."""
        check_new(self.calibration, overwrite=force, kind=FileKind.RELEASE)
        refuse_existing_predictions(self.sets, overwrite=force)
        check_new(self.images, overwrite=force, kind=FileKind.TABLE, what_is=_kind_of_images)
        check_new(self.page, overwrite=force, kind=FileKind.PAGE)


# The text, in six parts


def describe(
    data: Digits, released: Release, costs: Plan, private: ThresholdResult, ordinary: ThresholdResult, files: DemoFiles
) -> str:
    """Build the text to print, in lines of at most 96 characters if the paths are short."""
    parts = (
        "CONFIDE DEMO: handwritten digits (8 x 8 pixels, from scikit-learn)",
        _model(data),
        _release(released),
        _result(private, ordinary, costs),
        _examples(data, private),
        _not_private(),
        _next_steps(released, files),
    )
    return "\n\n".join(parts)


def _model(data: Digits) -> str:
    return f"""\
1. A model
   A logistic regression learns from {TRAINING} images only, so that it is often unsure: its first guess
   is right for {100 * data.accuracy:.0f} % of the unseen images. A prediction set says "one of these" instead."""


def _release(released: Release) -> str:
    factor = f"e^{released.epsilon:g} = {math.exp(released.epsilon):.1f}"
    threshold = released.threshold
    if released.excludes_nothing:
        threshold_text = "No useful threshold: every digit is in every set. (This happens, but very rarely.)"
    else:
        threshold_text = (
            f"The threshold {threshold:.4f}: a digit is in the set if the model gives it a\n"
            f"              probability of at least {1 - threshold:.4f}."
        )
    return f"""\
2. Private calibration, on {CALIBRATION} other images
   Promised   The true digit is in its set with probability at least {released.coverage:g}, on average over
              calibration images and new images of the same kind. This holds for every number of
              calibration images, and it includes the noise for privacy.
   Protected  {as_sentence(str(released.privacy))}
              Without any one image, every conclusion from the calibration would have a
              probability that is at most {factor} times smaller or larger.
              The number of images is secret as well.
   Released   {threshold_text}"""


def _result(private: ThresholdResult, ordinary: ThresholdResult, costs: Plan) -> str:
    extra = private.sets.sizes.mean() - ordinary.sets.sizes.mean()
    aim = costs.nonprivate_rank / (CALIBRATION + 1)
    return f"""\
3. Sets for {len(private.sets)} unseen images
{_comparison(private, ordinary)}
   Cost of privacy: {extra:.2f} digits per set here. Expected in advance (`confide plan`): a mean
   coverage of {costs.expected_coverage:.3f}, where ordinary calibration aims at {aim:.3f}.
   The noise differs from run to run. The promise is about the average, and a single calibration
   can have somewhat lower coverage. `confide calibrate --set delta=0.05` makes a promise about it."""


def _comparison(private: ThresholdResult, ordinary: ThresholdResult) -> str:
    shares = private.coverage, ordinary.coverage
    rows = [
        ("", "private", "not private (split conformal)"),
        ("threshold", f"{private.threshold:.4f}", f"{ordinary.threshold:.4f}"),
        ("coverage (95 % interval)", *(f"{share.value:.3f} ({share.low:.3f} to {share.high:.3f})" for share in shares)),
        ("digits per set", f"{private.sets.sizes.mean():.2f}", f"{ordinary.sets.sizes.mean():.2f}"),
        ("sets of one digit", *(f"{100 * np.mean(result.sets.sizes == 1):.1f} %" for result in (private, ordinary))),
    ]
    return "\n".join(f"   {name:<26}{with_privacy:<26}{without}".rstrip() for name, with_privacy, without in rows)


def _examples(data: Digits, private: ThresholdResult) -> str:
    # Up to two sets each of one, two and three digits that contain the true digit, and one set that misses it.
    chosen = [i for size in (1, 2, 3) for i in np.flatnonzero(private.covered & (private.sets.sizes == size))[:2]]
    chosen += list(np.flatnonzero(~private.covered)[:1])
    lines = ["4. Some of the sets"]
    for i in chosen:
        members = ", ".join(map(str, np.flatnonzero(private.sets.mask[i]))) or "empty"
        missed = "" if private.covered[i] else "   missed: up to one in ten may be"
        lines.append(f"   image {i:>4}   true digit {data.new_labels[i]}   set {{{members}}}{missed}")
    return "\n".join(lines)


def _not_private() -> str:
    return f"""\
5. What is not private here
   The numbers of parts 3 and 4 are computed from the labels of the unseen images. The model
   was trained on its {TRAINING} images without privacy. confide protects only the calibration images."""


def _next_steps(released: Release, files: DemoFiles) -> str:
    calibration = shlex.quote(str(files.calibration))
    sets = shlex.quote(str(files.sets))
    images = shlex.quote(str(files.images))
    return f"""\
6. Go on from here
   {calibration}: the release, the only result from the calibration images
   {sets}: the sets
   {images}: the unseen images' probabilities and digits
   {shlex.quote(str(files.page))}: all of this as an HTML page; open it in a browser

   confide show {calibration}
   confide predict {images} --calibration {calibration} \\
       --probabilities 'p_*' --out {sets} --force
   confide evaluate {images} --calibration {calibration} \\
       --probabilities 'p_*' --label digit

   The calibration images' probabilities are not written. With such a file of your own:

   confide calibrate records.parquet --probabilities 'p_*' --label digit \\
       --alpha {float(released.alpha):g} --epsilon {released.epsilon:g} --out cal.json"""


# The run


def run(folder: Path, *, force: bool = False) -> str:
    """Run the demo, write its files into a folder, and return the text to print.

    Parameters
    ----------
    folder
        The folder for `calibration.json`, `sets.parquet`, `images.parquet` (the unseen images' probabilities and
        digits) and `report.html`. It is created if it does not exist. Of the calibration images, only the
        calibration is written.
    force
        Whether files of an earlier demo may be replaced.
    """
    # Check the files before anything is computed.
    files = DemoFiles.of(folder)
    files.check(force=force)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("path", f"{str(folder)!r} cannot be made: {error.strerror}") from None

    # Train, calibrate, and compare with calibration without privacy.
    data = digits()
    scores = lac_score(data.probabilities, data.labels)
    released = calibrate(scores, ALPHA, EPSILON, score="lac")
    costs = plan(ALPHA, EPSILON, CALIBRATION, candidates=released.candidates)
    private = apply_threshold(data, released.threshold)
    ordinary = apply_threshold(data, float(np.sort(scores)[costs.nonprivate_rank - 1]))

    # Write the images, the release, the sets and the report.
    _write_images(files.images, data, force=force)
    released.save(files.calibration, overwrite=force)
    predict_table(files.images, ClassColumns("p_*"), released, files.sets, overwrite=force)
    evaluation = evaluate_table(files.images, ClassColumns("p_*", "digit"), released)
    page = report(released, title="Prediction sets for handwritten digits", evaluation=evaluation)
    page.save(files.page, overwrite=force)
    return describe(data, released, costs, private, ordinary, files)


def _write_images(path: Path, data: Digits, *, force: bool) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    named = {"image": np.arange(len(data.new_labels)), "digit": data.new_labels}
    with new_file(path, overwrite=force, kind=FileKind.TABLE, what_is=_kind_of_images) as file:
        pq.write_table(pa.table(named | data.new_columns()), file)


def _kind_of_images(path: FileLocation) -> FileKind:
    """The kind of a file; a table counts as a table of images if its first columns are `image` and `digit`."""
    import pyarrow.parquet as pq

    kind = kind_of(path)
    if kind is FileKind.TABLE and pq.read_schema(str(path)).names[:2] != ["image", "digit"]:
        return FileKind.OTHER
    return kind
