"""Agreement of schemas: of the parts of a table, and of the batches of a stream."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from confide.errors import InputError
from confide.support import require
from confide.tables.arrow import describe_type, is_text, list_element
from confide.tables.deferred import pa

# The binary digits of a float, by its size.
_FLOAT_DIGITS = {16: 11, 32: 24, 64: 53}


def widens(kind: Any, wider: Any) -> bool:
    """Whether a type holds every value of another one unchanged."""
    element = list_element(kind)
    wider_element = list_element(wider)
    if kind == wider or pa.types.is_null(kind):
        return True
    if element is not None and wider_element is not None:
        size = getattr(wider, "list_size", None)
        return size in (None, getattr(kind, "list_size", None)) and widens(element, wider_element)
    # Numbers: every digit must fit
    if pa.types.is_decimal(kind) and pa.types.is_decimal(wider):
        more_whole_digits = wider.precision - wider.scale >= kind.precision - kind.scale
        return bool(more_whole_digits and wider.scale >= kind.scale)
    if pa.types.is_floating(kind) and pa.types.is_floating(wider):
        return bool(wider.bit_width >= kind.bit_width)
    if pa.types.is_integer(kind) and (pa.types.is_integer(wider) or pa.types.is_floating(wider)):
        loses_sign = pa.types.is_signed_integer(kind) and pa.types.is_unsigned_integer(wider)
        return not loses_sign and _integer_digits(kind) <= _integer_digits(wider)
    return is_text(kind) and is_text(wider)


def _integer_digits(kind: Any) -> int:
    """The binary digits of the integers that a type of integers or floats holds unchanged."""
    if pa.types.is_floating(kind):
        return _FLOAT_DIGITS[kind.bit_width]
    return int(kind.bit_width - pa.types.is_signed_integer(kind))


def widest_schema(parts: Sequence[Any]) -> Any:
    """The columns of all parts, each with the type that holds every value, or the first type if none does."""
    kinds: dict[str, list[Any]] = {}
    for field in chain.from_iterable(parts):
        kinds.setdefault(field.name, []).append(field.type)

    def widest(types: list[Any]) -> Any:
        return next((kind for kind in types if all(widens(other, kind) for other in types)), types[0])

    return pa.schema([(name, widest(types)) for name, types in kinds.items()])


def type_disagreements(parts: Sequence[tuple[str, Any]], schema: Any) -> dict[str, str]:
    """The columns of a schema whose types do not hold all values of the parts, with the types of two parts.

    `parts` are names with schemas. A column that only some parts have counts as such a disagreement; a column that no
    part has comes from folder names.
    """
    disagreements = {}
    for field in schema:
        kinds = [(title, part.field(field.name).type if field.name in part.names else None) for title, part in parts]
        present = [(title, kind) for title, kind in kinds if kind is not None]
        differing = [(title, kind) for title, kind in kinds if kind is None or not widens(kind, field.type)]
        if present and differing:
            # The first part that differs, and the first part that it differs from
            title, kind = differing[0]
            others = (part for part in present if part[1] != kind)
            other, of_other = next(others, ("the first part", field.type))
            disagreements[field.name] = f"{_type_name(of_other)} in {other} and {_type_name(kind)} in {title}"
    return disagreements


def _type_name(kind: Any) -> str:
    """A type for messages, which does not list values."""
    if kind is None:
        return "no such column"
    return str(kind) if pa.types.is_primitive(kind) or pa.types.is_decimal(kind) else describe_type(kind)


# The most rows of a batch, so that memory does not grow with the batches of a source.
_MOST_ROWS = 2**14


def split_batches(batches: Iterable[Any], schema: Any) -> Iterator[Any]:
    """Record batches of a bounded number of rows with this schema."""
    for batch in batches:
        for start in range(0, batch.num_rows, _MOST_ROWS):
            yield _alike(batch.slice(start, _MOST_ROWS), schema)


def _alike(batch: Any, schema: Any) -> Any:
    """A batch with the columns of a schema, matched by name, and with their types."""
    if batch.schema.names == schema.names and batch.schema.types == schema.types:
        return batch
    for name in schema.names:
        must = "every batch must have the columns of the first"
        require("batches", batch.schema.names.count(name) == 1, must, remedy=f"{name!r} is not in a later one")
    disagreements = type_disagreements([("the first batch", schema), ("a later one", batch.schema)], schema)
    for name, kinds in disagreements.items():
        raise InputError("batches", f"column {name!r} must have the type of the first batch", got=kinds)
    return batch.select(schema.names).cast(schema)


def readable_schema(schema: Any) -> Any:
    """The same schema with single precision instead of half precision, which DuckDB does not have."""
    return pa.schema([pa.field(field.name, _readable(field.type), field.nullable) for field in schema])


def _readable(kind: Any) -> Any:
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_fixed_size_list(kind) and pa.types.is_float16(kind.value_type):
        return pa.list_(pa.float32(), kind.list_size)
    if pa.types.is_list(kind) and pa.types.is_float16(kind.value_type):
        return pa.list_(pa.float32())
    return kind
