"""What leaves: in come a threshold with its promise, privacy statement and mechanism, out go `Calibration` and its kin.

release.py           what every release can do: JSON, files, pickles; one reader for all kinds
kinds.py             the kinds of release by the names in their files, the form of a file, its checksum
calibration.py       `Calibration`: one threshold, what is promised with it, and what it cost
predecessors.py      the earlier releases of a chain, and what they released
chain.py             whether files are the predecessors that a release names
about.py             what a release says about itself in public words
calibration_json.py  its fields, and its claims computed again
several.py           thresholds for several levels, for groups or classes, for two sides; the parts of any release
risk.py              a threshold that bounds a loss
missed_area.py       the loss of masks, and its names
noisy_labels.py      thresholds from labels that were randomised before anybody saw them
noisy_labels_json.py their fields
labelling.py         what is stated beside such labels
needed.py            how many records it takes, as a plan says it
remarks.py           thresholds that are worth a word, and the warning: +inf, and nearly
several_json.py      their fields
facts.py             what a release is, in a few short texts
words.py             classes and other public words: attached, and matched with the columns of new records

Nothing here knows what people do with releases.
"""

from confide.releases import calibration_json, kinds, noisy_labels_json, several_json
from confide.releases.about import ABOUT, FROM_LOGITS, check_about
from confide.releases.calibration import Calibration, everything
from confide.releases.chain import Links, is_warm, links, miss_if_reused, predecessors_of
from confide.releases.facts import facts_of
from confide.releases.kinds import check_checksum, register_kind
from confide.releases.labelling import LabelStatement
from confide.releases.missed_area import MissedAreaLoss, area_of
from confide.releases.needed import candidates_of, most_needed, records_needed, request_of
from confide.releases.noisy_labels import MOST_CLASSES, NoisyLabelCalibration, read_label_epsilon
from confide.releases.predecessors import MOST_PREDECESSORS, Predecessor
from confide.releases.release import Release, load_release
from confide.releases.remarks import remark, remarks, warn_of, warn_of_choices
from confide.releases.risk import FALSE_NEGATIVES, RiskCalibration, check_bound, critical_score
from confide.releases.several import (
    GroupCalibration,
    LevelCalibration,
    SidesCalibration,
    at_level,
    parts_of,
    promised_coverage,
)
from confide.releases.words import (
    UNNAMED,
    Words,
    about_of,
    class_list,
    classes_of,
    names_among,
    names_for,
    read_words,
    write_words,
)

__all__ = [
    "ABOUT", "FALSE_NEGATIVES", "FROM_LOGITS", "MOST_CLASSES", "MOST_PREDECESSORS", "UNNAMED", "Calibration",
    "GroupCalibration", "LabelStatement", "LevelCalibration", "Links", "MissedAreaLoss", "NoisyLabelCalibration",
    "Predecessor", "Release", "RiskCalibration", "SidesCalibration", "Words", "about_of", "area_of", "at_level",
    "calibration_json", "candidates_of", "check_about", "check_bound", "check_checksum", "class_list", "classes_of",
    "critical_score", "everything", "facts_of", "is_warm", "kinds", "links", "load_release", "miss_if_reused",
    "most_needed", "names_among", "names_for", "noisy_labels_json", "parts_of", "predecessors_of", "promised_coverage",
    "read_label_epsilon", "read_words", "records_needed", "register_kind", "remark", "remarks", "request_of",
    "several_json",
    "warn_of", "warn_of_choices", "write_words",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
