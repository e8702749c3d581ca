"""Public metadata of a release: classes, model, data, purpose, responsible person, date, the renewed release."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from confide.core.calibration import Calibration, Release
from confide.core.fingerprint import ModelFingerprint, check_fingerprint
from confide.core.words import check_about, names_among
from confide.errors import InputTypeError
from confide.mechanisms import Chosen, with_choice
from confide.support import Classes, canonical_name, public_classes


@dataclass(frozen=True)
class Metadata:
    """The public metadata of a release, validated before anything is charged; None keeps the value of a release.

    Examples
    --------
    >>> import confide, numpy as np
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), 0.1, 1.0, score="lac")
    >>> Metadata.stated(["cat", "dog"], {"model": "resnet"}).of(released).classes
    ('cat', 'dog')
    """

    classes: Classes | None = None
    about: Mapping[str, str] | None = None
    renews: str | None = None
    chosen: Chosen | None = None
    fingerprint: ModelFingerprint | None = None

    @classmethod
    def stated(
        cls,
        classes: Iterable[Any] | int | None,
        about: Mapping[str, str] | None,
        renews: str | None = None,
        chosen: Chosen | None = None,
        fingerprint: ModelFingerprint | None = None,
    ) -> "Metadata":
        """Validate metadata, and return them in the form that a release contains."""
        kept = None if classes is None else public_classes("classes", classes)
        if chosen is not None and not isinstance(chosen, Chosen):
            raise InputTypeError("chosen", "must be the statement of choose_score", got=type(chosen).__name__)
        described = None if about is None else check_about(about)
        return cls(kept, described, renews, chosen, check_fingerprint(fingerprint))

    def of(self, release: Calibration) -> Calibration:
        """The same release with these metadata."""
        words: dict[str, Any] = {name: value for name, value in vars(self).items() if value is not None}
        if self.chosen is not None:
            words["privacy"] = with_choice(release.privacy, self.chosen.epsilon)
        return replace(release, **words) if words else release


def classes_of(release: Release) -> Classes | None:
    """The classes, or labels, of a release: their names, or their number; None if it does not state them.

    Examples
    --------
    >>> import confide
    >>> p = [[0.75, 0.25]] * 2000
    >>> classes_of(confide.calibrate(confide.lac_score(p, [0] * 2000), 0.1, 1.0))
    2
    """
    if release.by == "class":
        names = tuple(release.parts)
        return len(names) if set(map(canonical_name, names)) == set(map(str, range(len(names)))) else names
    return release.first.classes


def about_of(release: Release) -> Mapping[str, str]:
    """The metadata of a release: model, data, purpose, responsible person, date; the same in every part."""
    return release.first.about


def names_for(release: Release, names: tuple[object, ...] | None, k: int) -> tuple[object, ...] | None:
    """The names of k columns that a release is applied to: their own names, or the release's if they have none.

    Columns without names, or with the names 0 to k-1, stand for the release's classes in their order. If each class has
    its own threshold, the order of the classes is unknown, and the columns must have names.

    Raises
    ------
    InputError
        If the release has another number of classes, or other classes. The message contains the numbers of missing and
        unknown ones and the first of each, because names of classes are public.

    Examples
    --------
    >>> import confide
    >>> p = [[0.75, 0.25]] * 2000
    >>> released = confide.calibrate(confide.lac_score(p, [0] * 2000), 0.1, 1.0, classes=["cat", "dog"])
    >>> names_for(released, None, 2), names_for(released, ("dog", "cat"), 2)
    (('cat', 'dog'), ('dog', 'cat'))
    """
    classes = classes_of(release)
    if classes is None:
        return names
    matched = names_among(classes, names, k)
    return names if release.by == "class" and matched is classes else matched
