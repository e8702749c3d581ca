"""What a release requires of the records that it is applied to: a named score, classes, one group, or masks."""

from confide.core.losses import MissedAreaLoss
from confide.core.release import Release
from confide.errors import InputError, InputTypeError
from confide.support import Classes, canonical_name, class_count, is_numbering, order_of


def refuse_overlapping(release: Release, remedy: str = "") -> None:
    """Reject a release of groups that overlap where a record must have one group."""
    if release.overlap is not None:
        must = "must have one threshold, or groups that divide the records"
        raise InputError("release", must, got="groups that overlap", remedy=remedy)


def area_of(release: Release) -> MissedAreaLoss:
    """The loss of a release for masks; raises an error for others."""
    loss = release.loss if isinstance(release, Release) else None
    area = None if loss is None else MissedAreaLoss.of(loss)
    if area is None:
        raise InputTypeError("calibration", "must come from calibrate_masks")
    return area


# The reason why a release without a name for its score makes no sets and no intervals.
UNNAMED = (
    "calibration",
    "must name its score, so that it can be computed for new records",
    "none",
    "Calibrate on named scores, such as those of lac_score, or with score=NAME, or compare your own scores with "
    "calibration.threshold",
)


def names_for(release: Release, names: tuple[object, ...] | None, k: int) -> tuple[object, ...] | None:
    """The names of k columns that a release is applied to: their own names, or the release's if they have none.

    Columns without names, or with the names 0 to k-1, stand for the release's classes in their order. If each class has
    its own threshold, the order of the classes is unknown, and the columns must have names. The error for other classes
    contains the numbers of missing and unknown ones and the first of each, because names of classes are public.
    """
    classes = release.classes
    if classes is None:
        return names
    matched = names_among(classes, names, k)
    return names if release.by == "class" and matched is classes else matched


def names_among(known: Classes, names: tuple[object, ...] | None, k: int) -> tuple[object, ...] | None:
    """The names of k columns if the classes are known from elsewhere, or the classes that unnamed columns stand for."""
    # Without names on one side only the number of columns is compared.
    unnamed = names is None or is_numbering(list(map(_text, names)))
    if isinstance(known, int) or unnamed:
        count = class_count(known)
        if k != count:
            raise InputError(
                "probabilities",
                f"must have one column for each of the {count} classes that were calibrated",
                got=str(k),
                remedy="Give all of them, or calibrate for these",
            )
        return names if isinstance(known, int) else known
    assert names is not None
    if order_of(names, known) is None:
        raise InputError(
            "classes",
            f"must be the {len(known)} that were calibrated",
            remedy=(
                f"{_others(names, known)}; give the columns the names of the calibration's classes, or name "
                "them with classes=[...] in their order"
            ),
        )
    return names


def _others(names: tuple[object, ...], known: tuple[str | int, ...]) -> str:
    given, expected = {_text(name): name for name in names}, {canonical_name(name): name for name in known}
    missing: list[object] = [name for text, name in expected.items() if text not in given]
    unknown: list[object] = [name for text, name in given.items() if text not in expected]
    some = [(missing, "missing"), (unknown, "unknown")]
    return ", ".join(f"{len(group)} {which} (the first: {group[0]!r})" for group, which in some if group)


def _text(name: object) -> str:
    return canonical_name(name) if isinstance(name, str | int) else repr(name)
