"""Public metadata of a release, such as its model, data and date. No threshold and no claim depends on them."""

from collections.abc import Mapping
from types import MappingProxyType

from confide.errors import InputError, InputTypeError
from confide.support import Classes, canonical_name, class_count, is_numbering, order_of

# The keys of the metadata, and their printed names.
ABOUT = {
    "model": "model",
    "version": "version of the model",
    "outputs": "outputs of the model",
    "data": "calibration data",
    "purpose": "purpose",
    "responsible": "responsible",
    "contact": "contact",
    "date": "date",
}

# The value of `outputs` in a release that was made from columns of logits.
FROM_LOGITS = "logits; softmax in double precision"

MOST_CHARACTERS = 500


def check_about(about: Mapping[str, str] | None) -> Mapping[str, str]:
    """Validate metadata, and return them in the order of `ABOUT`, read only."""
    if about is None:
        return MappingProxyType({})
    if not isinstance(about, Mapping):
        raise InputTypeError("about", "must map keys such as 'model' to str", got=type(about).__name__)
    # Known keys, and printable texts.
    unknown = [key for key in about if key not in ABOUT]
    if unknown:
        raise InputError("about", f"must have the keys {', '.join(ABOUT)}", got=repr(unknown[0]))
    for key, text in about.items():
        if not isinstance(text, str):
            raise InputTypeError(f"about[{key!r}]", "must be a str", got=type(text).__name__)
        if not (text.strip() and len(text) <= MOST_CHARACTERS and text.isprintable()):
            raise InputError(
                f"about[{key!r}]", f"must be 1 to {MOST_CHARACTERS} printable characters", got=str(len(text))
            )
    return MappingProxyType({key: about[key] for key in ABOUT if key in about})


# The reason why a release without a name for its score makes no sets and no intervals.
UNNAMED = (
    "calibration",
    "must name its score, so that it can be computed for new records",
    "none",
    "Calibrate on named scores, such as those of lac_score, or with score=NAME, or compare your own scores with "
    "calibration.threshold",
)


def class_list(classes: Classes, most: int = 10) -> str:
    """Classes in one line; of many names only the first."""
    if isinstance(classes, int):
        return f"{classes}, without names"
    return f"{len(classes)}: {', '.join(map(str, classes[:most]))}" + (", ..." if len(classes) > most else "")


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
