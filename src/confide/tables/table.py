"""Tables: rows with named columns of any source, read as a stream of Arrow batches."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, TypeAlias

from confide.errors import InputError, InputTypeError
from confide.support import FileLocation, require
from confide.tables.arrow import ColumnRef, describe_type, is_number, is_text, list_element
from confide.tables.deferred import pa
from confide.tables.failures import unreadable
from confide.tables.people import ContributionBound
from confide.tables.row_errors import Rows

Progress: TypeAlias = Callable[[int], None]
"""Called with the number of rows of every batch."""


def no_progress(rows: int) -> None:
    """Show no progress."""


# The most columns that a message lists.
_MOST_LISTED = 40


@dataclass(eq=False)
class TableColumns(ABC):
    """The columns of a table by their names, as a specification of columns looks them up.

    Parameters
    ----------
    name
        The name in messages.
    schema
        The names and types of the columns, a `pyarrow.Schema`.
    disagreements
        The columns whose types differ among the parts of the source, such as the files of a folder, and these types.
    unreadable
        The columns of data in memory whose values Arrow or DuckDB does not have.
    """

    name: str
    schema: Any
    _: KW_ONLY
    disagreements: Mapping[str, str] = field(default_factory=dict)
    unreadable: Sequence[str] = ()

    # Whether columns whose names differ in upper and lower case alone can be read.
    distinguishes_case = True

    # Whether a column can be read as an `entry`.
    takes_entries = False

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(dict.fromkeys([*self.schema.names, *self.disagreements, *self.unreadable]))

    def type_of(self, column: str) -> Any:
        """The Arrow type of a column.

        Raises
        ------
        InputError, InputTypeError
            If there is no such column, or its type differs among the parts of the source. The message lists the
            existing columns, or names the parts.
        """
        if not isinstance(column, str):
            raise InputTypeError("column", "must be a name", got=type(column).__name__)
        if column in self.disagreements:
            must = f"column {column!r} must have one type in all parts of {self.name}"
            got = self.disagreements[column]
            raise InputError("source", must, got=got, remedy="Convert the parts to one type, or leave the column out")
        if column in self.unreadable:
            raise unreadable(self.name, [column])
        if column not in self.schema.names:
            from difflib import get_close_matches

            similar = "".join(f", which has {name!r}" for name in get_close_matches(column, self.columns, 1))
            error = InputError("column", f"{column!r} is not in {self.name}{similar}", remedy=self.existing())
            error._column = column
            raise error
        names = (*self.schema.names, *self.disagreements)
        twins = [name for name in names if name != column and name.lower() == column.lower()]
        if twins and not self.distinguishes_case:
            must = f"{column!r} must differ from {twins[0]!r} in more than upper and lower case"
            raise InputError("column", must, remedy="Rename one of them")
        return self.schema.field(column).type

    def existing(self) -> str:
        """The existing columns, in words."""
        shown = [f"{field.name} ({describe_type(field.type)})" for field in list(self.schema)[:_MOST_LISTED]]
        more = f" and {len(self.schema) - _MOST_LISTED} more" if len(self.schema) > _MOST_LISTED else ""
        return f"its columns are {', '.join(shown)}{more}"

    def check_people(self, people: ContributionBound) -> None:
        """Reject people whose columns are not in the table."""
        for column in (people.person, *people.order):
            self.type_of(column)

    def holds_numbers(self, column: str) -> bool:
        """Whether a column can be read as numbers."""
        return is_number(self.type_of(column))

    def holds_integers(self, column: str) -> bool:
        """Whether a column holds integers."""
        return bool(pa.types.is_integer(self.type_of(column)))

    def check_number(self, column: str) -> None:
        """Reject a column that cannot be read as numbers."""
        if not self.holds_numbers(column):
            raise self._unlike(column, "hold numbers", self.existing())

    def check_names(self, column: str, named: str) -> None:
        """Reject a column that cannot be read as the names of classes or groups."""
        if not (pa.types.is_integer(self.type_of(column)) or is_text(self.type_of(column))):
            raise self._unlike(column, f"hold texts or integers, the names of {named}", self.existing())

    def check_cell(self, column: str) -> None:
        """Reject a column whose values cannot be written as CSV cells."""
        kind = self.type_of(column)
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            raise self._unlike(column, "fit into a CSV cell", "Write Parquet, or list other columns in keep")

    def _unlike(self, column: str, must: str, remedy: str) -> InputError:
        return InputError("column", f"{column!r} must {must}", got=describe_type(self.type_of(column)), remedy=remedy)

    def list_length(self, column: str, otherwise: int | None = None) -> int:
        """The length of the first list of a column; for a column without lists, `otherwise`.

        Raises
        ------
        InputError
            If there is no list and `otherwise` is None, or the list is empty.
        """
        kind = self.type_of(column)
        fixed = getattr(kind, "list_size", -1)
        length = fixed if fixed > 0 else self.first_length(column) or otherwise
        if list_element(kind) is None or not length:
            raise InputError("column", f"{column!r} must hold lists of probabilities", got="none, or empty ones")
        return int(length)

    @abstractmethod
    def first_length(self, column: str) -> int | None:
        """The length of the first list that is not null; None if there is none."""


@dataclass(eq=False)
class Table(TableColumns):
    """Rows with named columns; created by `open_table`.

    Parameters
    ----------
    texts
        Whether every cell is a text, as in CSV, which becomes a number only where a number is read.
    decimal
        The decimal separator of numbers in texts: a point or a comma.
    rows
        The counting of rows in messages.
    files
        The known files, or objects of a store, with the data of the table; no output may replace them.
    """

    texts: bool = field(default=False, kw_only=True)
    decimal: str = field(default=".", kw_only=True)
    rows: Rows = field(default=Rows(), kw_only=True)
    files: tuple[FileLocation, ...] = field(default=(), kw_only=True)
    _count_left_out: Callable[[], int] = field(default=lambda: 0, init=False)

    # Whether this process reads the rows. Otherwise an engine is queried, and the budget is charged before the query,
    # because the engine's logs or its timing may reveal something.
    local = True

    # Whether rows have a position that can be named.
    ordered = True

    # Whether another thread than the one that opened the table may read batches.
    any_thread = True

    # The most candidates over which its engine counts; None if there is no limit but that of all lists.
    most_candidates: ClassVar[int | None] = None

    @abstractmethod
    def batches(self, columns: Sequence[ColumnRef], rows: int) -> Generator[Any]:
        """Arrow record batches of about `rows` rows, with one column for each that is read, named by its alias.

        A table without rows gives one batch without rows, with the types of the columns.
        """

    def row_count(self) -> int | None:
        """The approximate number of rows, for progress bars, if it is cheap to compute; otherwise None."""
        return None

    def counted_rows(self) -> int | None:
        """The number of rows, even if all rows have to be read; None if they can be read only once."""
        return self.row_count()

    def head(self, rows: int) -> "Table":
        """The first rows if reading few is cheaper; otherwise the table itself, of which one batch is read."""
        return self

    @abstractmethod
    def bound_contributions(self, people: ContributionBound) -> "Table":
        """The table with a bounded number of rows of each person; a column named `PERSON_ERROR_COLUMN` marks errors."""

    @abstractmethod
    def drop_missing(self, reads: Sequence[ColumnRef]) -> "Table":
        """The table without rows that lack a value in a column that is read; `expressions.py` has the rule."""

    def left_out(self) -> int:
        """The number of rows that `drop_missing` left out, after they were read. As private as the number of rows."""
        return self._count_left_out()

    def lacks_values(self, reads: Sequence[ColumnRef]) -> bool:
        """Whether rows may lack a value that is read, where numbers are missing; called after an error."""
        return True

    def count(self, jobs: Sequence[Any], progress: Progress) -> list[Any] | None:
        """The `Counts` of each job, by the table's engine; None if this process counts."""
        return None

    def check_rows(self, rows: int) -> None:
        """Reject a table without rows that count."""
        require("source", rows, f"{self.name} must have rows", remedy="It is empty: it has column names but no rows")
