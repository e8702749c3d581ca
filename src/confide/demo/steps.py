"""The steps of the demo, and the files it leaves."""

from pathlib import Path
from typing import Any

import numpy as np

from confide.calibration import calibrate
from confide.demo.digits import CALIBRATION, Digits, outcome, train
from confide.demo.story import tell
from confide.errors import InputError
from confide.planning import plan
from confide.reports import report
from confide.scores import lac_score
from confide.support import Kind, Place, kind_of, new_file, refuse_existing
from confide.tables import Classified, evaluate_table, predict_table, refuse_existing_predictions

ALPHA, EPSILON = 0.1, 1.0
TITLE = "Prediction sets for handwritten digits"
EXAMPLES = 12


def run(folder: Path, *, force: bool = False) -> str:
    """Do the demo, leave its files in a folder, and return the story to print.

    Parameters
    ----------
    folder
        Where to leave `calibration.json`, `sets.parquet`, `images.parquet` (the unseen images' probabilities and
        digits) and `report.html`; made if it does not exist. No trace of the calibration images is left but the
        calibration.
    force
        Whether the files of an earlier demo may be replaced.
    """
    files = [folder / name for name in ("calibration.json", "sets.parquet", "images.parquet", "report.html")]
    calibration, sets, images, page = files
    refuse_existing(calibration, overwrite=force, kind=Kind.RELEASE)
    refuse_existing_predictions(sets, overwrite=force)
    refuse_existing(images, overwrite=force, kind=Kind.TABLE, what_is=_kind_of_images)
    refuse_existing(page, overwrite=force, kind=Kind.PAGE)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"folder {str(folder)!r} cannot be made: {error.strerror}") from None
    digits = train()
    scores = lac_score(digits.calibration, digits.calibration_digits)
    released = calibrate(scores, ALPHA, EPSILON, score="lac")
    costs = plan(ALPHA, EPSILON, CALIBRATION, candidates=released.candidates)
    ordinary = float(np.sort(scores)[costs.nonprivate_rank - 1])
    _write_images(images, digits, force=force)
    released.save(calibration, overwrite=force)
    predict_table(images, Classified("p_*"), released, sets, overwrite=force)
    evaluation = evaluate_table(images, Classified("p_*", "digit"), released, examples=EXAMPLES)
    report(released, title=TITLE, evaluation=evaluation).save(page, overwrite=force)
    private, nonprivate = outcome(digits, released.threshold), outcome(digits, ordinary)
    return tell(digits, released, costs, private, nonprivate, files)


def _write_images(path: Path, digits: Digits, *, force: bool) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {"image": np.arange(len(digits.unseen)), "digit": digits.unseen_digits}
    columns |= {f"p_{k}": digits.unseen[:, k] for k in range(10)}
    with new_file(path, overwrite=force, kind=Kind.TABLE, what_is=_kind_of_images) as part:
        pq.write_table(pa.table(columns), part)


def _kind_of_images(path: Place) -> Kind:
    """What a file is; a table is one of images if it has the columns of one."""
    import pyarrow.parquet as pq

    found = kind_of(path)
    return found if found is not Kind.TABLE or pq.read_schema(str(path)).names[:2] == ["image", "digit"] else Kind.OTHER
