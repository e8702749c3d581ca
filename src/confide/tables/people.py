"""The person of each record, and the bound on the number of records that count for each person."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from confide.errors import InputError
from confide.support import MOST_PER_PERSON, check_types, positive_integer, several
from confide.tables.deferred import ibis

if TYPE_CHECKING:
    from confide.ledger import Dataset

# Errors about a record's person or place: the position of the broken requirement from 1 on, or 0.
PERSON_ERROR_COLUMN = "confide_person"
PERSON_ERRORS = (1, 2)

_PLACE = "confide_place"


@dataclass(frozen=True)
class ContributionBound:
    """The person of each record, and the bound on the number of records that count for each person.

    The records kept of a person follow from that person's records alone. Adding or removing a person therefore changes
    at most `most` of them, and the privacy loss per person follows by group privacy. The bound holds in one table. If
    the cells of a ledger are separate tables, a person can be in several of them (`confide.Dataset`).

    Parameters
    ----------
    person
        The column with the person of each record.
    most
        The public number of records kept of each person: the first in the order.
    order
        One or more columns that distinguish the records of a person, such as a visit's number or date; no scores,
        labels or predictions. The first `most` are kept. Texts are ordered by their characters, and so are dates in
        CSV: 2024-03-17 is ordered by time, 17/03/2024 is not. Cells of CSV that are numbers come first, in the order
        of the numbers.
    sample
        A text, public or not. With a text, the records that are kept are the first by md5 of this text and the order's
        values: a sample without replacement, the same in every engine.

    Examples
    --------
    >>> ContributionBound("patient", 3, ("visit",)).most
    3
    """

    person: str
    most: int
    order: tuple[str, ...]
    sample: str | None = None

    def __post_init__(self) -> None:
        check_types(self, person=str, sample=str)
        positive_integer("most", self.most, most=MOST_PER_PERSON)
        several("order", self.order)
        if not self.order or len(set(self.order)) != len(self.order):
            raise InputError("order", "must name one or more different columns that distinguish one person's records")

    @property
    def requirements(self) -> tuple[str, str]:
        """The requirements on every record, for messages."""
        shown = ", ".join(map(repr, self.order))
        return (
            f"column {self.person!r} must name the person of a record (not missing)",
            f"{'column' if len(self.order) == 1 else 'columns'} {shown} must distinguish one person's records",
        )

    def bound(self, records_per_person: int | None) -> int:
        """The records of one person that count; raises `InputError` if another argument states it as well."""
        if records_per_person not in (None, self.most):
            raise InputError("records_per_person", "must be left out with people, which bounds the records itself")
        return self.most

    def payer(self, dataset: "str | Dataset | None") -> "Dataset | None":
        """The data set to charge. Its people may also be in other cells, unless it states that they are not."""
        from confide.ledger import Dataset

        if dataset is None:
            return None
        data = dataset if isinstance(dataset, Dataset) else Dataset(dataset)
        return data if data.one_cell else replace(data, one_cell=False)

    def limit(self, table: Any, *, texts: bool = False) -> Any:
        """An Ibis table with the rows that count, and with unusable rows, which PERSON_ERROR_COLUMN marks.

        With `texts`, all columns hold texts, as in CSV. Texts that are numbers are ordered by their values.
        """
        person = table[self.person]
        columns = [table[name] for name in self.order]
        # As text, because Spark's dialect takes NaN for a missing number
        unknown = (person.cast("string") if person.type().is_floating() else person).isnull()
        # Engines differ in the place of missing values.
        keys = [key for column in columns for key in (column.isnull(), column)]
        if texts:
            keys = [key for column in columns for key in (column.try_cast("float64"), column)]
        if self.sample is not None:
            text = ibis.literal(f"{self.sample}:")
            for column in columns:
                text = text + column.cast("string") + ibis.literal(":")
            keys = [text.isnull(), _md5()(text), *keys]
        # Rows without a person, and rows that the order does not distinguish, stay, with a mark
        window = ibis.window(group_by=person, order_by=keys)
        place, rank = ibis.row_number().over(window), ibis.rank().over(window)
        flag = ibis.cases((unknown, 1), (place != rank, 2), else_=0).cast("int32")
        placed = table.mutate(**{_PLACE: place, PERSON_ERROR_COLUMN: flag})
        return placed.filter((placed[_PLACE] < self.most) | (placed[PERSON_ERROR_COLUMN] > 0)).drop(_PLACE)


def _md5() -> Any:
    def md5(text: str) -> str:  # type: ignore[empty-body]
        """The function `md5` of every engine."""

    return ibis.udf.scalar.builtin(md5)
