"""Public metadata of a release, such as its model, data and date. No threshold and no claim depends on them."""

from collections.abc import Mapping
from types import MappingProxyType

from confide.errors import InputError, InputTypeError

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
