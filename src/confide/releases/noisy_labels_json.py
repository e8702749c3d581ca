"""The fields of a calibration from randomised labels, and its claims computed again."""

from typing import Any

from confide.errors import FormatError
from confide.mechanisms import LabelPrivacy, NoisyLabels, noisy_labels_for
from confide.releases.calibration_json import read_candidates, read_guarantee, read_threshold
from confide.releases.kinds import Kind, register
from confide.releases.noisy_labels import MOST_CLASSES, NoisyLabelCalibration, read_label_epsilon
from confide.releases.predecessors import as_number
from confide.releases.words import read_words, write_words
from confide.scores import score_kind
from confide.support import (
    MOST_CANDIDATES,
    Fields,
    check_versions,
    exact_level,
    one_of,
    positive_integer,
)


def label_fields(c: NoisyLabelCalibration) -> dict[str, Any]:
    """The fields of such a calibration, as JSON values."""
    return {
        "threshold": as_number(c.threshold),
        "score": c.score,
        "alpha": str(c.alpha),
        "guarantee": c.guarantee.fields(),
        "privacy": {"protected": "labels", "model": "local", "epsilon": c.privacy.epsilon},
        "mechanism": {
            "name": c.mechanism.name,
            "label_epsilon": c.mechanism.epsilon,
            "classes": c.mechanism.classes,
            "rank": c.mechanism.rank,
        },
        "candidates": {"size": c.candidates, "recipe": dict(c.recipe)},
        "versions": dict(c.versions),
        **write_words(c.classes, c.about),
    }


def read_label_calibration(fields: Fields) -> NoisyLabelCalibration:
    """The calibration of these fields; refused if it claims what does not follow from its public choices."""
    alpha = exact_level("alpha", fields.take("alpha", str))
    candidates = fields.group("candidates")
    recipe = candidates.take("recipe", dict)
    size = positive_integer("candidates.size", candidates.take("size", int), most=MOST_CANDIDATES)
    candidates.finish()
    privacy = fields.group("privacy")
    one_of("privacy.protected", privacy.take("protected", str), ("labels",))
    one_of("privacy.model", privacy.take("model", str), ("local",))
    epsilon = read_label_epsilon("privacy.epsilon", privacy.take("epsilon", (float, int)))
    privacy.finish()
    mechanism = fields.group("mechanism")
    one_of("mechanism.name", mechanism.take("name", str), (NoisyLabels.name,))
    stated = NoisyLabels(
        read_label_epsilon("mechanism.label_epsilon", mechanism.take("label_epsilon", (float, int))),
        positive_integer("mechanism.classes", mechanism.take("classes", int), most=MOST_CLASSES),
        positive_integer("mechanism.rank", mechanism.take("rank", int)),
    )
    mechanism.finish()
    guarantee = read_guarantee(fields.group("guarantee"))
    if stated.classes < 2 or guarantee.n is None:
        raise FormatError("the calibration must state two classes or more, and n; do not use it")
    if stated.epsilon != epsilon:
        raise FormatError("the calibration claims another privacy loss than its labels have; do not use it")
    planned = noisy_labels_for(1 - alpha, guarantee.n, epsilon, stated.classes, guarantee.delta)
    if abs(planned.rank - stated.rank) > 1 or guarantee != stated.guarantee(1 - alpha, guarantee.n, guarantee.delta):
        raise FormatError("the calibration claims another coverage than its mechanism guarantees; do not use it")
    calibration = NoisyLabelCalibration(
        threshold=read_threshold(fields.take("threshold", (float, int, str)), read_candidates(size, recipe)),
        alpha=alpha,
        guarantee=guarantee,
        privacy=LabelPrivacy.of(epsilon),
        mechanism=stated,
        candidates=size,
        recipe=recipe,
        score=score_kind(fields.take("score", str)).name,
        versions=check_versions("calibration", fields.take("versions", dict)),
        **read_words(fields),
    )
    known = calibration.classes
    if recipe.get("kind") == "scores" or score_kind(calibration.score).task != "classification":
        raise FormatError("the calibration must be of a classification score and of public candidates; do not use it")
    if known is not None and stated.classes != (known if isinstance(known, int) else len(known)):
        raise FormatError("the calibration names other classes than its labels had; do not use it")
    return calibration


register(
    NoisyLabelCalibration,
    Kind("confide.noisy-labels", "calibration", label_fields, read_label_calibration, integer_bits=63),
)
