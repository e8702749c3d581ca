"""At most so many records of one person, chosen by the engine in an order that does not look at scores."""

from dataclasses import dataclass
from typing import Any

from confide.errors import InputError
from confide.support.checks import positive_integer
from confide.support.limits import MOST_PER_PERSON
from confide.tables.engine_findings import Finding
from confide.tables.expressions import existing_column

ORDER, TIED = "confide_place", "confide_tied"


@dataclass(frozen=True)
class People:
    """Who owns which record, and how many of each person's records count.

    A person's kept records follow from that person's records alone, so adding or removing a person changes at most
    `most` of them, and a loss per person follows by group privacy.

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

    def place(self, table: Any) -> Any:
        """The table with each record's place among its person's, from 0, and whether that place is shared."""
        import ibis

        person = existing_column(table, self.person)
        columns = [existing_column(table, name) for name in self.order]
        keys = columns
        if self.sample is not None:
            text = ibis.literal(f"{self.sample}:")
            for column in columns:
                text = text + column.cast("string") + ibis.literal(":")
            keys = [_md5()(text), *columns]
        window = ibis.window(group_by=person, order_by=keys)
        place, rank = ibis.row_number().over(window), ibis.rank().over(window)
        return table.mutate(**{ORDER: place, TIED: place != rank})

    def findings(self, placed: Any) -> dict[Finding, Any]:
        """The rows that name no person, and those that their order does not tell apart."""
        return {Finding.PERSON: placed[self.person].isnull(), Finding.TIE: placed[TIED]}

    def keep(self, placed: Any) -> Any:
        """The rows that count, and those whose owner or place is not clear, which are refused later."""
        return placed.filter((placed[ORDER] < self.most) | placed[TIED] | placed[self.person].isnull())


def _md5() -> Any:
    import ibis

    def md5(text: str) -> str:  # type: ignore[empty-body]
        """Every engine's own."""

    return ibis.udf.scalar.builtin(md5)
