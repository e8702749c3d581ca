"""Releases: thresholds with a coverage guarantee, a privacy statement and the mechanism that made them.

documents.py     documents of every kind: JSON, files, pickles; the form of a file, its checksum; one reader for all
fingerprint.py   the fingerprint of a model, by rounded outputs on public probe records or by its file
words.py         public metadata of a release, and the earlier releases of its chain
needed.py        the required number of records, as a plan states it
divisions.py     the types of keys of a release: levels, groups, classes, sides, a loss
calibration.py   `Release`, thresholds under one privacy statement; `Calibration`, one threshold, its guarantee and cost
metadata.py      the metadata of a release, as they are given and as they are read
facts.py         facts about a release as names and values: its metadata, how it was made
lineage.py       the chain of a release: its description and its verification
several.py       thresholds for several levels, for groups or classes, for two sides; a threshold that bounds a loss
published_counts.py  noisy counts that another engine made: their file, and thresholds from them
forms.py         releases as JSON, and the verification of their claims
texts.py         warnings about infinite or uninformative thresholds, and about unusual choices

Nothing here depends on the use of a release.
"""

from confide.releases import documents, forms
from confide.releases.calibration import (
    FALSE_NEGATIVES,
    Calibration,
    Release,
    as_release,
    critical_score,
    kind_asked,
    load_release,
    meaning_of_infinity,
    parts_of,
    reminder_due,
    threshold_text,
)
from confide.releases.divisions import FORMS, Division
from confide.releases.documents import Document, load, register_kind
from confide.releases.facts import about_facts, facts_of, making_facts, making_section
from confide.releases.fingerprint import ModelFingerprint
from confide.releases.lineage import (
    LineageCheck,
    chain_section,
    is_warm,
    miss_bound_for_reused_records,
    predecessors_of,
    renewal_text,
    thresholds_of,
    verify_lineage,
)
from confide.releases.metadata import Metadata, about_of, classes_of, names_for
from confide.releases.needed import candidates_of, most_needed, own_loss, records_needed, records_of_design, request_of
from confide.releases.published_counts import CountsCalibration, PublishedCounts
from confide.releases.several import (
    OVERLAP,
    GroupCalibration,
    LevelCalibration,
    MissedAreaLoss,
    OverlappingCalibration,
    RiskCalibration,
    SidesCalibration,
    any_shares,
    area_of,
    check_bound,
    refuse_overlapping,
)
from confide.releases.texts import remark, remarks, too_large, uncompared, warn_about, warn_of_choices
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
    "Calibration", "CountsCalibration", "Document", "GroupCalibration", "LevelCalibration",
    "LineageCheck", "ModelFingerprint", "OverlappingCalibration", "Predecessor",
    "PublishedCounts", "Release", "RiskCalibration", "SidesCalibration", "load", "load_release", "records_needed",
    "remarks", "verify_lineage",
]  # fmt: skip


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
