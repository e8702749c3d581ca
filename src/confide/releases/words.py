"""Public words in a release: which classes it is for, what it was made of, for what, by whom and when, what it renews.

No threshold depends on them, and no claim: they are no part of what is asked of the data.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from confide.errors import FormatError, InputError
from confide.releases.about import check_about
from confide.releases.calibration import Calibration
from confide.releases.predecessors import Predecessor, check_predecessors
from confide.releases.release import Release
from confide.releases.several import GroupCalibration, parts_of
from confide.support import Classes, Fields, canonical, only_count, order_of, public_classes

UNNAMED = (
    "calibration must name its score, so that it can be computed for new records; found none; calibrate on named "
    "scores, as those of lac_score are, or with score=NAME, or compare your own scores with calibration.threshold"
)
"""Why a release without a name for its score makes no sets and no intervals."""


@dataclass(frozen=True)
class Words:
    """The public words of a release, checked before anything is charged; what is None stays as it is.

    Examples
    --------
    >>> import confide, numpy as np
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), 0.1, 1.0, score="lac")
    >>> Words.stated(["cat", "dog"], {"model": "resnet"}).of(released).classes
    ('cat', 'dog')
    """

    classes: Classes | None = None
    about: Mapping[str, str] | None = None
    predecessors: tuple[Predecessor, ...] | None = None

    @classmethod
    def stated(
        cls,
        classes: Iterable[Any] | int | None,
        about: Mapping[str, str] | None,
        predecessors: Iterable[Predecessor] = (),
    ) -> "Words":
        """What is said, in the form in which a release keeps it."""
        kept = None if classes is None else public_classes("classes", classes)
        return cls(kept, None if about is None else check_about(about), check_predecessors(predecessors) or None)

    def of(self, release: Calibration) -> Calibration:
        """The same release with these words."""
        said = {"classes": self.classes, "about": self.about, "predecessors": self.predecessors}
        words: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
        return replace(release, **words) if words else release


def write_words(classes: Classes | None, about: Mapping[str, str]) -> dict[str, Any]:
    """Classes and public words as fields of a file: only those that there are, for version 0.1 knew none.

    Examples
    --------
    >>> write_words(("cat", "dog"), {}), write_words(None, {"model": "resnet"})
    ({'classes': ['cat', 'dog']}, {'about': {'model': 'resnet'}})
    """
    kept: dict[str, Any] = {} if classes is None else {"classes": classes if isinstance(classes, int) else [*classes]}
    return {**kept, **({"about": dict(about)} if about else {})}


def read_words(fields: Fields) -> dict[str, Any]:
    """Classes and public words, exactly as they were written.

    Raises
    ------
    FormatError, InputError, InputTypeError
        If they are not what a release keeps.
    """
    words: dict[str, Any] = {}
    if "classes" in fields:
        stated = fields.take("classes", (list, int))
        kept = public_classes("classes", stated)
        words["classes"] = kept
        if isinstance(stated, list) and (kept != tuple(stated) or any(isinstance(name, bool) for name in stated)):
            raise FormatError(f"the {fields.document}'s classes must be names as a release keeps them, or their number")
    if "about" in fields:
        words["about"] = check_about(fields.take("about", dict))
        if not words["about"]:
            raise FormatError(f"the {fields.document}'s field 'about' must hold words, or be left out")
    return words


def classes_of(release: Release) -> Classes | None:
    """The classes, or labels, that a release is for: their names, or their number; None if it does not say.

    Examples
    --------
    >>> import confide
    >>> p = [[0.75, 0.25]] * 2000
    >>> classes_of(confide.calibrate(confide.lac_score(p, [0] * 2000), 0.1, 1.0))
    2
    """
    if isinstance(release, GroupCalibration) and release.by == "class":
        names = tuple(release.parts)
        return len(names) if set(map(canonical, names)) == set(map(str, range(len(names)))) else names
    return next(iter(parts_of(release).values())).classes


def about_of(release: Release) -> Mapping[str, str]:
    """What a release says it was made of, for what, by whom and when; the same in every part."""
    return next(iter(parts_of(release).values())).about


def class_list(classes: Classes, most: int = 10) -> str:
    """Classes in a line, of many names the first.

    Examples
    --------
    >>> class_list(("cat", "dog")), class_list(3)
    ('2: cat, dog', '3, without names')
    """
    if isinstance(classes, int):
        return f"{classes}, without names"
    return f"{len(classes)}: {', '.join(map(str, classes[:most]))}" + (", ..." if len(classes) > most else "")


def names_for(release: Release, names: tuple[object, ...] | None, k: int) -> tuple[object, ...] | None:
    """The names of k columns that a release is applied to: their own, or, where they have none, the release's.

    Columns without names, or with names that only count from 0, stand for the release's classes in their order. Where
    each class has a threshold of its own their order is not known, and the columns have to be named.

    Raises
    ------
    InputError
        If the release is for another number of classes, or for others: how many are missing and unknown, and the
        first, for names of classes are public.

    Examples
    --------
    >>> import confide
    >>> p = [[0.75, 0.25]] * 2000
    >>> released = confide.calibrate(confide.lac_score(p, [0] * 2000), 0.1, 1.0, classes=["cat", "dog"])
    >>> names_for(released, None, 2), names_for(released, ("dog", "cat"), 2)
    (('cat', 'dog'), ('dog', 'cat'))
    """
    known = classes_of(release)
    if known is None:
        return names
    matched = names_among(known, names, k)
    by_class = isinstance(release, GroupCalibration) and release.by == "class"
    return names if by_class and matched is known else matched


def names_among(known: Classes, names: tuple[object, ...] | None, k: int) -> tuple[object, ...] | None:
    """The same where the classes are known from elsewhere: the names of k columns, or what they stand for.

    Raises
    ------
    InputError
        As `names_for`.
    """
    unnamed = names is None or only_count(list(map(_text, names)))
    if isinstance(known, int) or unnamed:
        count = known if isinstance(known, int) else len(known)
        if k != count:
            raise InputError(
                f"probabilities must have one column for each of the {count} classes that were calibrated; found {k}; "
                "give all of them, or calibrate for these"
            )
        return names if isinstance(known, int) else known
    assert names is not None
    if order_of(names, known) is None:
        raise InputError(
            f"classes must be the {len(known)} that were calibrated; {_others(names, known)}; give the columns the "
            "names of the calibration's classes, or name them with classes=[...] in their order"
        )
    return names


def _others(names: tuple[object, ...], known: tuple[str | int, ...]) -> str:
    found, wanted = {_text(name): name for name in names}, {canonical(name): name for name in known}
    missing: list[object] = [name for text, name in wanted.items() if text not in found]
    unknown: list[object] = [name for text, name in found.items() if text not in wanted]
    some = [(missing, "missing"), (unknown, "unknown")]
    return ", ".join(f"{len(one)} {which} (the first: {one[0]!r})" for one, which in some if one)


def _text(name: object) -> str:
    return canonical(name) if isinstance(name, str | int) else repr(name)
