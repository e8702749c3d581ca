"""The macro for dbt: the counting query of a relation, for each engine that a project runs on."""

from collections.abc import Sequence

from confide.errors import InputError
from confide.warehouse.dialects import dialect_of
from confide.warehouse.plan import CountingPlan
from confide.warehouse.query import head, statement

_MARKS = ("{{", "{%", "{#")
_RELATION = "{{ records }}"

_MACRO = """\
{{#- A model of one line counts: {{{{ confide_counts(ref('scored_records')) }}}}
    Its answer is PRIVATE, as the records are. -#}}
{{% macro confide_counts(records) -%}}
{{{{ return(adapter.dispatch('confide_counts')(records)) }}}}
{{%- endmacro %}}
{engines}"""

_ENGINE = """
{{% macro {name}__confide_counts(records) -%}}
{query}
{{%- endmacro %}}
"""


def dbt_macro(plan: CountingPlan, dialects: Sequence[str]) -> str:
    """The text of a macro file; dbt dispatches to the engine of the target, and refuses those that it has no query for.

    Parameters
    ----------
    plan
        What is asked.
    dialects
        One or more of those of `counting_query`.

    Raises
    ------
    InputError
        If a name holds marks of Jinja, or none or the same dialect is named twice.

    Examples
    --------
    >>> from confide.tables import Scored
    >>> print(dbt_macro(CountingPlan.of(Scored("s", "lac"), 0.1, 1.0), ["duckdb"])[:82])
    {#- A model of one line counts: {{ confide_counts(ref('scored_records')) }}
        It
    """
    if not dialects or len(set(dialects)) < len(dialects):
        raise InputError("dialects must name one engine or more, each once")
    engines = []
    for name in dialects:
        spoken = dialect_of(name)
        if any(mark in head(plan, spoken) + statement(plan, spoken, "records") for mark in _MARKS):
            raise InputError(f"names must not hold {' or '.join(map(repr, _MARKS))} in a macro of dbt")
        engines.append(_ENGINE.format(name=name, query=head(plan, spoken) + statement(plan, spoken, _RELATION).strip()))
    return _MACRO.format(engines="".join(engines))
