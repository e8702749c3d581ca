"""Questions asked of Arrow's types, the one vocabulary for the columns of every table."""

from typing import Any


def is_integer(kind: Any) -> bool:
    """Whether a type holds integers."""
    import pyarrow as pa

    return bool(pa.types.is_integer(kind))


def is_number(kind: Any) -> bool:
    """Whether a type holds real numbers.

    Examples
    --------
    >>> import pyarrow as pa
    >>> is_number(pa.decimal128(18, 3)), is_number(pa.list_(pa.float32())), is_number(pa.string())
    (True, False, False)
    """
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_boolean(kind: Any) -> bool:
    """Whether a type holds true and false."""
    import pyarrow as pa

    return bool(pa.types.is_boolean(kind))


def is_text(kind: Any) -> bool:
    """Whether a type holds texts, plain or categorical."""
    import pyarrow as pa

    held = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(held) or pa.types.is_large_string(held) or pa.types.is_string_view(held))


def list_element(kind: Any) -> Any | None:
    """The type of a list's elements, for lists of any or of fixed length; None for anything else."""
    import pyarrow as pa

    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return kind.value_type if lists or pa.types.is_list_view(kind) else None


def fits_csv(kind: Any) -> bool:
    """Whether a value of this type fits into one CSV cell."""
    import pyarrow as pa

    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def is_temporal(kind: Any) -> bool:
    """Whether a type holds dates or times."""
    import pyarrow as pa

    return bool(pa.types.is_temporal(kind))


def in_words(kind: Any) -> str:
    """What a column of this type holds, for messages. Never the type's own text, which can list values."""
    import pyarrow as pa

    if list_element(kind) is not None:
        return "lists"
    if is_text(kind):
        return "text"
    if is_integer(kind):
        return "integers"
    if is_number(kind):
        return "numbers"
    if is_temporal(kind):
        return "dates and times"
    return "true and false" if pa.types.is_boolean(kind) else "values of another type"
