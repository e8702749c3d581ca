"""What a release says about itself in public words."""

from collections.abc import Mapping
from types import MappingProxyType

from confide.errors import InputError, InputTypeError

ABOUT = {
    "model": "Model",
    "version": "Version of the model",
    "outputs": "Outputs of the model",
    "data": "Calibration data",
    "purpose": "Purpose",
    "responsible": "Responsible",
    "contact": "Contact",
    "date": "Date",
}
"""What can be said, and what it is called on pages."""

FROM_LOGITS = "logits; softmax in double precision"
"""What `outputs` says of a release that was made from columns of logits."""

MOST_CHARACTERS = 500


def check_about(about: Mapping[str, str] | None) -> Mapping[str, str]:
    """Public words, in the order of `ABOUT`; read only.

    Raises
    ------
    InputError, InputTypeError
        If there are other keys, or a text is empty, not printable or too long.

    Examples
    --------
    >>> dict(check_about({"date": "2026-11-21", "model": "resnet"}))
    {'model': 'resnet', 'date': '2026-11-21'}
    """
    if about is None:
        return MappingProxyType({})
    if not isinstance(about, Mapping):
        raise InputTypeError(f"about must map words such as 'model' to texts; found {type(about).__name__}")
    unknown = [key for key in about if key not in ABOUT]
    if unknown:
        raise InputError(f"about must have the keys {', '.join(ABOUT)}; found {unknown[0]!r}")
    for key, text in about.items():
        if not isinstance(text, str):
            raise InputTypeError(f"about[{key!r}] must be a text; found {type(text).__name__}")
        if not (text.strip() and len(text) <= MOST_CHARACTERS and text.isprintable()):
            raise InputError(f"about[{key!r}] must be 1 to {MOST_CHARACTERS} printable characters; found {len(text)}")
    return MappingProxyType({key: about[key] for key in ABOUT if key in about})
