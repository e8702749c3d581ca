"""The names of classes: in one line, and compared with the columns of new records."""

from confide.errors import InputError
from confide.support import Classes, canonical_name, class_count, is_numbering, order_of


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
