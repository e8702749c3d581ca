"""`CorrectedRelease`: the thresholds in force after the looks of a watch that corrects them, and its file.

They have a long-run statement about the looks so far, and no coverage guarantee for one record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NoReturn

from confide.core import Key, Release, Threshold, as_release, documents
from confide.errors import InputError, InputTypeError
from confide.guarantee import LongRun
from confide.mechanisms import PrivacyStatement
from confide.support import Section, json_number, require
from confide.watching.correction import Correction
from confide.watching.watch_state import Watch


class CorrectedThreshold(Threshold):
    """Threshold in force, which no calibration records explain."""

    def _records(self, n: int | None) -> NoReturn:
        raise InputError(
            "release", "must be the calibrated one: corrected thresholds have no statement about calibration records"
        )


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

    request: Any = field(init=False, compare=False)
    parts: Mapping[Key, Threshold] = field(init=False, compare=False)
    versions: Mapping[str, str] = field(init=False, compare=False)
    release: Release
    watch: Watch

    def __post_init__(self) -> None:
        if not isinstance(self.watch, Watch):
            raise InputTypeError("watch", "must be a confide.Watch", got=type(self.watch).__name__)
        same = as_release(self.release).checksum == self.watch.settings.release
        require("release", same, "must be the release that is monitored", "another release")
        # It is a release by the request and the versions of the calibrated one.
        object.__setattr__(self, "request", self.release.request)
        object.__setattr__(self, "versions", self.release.versions)
        object.__setattr__(self, "parts", self._in_force())
        super().__post_init__()

    @property
    def correction(self) -> Correction:
        """Settings of the correction."""
        if (correction := self.watch.settings.correction) is None:
            remedy = "Start a new watch with `correct`"
            raise InputError("watch", "must correct its thresholds", got="a watch without a correction", remedy=remedy)
        return correction

    def _in_force(self) -> dict[Key, Threshold]:
        count = len(self.watch.looks)
        looks = "1 look" if count == 1 else f"{count:,} looks"
        parts = self.release.parts
        # The only statement is about the looks so far
        so_far = [f"in {looks}, {realised.words}" for realised in self.watch.realised()]
        words = so_far or ["no look was taken yet"] * len(parts)
        each = zip(parts.items(), words, self.correction.scales, self.watch.positions[-1], strict=True)
        thresholds: dict[Key, Threshold] = {}
        for (key, calibrated), statement, scale, position in each:
            thresholds[key] = CorrectedThreshold(
                threshold=scale.at(position),
                alpha=calibrated.alpha,
                score=calibrated.score,
                guarantee=LongRun("none", coverage=0.0, delta=None, n=None, n_min=None, words=statement),
                privacy=calibrated.privacy,
                mechanism=None,
                candidates=scale.size + 1,
                recipe=scale.candidates.recipe,
                largest=calibrated.largest,
            )
        return thresholds

    @cached_property
    def privacy(self) -> PrivacyStatement:
        """The privacy loss of the calibration. `watch.privacy` is that of each look, which adds to it for a person."""
        return self.release.privacy

    @property
    def promises(self) -> dict[str, str]:
        """The long-run statement of each threshold: that of each group or class is about its records."""
        return {name: str(threshold.guarantee) for name, threshold in self.by_name.items()}

    @property
    def fields(self) -> dict[str, Any]:
        """Thresholds by part, and the long-run statement; there is no guaranteed coverage."""
        thresholds = {name or "all": threshold.threshold for name, threshold in self.by_name.items()}
        return {"thresholds": thresholds, "coverage": None, "long_run": self.promises}

    def _section(self) -> Section:
        thresholds = self.by_name.items()
        named = [(name or "threshold", f"{threshold.text}; {threshold.guarantee}") for name, threshold in thresholds]
        looks = len(self.watch.looks)
        gamma = float(self.correction.gamma)
        alpha = self.alpha
        facts = (
            *named,
            ("corrected", f"gamma {gamma:g} after {looks:,} looks, towards a share {alpha} of missed records"),
            ("of the release with SHA-256", self.watch.settings.release),
            ("privacy", f"{self.privacy}; and in each look {self.watch.privacy}"),
        )
        lead = "thresholds in force, corrected look by look; a long-run statement, and no promise for one record"
        return Section("CorrectedRelease", lead, facts)

    def _brief(self) -> str:
        first = self.first
        return f"threshold {first.threshold:.6g}, score {first.score!r}, {first.guarantee.brief}, {self.privacy.brief}"


def in_force(release: Release, watch: Watch, place: int) -> Release:
    """The thresholds that the records of a look were served: of all looks before its place, less those of the delay."""
    if (correction := watch.settings.correction) is None:
        return release
    return CorrectedRelease(release, replace(watch, looks=watch.looks[: max(place - correction.delay, 0)]))


# Files.


def _content(corrected: CorrectedRelease) -> dict[str, Any]:
    return {
        "statement": "a long-run statement about looks, and no coverage guarantee for one record",
        "thresholds": [json_number(threshold.threshold) for threshold in corrected.parts.values()],
        "release": json.loads(corrected.release.to_json()),
        "watch": json.loads(corrected.watch.to_json()),
    }


def _read(content: Mapping[str, Any]) -> CorrectedRelease:
    release = Release.from_json(json.dumps(content["release"]))
    return CorrectedRelease(release, Watch.from_json(json.dumps(content["watch"])))


_FORM = documents.common_form("confide/corrected", "corrected")
documents.register(CorrectedRelease, documents.Kind(_FORM, _content, _read, "corrected release"))
