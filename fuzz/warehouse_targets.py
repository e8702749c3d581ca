"""Plans of queries, and the counts that came back."""

import json
from functools import cache
from typing import Any

from confide.candidates import Candidates
from confide.errors import ConfideError
from confide.tables import Classified, People, Regressed, Scored
from confide.warehouse import CountingPlan, counting_query, counts_of, of_csv, of_json
from fuzz.release_targets import signed
from fuzz.source import Source, change, one_line


@cache
def plans() -> tuple[CountingPlan, ...]:
    """Valid plans of every kind."""
    few = {"candidates": Candidates.unit(12)}
    classes = Classified("p_*", "y", ("a", "b"))
    return (
        CountingPlan.of(Scored("s", "lac"), 0.1, 1.0, **few),
        CountingPlan.of(classes, 0.1, 1.0, by="g", groups=["n", 7], people=People("who", 2, ("visit",)), **few),
        CountingPlan.of(classes, 0.1, 1.0, by_class=True, skip_incomplete=True, **few),
        CountingPlan.of(Regressed(("f", "g"), "t", "cqr_sides"), 0.1, None, rho=0.5, **few),
        CountingPlan.of(Regressed("f", "t"), [0.1, 0.2], 1.0, neighbors="replace_one", n=90, delta=0.1, **few),
    )


def counting_plan_text(data: bytes) -> None:
    """`CountingPlan.from_json` on arbitrary text."""
    _read_plan(data.decode("utf-8", "surrogateescape"))


def counting_plan_fields(data: bytes) -> None:
    """`CountingPlan.from_json` on valid plans with changed fields and a right checksum."""
    source = Source(data)
    document: dict[str, Any] = change(json.loads(plans()[source.below(len(plans()))].to_json()), source)
    _read_plan(json.dumps(signed(document)))


def _read_plan(text: str) -> None:
    try:
        read = CountingPlan.from_json(text)
    except ConfideError as error:
        one_line(error)
        return
    assert CountingPlan.from_json(read.to_json()) == read
    for dialect in ("snowflake", "spark"):
        try:
            counting_query(read, dialect, "records")
        except ConfideError as error:
            one_line(error)


def counts_text(data: bytes) -> None:
    """Counts in CSV and JSON on arbitrary text, for a plan whose digest the text may hold as D."""
    plan = plans()[1]
    text = data.decode("utf-8", "surrogateescape").replace("D", plan.digest)
    for read in (of_csv, of_json):
        try:
            found = counts_of(read(text), plan)
        except ConfideError as error:
            one_line(error)
            continue
        assert all(0 <= part < 2 and -5 <= at < plan.bins and n >= 0 for (part, at), n in found.items())


COUNTS = ("plan,part,bin,records\nD,0,3,20\nD,1,-1,2\n", '[{"plan": "D", "part": 0, "bin": "3", "records": 20}]')
"""Valid counts."""
