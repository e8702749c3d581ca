"""Tables that this process never reads: in comes a request, out go a query and a plan; back come counts.

dialects.py     the words of each engine's SQL
plan.py         the request, what is counted for it, and the candidates that follow; plan_json.py is its file
query.py        the query: scores, requirements and bins
dbt.py          the same as a macro of dbt
counts_file.py  what came back, read strictly
"""

from confide.warehouse.counts_file import counts_of, of_csv, of_json, read_counts
from confide.warehouse.dbt import dbt_macro
from confide.warehouse.dialects import DIALECTS
from confide.warehouse.plan import CountingPlan
from confide.warehouse.query import counting_query

__all__ = ["DIALECTS", "CountingPlan", "counting_query", "counts_of", "dbt_macro", "of_csv", "of_json", "read_counts"]


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
