"""At most so many records of one person, chosen by the engine in an order that does not look at scores."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from confide.errors import InputError
from confide.support import MOST_PER_PERSON, positive_integer

if TYPE_CHECKING:
    from confide.ledger import Dataset

FLAG = "confide_person"
"""The column that says what is wrong with a record's person or place: the position of a requirement from 1 on, or 0."""

_PLACE, _TIED = "confide_place", "confide_tied"


@dataclass(frozen=True)
class People:
    """Who owns which record, and how many of each person's records count.

    A person's kept records follow from that person's records alone, so adding or removing a person changes at most
    `most` of them, and a loss per person follows by group privacy. The bound holds in one table: of a ledger's cells,
    each in a table of its own, a person can be in several (`confide.Dataset`).

    Parameters
    ----------
    person
        The column that names each record's owner.
    most
        Records of one person that are kept, public; the first in the order.
    order
        One or more columns that tell one person's records apart, such as a visit's number or date; no scores, labels
        or predictions. The first `most` are kept.
    sample
        A text, public or not: the records are kept in the order of md5(sample and the order's values) instead, which
        is a sample without replacement that every engine draws alike.

    Examples
    --------
    >>> People("patient", 3, ("visit",)).most
    3
    """

    person: str
    most: int
    order: tuple[str, ...]
    sample: str | None = None

    def __post_init__(self) -> None:
        positive_integer("max_records_per_person", self.most, most=MOST_PER_PERSON)
        if not self.order or len(set(self.order)) != len(self.order):
            raise InputError("order must name one or more different columns that tell one person's records apart")

    @property
    def requirements(self) -> tuple[str, str]:
        """What every record has to fulfil, for messages."""
        shown = ", ".join(map(repr, self.order))
        return (
            f"column {self.person!r} must name the person of a record (not missing)",
            f"{'column' if len(self.order) == 1 else 'columns'} {shown} must tell one person's records apart",
        )

    def payer(self, dataset: "str | Dataset | None") -> "Dataset | None":
        """The data set that pays, whose people may be in other cells, too, unless it says that they are not."""
        from confide.ledger import Dataset

        if dataset is None:
            return None
        data = dataset if isinstance(dataset, Dataset) else Dataset(dataset)
        return data if data.one_cell else replace(data, one_cell=False)

    def limit(self, table: Any) -> Any:
        """An Ibis table with the rows that count, and those whose owner or place is not clear, which FLAG marks."""
        import ibis

        person, columns = table[self.person], [table[name] for name in self.order]
        keys = columns
        if self.sample is not None:
            text = ibis.literal(f"{self.sample}:")
            for column in columns:
                text = text + column.cast("string") + ibis.literal(":")
            keys = [_md5()(text), *columns]
        window = ibis.window(group_by=person, order_by=keys)
        place, rank = ibis.row_number().over(window), ibis.rank().over(window)
        placed = table.mutate(**{_PLACE: place, _TIED: place != rank})
        unclear = placed[_TIED] | placed[self.person].isnull()
        kept = placed.filter((placed[_PLACE] < self.most) | unclear)
        flag = ibis.cases((kept[self.person].isnull(), 1), (kept[_TIED], 2), else_=0).cast("int32")
        return kept.mutate(**{FLAG: flag}).drop(_PLACE, _TIED)


def _md5() -> Any:
    import ibis

    def md5(text: str) -> str:  # type: ignore[empty-body]
        """Every engine's own."""

    return ibis.udf.scalar.builtin(md5)
