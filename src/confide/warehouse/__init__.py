"""Tables that this process never reads: in comes a request, out go a query and a plan; back come counts.

plan.py         the request, what is counted for it, the candidates that follow, and its file
query.py        the query, in each engine's words: scores, requirements and bins; the same as a macro of dbt
counts_file.py  what came back, read strictly
"""

from confide.warehouse.counts_file import counts_of, of_csv, of_json, read_counts
from confide.warehouse.plan import CountingPlan
from confide.warehouse.query import DIALECTS, counting_query, dbt_macro

__all__ = [
    "DIALECTS",
    "CountingPlan",
    "counting_query",
    "dbt_macro",
    "read_counts",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
