"""`CorrectedRelease`: the thresholds in force after the looks of a watch that corrects them.

They have a long-run statement about the looks so far, and no coverage guarantee for one record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NoReturn

from confide.errors import FormatError, InputError, InputTypeError
from confide.guarantee import LongRun
from confide.mechanisms import PrivacyStatement
from confide.releases import Calibration, Division, Release, as_release, documents, threshold_text
from confide.support import Fields, Section, shapes
from confide.watching.correction import Correction, Realised
from confide.watching.watch_state import Watch


@dataclass(frozen=True, repr=False)
class CorrectedThreshold(Calibration):
    """One threshold in force; it is written as part of its `CorrectedRelease` only."""

    def to_json(self) -> NoReturn:
        """Raise an error: a corrected threshold without its watch could be taken for a calibration."""
        raise InputError("release", "must be written with its watch", remedy="Write the CorrectedRelease")

    def _records(self, n: int | None) -> NoReturn:
        raise InputError("release", "must be calibrated to have a statement about its calibration records")


@dataclass(frozen=True, repr=False)
class CorrectedRelease(Release):
    """The thresholds in force after the looks of a watch with `correct`: a release for predictions.

    It contains the calibrated release and the watch, from which its thresholds follow. They have no coverage guarantee
    for one record or one look. `promises` states how many of all records so far were covered, whatever their
    distribution (docs/theory-correction.md). Before the first look the threshold is the calibrated one.

    Parameters
    ----------
    release
        The calibrated release, with one level.
    watch
        A watch of this release that corrects it.

    Raises
    ------
    InputError
        If the watch belongs to another release, or does not correct it.

    Examples
    --------
    >>> import confide, numpy as np
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> watch = confide.Watch.start(released, epsilon=1.0, batch=500, correct=0.1).with_look("day 1", [400, 100])
    >>> corrected = CorrectedRelease(released, watch)
    >>> corrected.threshold > released.threshold, corrected.promised
    (True, 0.0)
    >>> print(corrected.promises[""])
    no promise for one record or one look; in 1 look, missed minus alpha times all records: 50 +- 4; ...
    """

    release: Release
    watch: Watch
    by: Division | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.watch, Watch):
            raise InputTypeError("watch", "must be a confide.Watch", got=type(self.watch).__name__)
        if as_release(self.release).checksum != self.watch.settings.release:
            raise InputError("release", "must be the release that is monitored", got="another release")
        object.__setattr__(self, "by", self.release.by)
        _ = self.correction

    @property
    def correction(self) -> Correction:
        """The settings of the correction."""
        if self.watch.settings.correction is None:
            remedy = "Start a new watch with `correct`"
            raise InputError("watch", "must correct its thresholds", got="a watch without a correction", remedy=remedy)
        return self.watch.settings.correction

    @cached_property
    def parts(self) -> Mapping[Any, Calibration]:
        """The thresholds in force, by the keys of the calibrated release."""
        found = {}
        places = zip(self.correction.scales, self.watch.positions[-1], strict=True)
        realised: list[Realised | None] = [*self.watch.realised()] or [None] * len(self.correction.scales)
        for (scale, place), (key, part), so_far in zip(places, self.release.parts.items(), realised, strict=True):
            looks = f"{len(self.watch.looks):,} look{'' if len(self.watch.looks) == 1 else 's'}"
            words = "; no look was taken yet" if so_far is None else f"; in {looks}, {so_far.words}"
            brief = "" if so_far is None else f", {so_far.low:.3f} to {so_far.high:.3f} covered in {looks}"
            found[key] = CorrectedThreshold(
                threshold=scale.at(place),
                alpha=part.alpha,
                guarantee=LongRun("none", 0.0, None, None, None, words=words, brief_words=brief),
                privacy=part.privacy,
                mechanism=None,
                candidates=scale.size + 1,
                recipe=scale.candidates.recipe,
                score=part.score,
                versions=part.versions,
                classes=part.classes,
                about=part.about,
            )
        return found

    @property
    def privacy(self) -> PrivacyStatement:
        """The privacy loss of the calibration. `watch.privacy` is that of each look, which adds to it for a person."""
        return self.release.privacy

    @property
    def threshold(self) -> float:
        """The threshold in force, of a release with one."""
        return self.first.threshold

    @property
    def score(self) -> str | None:
        """The name of the score."""
        return self.first.score

    @property
    def alpha(self) -> Fraction:
        """The miscoverage level that missed records approach in the long run."""
        return self.correction.alpha

    def __getitem__(self, key: Any) -> Calibration:
        return self.parts[key]

    def _section(self) -> Section:
        watch, correction = self.watch, self.correction
        settings = watch.settings
        lead = "thresholds in force, corrected look by look; a long-run statement, and no promise for one record"
        parts = [
            (name or "threshold", f"{threshold_text(part)}; {part.guarantee}") for name, part in self.by_name.items()
        ]
        facts = (
            *parts,
            (
                "corrected",
                f"gamma {float(correction.gamma):g} after {len(watch.looks):,} looks, towards {correction.alpha}",
            ),
            ("at worst", watch.worst_words),
            ("of the release with SHA-256", settings.release),
            ("privacy", f"{self.privacy}; and in each look {watch.privacy}"),
        )
        return Section("CorrectedRelease", lead, facts)

    def _brief(self) -> str:
        part = self.first
        return f"threshold {part.threshold:.6g}, score {part.score!r}, {part.guarantee.brief}, {self.privacy.brief}"


def in_force(release: Release, watch: Watch, place: int | None = None) -> CorrectedRelease:
    """The thresholds that the records of a look were served: of all looks before it, less those of the delay.

    `place` is the number of looks before it; by default that of the next look.
    """
    corrected = CorrectedRelease(release, watch)
    before = len(watch.looks) if place is None else place
    return replace(corrected, watch=replace(watch, looks=watch.looks[: max(before - corrected.correction.delay, 0)]))


# As JSON

KIND = "confide.corrected"
_STATEMENT = "a long-run statement about looks, and no coverage guarantee for one record"


def _document(made: type[Any]) -> shapes.Field:
    return shapes.Field(
        "a document",
        (dict,),
        lambda content: made.from_json(json.dumps(content)),
        lambda value: json.loads(value.to_json()),
    )


_SHAPE: shapes.Shape = {
    "statement": shapes.choice(_STATEMENT),
    "thresholds": shapes.listed(shapes.or_infinite(shapes.number())),
    "release": _document(Release),
    "watch": _document(Watch),
}


def _fields(corrected: CorrectedRelease) -> dict[str, Any]:
    thresholds = [shapes.json_number(part.threshold) for part in corrected.parts.values()]
    documents_of = {name: _SHAPE[name].json(getattr(corrected, name)) for name in ("release", "watch")}
    return {"statement": _STATEMENT, "thresholds": thresholds, **documents_of}


def _read(fields: Fields) -> CorrectedRelease:
    values = shapes.read_shape(fields, _SHAPE)
    corrected = CorrectedRelease(values["release"], values["watch"])
    if values["thresholds"] != tuple(part.threshold for part in corrected.parts.values()):
        raise FormatError("corrected.thresholds", "must follow from the counts of the watch", remedy="Do not use it")
    return corrected


documents.register(CorrectedRelease, documents.Kind(documents.common_form(KIND, "corrected"), _fields, _read))
