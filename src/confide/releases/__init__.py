"""What leaves: in come a threshold with its promise, privacy statement and mechanism, out go `Calibration` and its kin.

documents.py     documents of every kind: JSON, files, pickles; the form of a file, its checksum; one reader for all
words.py         what a release says about itself in public words, and the earlier releases of its chain
needed.py        how many records it takes, as a plan says it
calibration.py   `Release`, thresholds under one statement; `Calibration`, one threshold, its promise, and its cost
several.py       thresholds for several levels, for groups or classes, for two sides; a threshold that bounds a loss
noisy_labels.py  labels that were randomised before anybody saw them: their statement, and thresholds from them
forms.py         releases as JSON, and their claims computed again
remarks.py       what is said of a release: facts, thresholds that are worth a word (+inf, and nearly), and its chain

Nothing here knows what people do with releases.
"""

from confide.releases import documents, forms
from confide.releases.calibration import (
    FORMS,
    Calibration,
    Release,
    Words,
    about_of,
    as_release,
    classes_of,
    everything,
    load_release,
    names_for,
    parts_of,
)
from confide.releases.documents import Document, load, register_kind
from confide.releases.needed import candidates_of, most_needed, records_needed, request_of
from confide.releases.noisy_labels import MOST_CLASSES, LabelStatement, NoisyLabelCalibration, read_label_epsilon
from confide.releases.remarks import (
    Links,
    facts_of,
    is_warm,
    links,
    miss_if_reused,
    predecessors_of,
    remark,
    remarks,
    warn_of,
    warn_of_choices,
)
from confide.releases.several import (
    FALSE_NEGATIVES,
    GroupCalibration,
    LevelCalibration,
    MissedAreaLoss,
    RiskCalibration,
    SidesCalibration,
    area_of,
    check_bound,
    critical_score,
)
from confide.releases.words import (
    ABOUT,
    FROM_LOGITS,
    MOST_PREDECESSORS,
    UNNAMED,
    WORDS,
    Predecessor,
    check_about,
    class_list,
    names_among,
)

__all__ = [
    "Calibration", "Document", "GroupCalibration", "LabelStatement", "LevelCalibration", "Links",
    "NoisyLabelCalibration", "Predecessor", "Release", "RiskCalibration", "SidesCalibration", "links", "load",
    "load_release", "records_needed", "remarks",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
