"""Counting in warehouses: from a request to a query and a plan, and from returned counts to a release.

This process never reads the table.

plan.py         the request, what is counted for it, its candidates, and its file
query.py        the query in the dialect of each engine: scores, requirements and bins
counts_file.py  the returned counts, read strictly
published.py    files of noisy counts that another engine made
"""

from confide.warehouse.counts_file import counts_of, of_csv, of_json, read_counts
from confide.warehouse.plan import CountingPlan
from confide.warehouse.published import read_published_counts
from confide.warehouse.query import DIALECTS, counting_query

__all__ = [
    "DIALECTS",
    "CountingPlan",
    "counting_query",
    "read_counts",
    "read_published_counts",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
