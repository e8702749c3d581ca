"""A table: rows with named columns, wherever they live, handed over as a stream of Arrow batches."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from confide.errors import InputError, InputTypeError
from confide.support import Place
from confide.tables.arrow_types import in_words, is_integer, is_number, is_text, list_element
from confide.tables.findings import Rows

if TYPE_CHECKING:
    from confide.tables.people import People

Form: TypeAlias = Literal["number", "label", "numbers", "entry", "length", "flag", "value", "text"]
"""What a column is read as.

`number`: a float, null where there is none. `label`: an integer or a text. `numbers`: a list of floats. `entry`: of a
list of numbers the one that an integer column points at, and `length`: how many it has. `flag`: as it was computed by
`limited`. `value`: as it is; `text`: as it is written into a CSV cell.
"""


@dataclass(frozen=True)
class Read:
    """A column, and what it is read as.

    Parameters
    ----------
    column
        Its name.
    form
        What it is read as.
    at
        For an `entry`: the column that points at it.
    """

    column: str
    form: Form = "number"
    at: str | None = None

    @property
    def alias(self) -> str:
        """The name of the column in the batches of a table."""
        return f"{self.form} {self.column}"


class Table(ABC):
    """Rows with named columns; made by `open_table`.

    Parameters
    ----------
    name
        What it is called in messages.
    schema
        Names and types of its columns, a `pyarrow.Schema`.
    """

    local = True
    """Whether this process reads the rows. Else an engine is asked, and paid for before it is: what its logs or its
    timing tell is not known."""

    ordered = True
    """Whether rows have a position that can be named."""

    any_thread = True
    """Whether batches may be asked for by another thread than the one that opened the table."""

    takes_entries = False
    """Whether a column can be read as an `entry`."""

    writes_tables = False
    """Whether new tables can be written beside it."""

    writes_folders = False
    """Whether its engine writes folders of files on its own."""

    rows = Rows()
    """How its rows are counted in messages."""

    files: tuple[Place, ...] = ()
    """The files, or objects of a store, that hold it, as far as they are known; no output may replace them."""

    def __init__(self, name: str, schema: Any) -> None:
        self.name, self.schema = name, schema

    @abstractmethod
    def batches(self, columns: Sequence[Read], rows: int) -> Generator[Any]:
        """Arrow record batches of about `rows` rows, one column for each that is read, called by its alias.

        A table without rows gives one batch without rows, which shows the types of the columns.
        """

    def row_count(self) -> int | None:
        """About how many rows there are, for progress bars, if that costs little; else None."""
        return None

    def counted_rows(self) -> int | None:
        """How many rows there are, although it may take reading them; None if they pass by once."""
        return self.row_count()

    def head(self, rows: int) -> "Table":
        """The first rows alone where asking for few is cheaper; else the table itself, of which one reads one batch."""
        return self

    @abstractmethod
    def limited(self, people: "People") -> "Table":
        """At most so many rows of each person; `people.flag` says what is wrong with one."""

    @abstractmethod
    def complete(self, reads: Sequence[Read]) -> "Table":
        """The rows that lack none of the values that are read; the rule is that of `complete.py`."""

    def left_out(self) -> int:
        """How many rows `complete` left out, once they were read. As private as the number of rows."""
        return 0

    def count(self, job: Any, progress: Any) -> Any:
        """Counts that the table's engine makes where the rows live; None where this process does that."""
        return None

    def write_table(self, predictions: Any, name: str, progress: Any) -> dict[str, float]:
        """Write predictions into a new table beside this one; only where `writes_tables`."""
        raise NotImplementedError

    def write_folder(
        self, predictions: Any, folder: str, partition_by: tuple[str, ...], progress: Any
    ) -> dict[str, float]:
        """Have the engine write predictions into a new folder; only where `writes_folders`."""
        raise NotImplementedError

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)

    def type_of(self, column: str) -> Any:
        """The Arrow type of a column.

        Raises
        ------
        InputError, InputTypeError
            If there is no such column; the message lists those that exist.
        """
        if not isinstance(column, str):
            raise InputTypeError(f"column must be a name; found {type(column).__name__}")
        if column not in self.schema.names:
            raise InputError(f"column {column!r} is not in {self.name}; {self.existing()}")
        return self.schema.field(column).type

    def existing(self) -> str:
        """The columns that exist, in words."""
        shown = [f"{field.name} ({in_words(field.type)})" for field in list(self.schema)[:40]]
        more = f" and {len(self.schema) - 40} more" if len(self.schema) > 40 else ""
        return f"its columns are {', '.join(shown)}{more}"

    def holds_numbers(self, column: str) -> bool:
        """Whether a column can be read as numbers."""
        return is_number(self.type_of(column))

    def holds_labels(self, column: str) -> bool:
        """Whether a column can be read as the names of classes or groups."""
        return is_integer(self.type_of(column)) or is_text(self.type_of(column))

    def check_number(self, column: str) -> None:
        """Refuse a column that cannot be read as numbers."""
        if not self.holds_numbers(column):
            held = in_words(self.type_of(column))
            raise InputError(f"column {column!r} must hold numbers; it holds {held}; {self.existing()}")

    def list_length(self, column: str, otherwise: int | None = None) -> int:
        """The length of the first list of a column; of a column without any it is what is known of it otherwise.

        Raises
        ------
        InputError
            If there is none and nothing is known, or it is empty.
        """
        kind = self.type_of(column)
        fixed = getattr(kind, "list_size", -1)
        length = fixed if fixed > 0 else self.first_length(column) or otherwise
        if list_element(kind) is None or not length:
            raise InputError(f"column {column!r} must hold lists of probabilities; it holds none, or empty ones")
        return int(length)

    @abstractmethod
    def first_length(self, column: str) -> int | None:
        """The length of the first list that is not null; None if there is none."""
