"""The macro for dbt: rendered as dbt renders it, and run by dbt in a separate environment."""

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import duckdb
import jinja2
import pytest
import sqlglot

from confide.candidates import Candidates
from confide.errors import InputError
from confide.tables import ClassColumns, ScoreColumn
from confide.warehouse import DIALECTS, CountingPlan, counting_query, dbt_macro, read_counts
from tests.environments import python_of
from tests.refused import refused
from tests.warehouse.requests import CASES, plan_of, records

ROOT = Path(__file__).parents[2]
PLAN = plan_of("each class")


def rendered(macro, target, relation):
    """A model of one line, with the functions of dbt: dispatch by the target, and `return`."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)  # noqa: S701 - SQL, not HTML
    macros = environment.from_string(macro).module
    adapter = SimpleNamespace(dispatch=lambda name: getattr(macros, f"{target}__{name}"))
    values = {"return": lambda value: value, "ref": lambda name: relation, "adapter": adapter}
    return environment.from_string(macro + "{{ confide_counts(ref('scored_records')) }}").render(**values)


@pytest.mark.slow
def test_a_model_is_the_query_of_its_relation():
    macro = dbt_macro(PLAN, list(DIALECTS))
    for name, dialect in DIALECTS.items():
        relation = dialect.relation("clinic.records")
        assert rendered(macro, name, relation).strip() == counting_query(PLAN, name, "clinic.records").strip()
        sqlglot.parse_one(rendered(macro, name, relation), read=name)


def test_a_macro_counts(tmp_path):
    table = records()
    with duckdb.connect() as database:
        database.register("scored", table)
        database.sql(rendered(dbt_macro(PLAN, ["duckdb"]), "duckdb", "scored")).write_csv(str(tmp_path / "counts.csv"))
    what, _, count = CASES["each class"]
    expected = count(table, PLAN, what)
    counts = read_counts(tmp_path / "counts.csv", PLAN)
    assert {name: one.counts.tolist() for name, one in counts.items()} == {
        name: one.counts.tolist() for name, one in expected.items()
    }


def test_the_macro_rejects_an_engine_without_a_query():
    with pytest.raises(AttributeError):
        rendered(dbt_macro(PLAN, ["duckdb"]), "snowflake", "records")
    for wrong in ([], ["duckdb", "duckdb"]):
        with refused(InputError, "dialects"):
            dbt_macro(PLAN, wrong)


@pytest.mark.parametrize("name", ["{{ x", "{% x", "{# x"])
def test_names_cannot_be_templates(name):
    few = {"candidates": Candidates.unit(3)}
    for what in (ScoreColumn(name, "lac"), ClassColumns("p_*", "y", ("a", name)), ScoreColumn("s", name)):
        with refused(InputError, "names"):
            dbt_macro(CountingPlan.of(what, 0.1, 1.0, **few), ["duckdb"])


PROJECT = """
name: clinic
version: "1.0"
profile: clinic
model-paths: [models]
macro-paths: [macros]
"""
PROFILES = """
clinic:
  target: here
  outputs:
    here: {type: duckdb, path: clinic.duckdb, threads: 1}
"""


@pytest.mark.slow
def test_dbt_runs_the_macro(tmp_path):
    """dbt-core and dbt-duckdb: a project with a model of one line, whose table is read."""
    python = python_of("dbt")
    for folder in ("models", "macros"):
        (tmp_path / folder).mkdir()
    (tmp_path / "dbt_project.yml").write_text(PROJECT)
    (tmp_path / "profiles.yml").write_text(PROFILES)
    (tmp_path / "macros" / "confide_counts.sql").write_text(dbt_macro(PLAN, ["snowflake", "duckdb"]))
    (tmp_path / "models" / "scored_records.sql").write_text("select * from raw")
    model = "{{ config(materialized='table') }}\n{{ confide_counts(ref('scored_records')) }}\n"
    (tmp_path / "models" / "counts.sql").write_text(model)
    table = records()
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as database:
        database.register("arriving", table)
        database.execute("CREATE TABLE raw AS SELECT * FROM arriving")
    command = [str(python.with_name("dbt")), "run", "--project-dir", ".", "--profiles-dir", ".", "--no-use-colors"]
    environment = os.environ | {"DO_NOT_TRACK": "1", "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as database:
        database.sql("SELECT * FROM counts").write_parquet(str(tmp_path / "counts.parquet"))
    what, _, count = CASES["each class"]
    counts = read_counts(tmp_path / "counts.parquet", PLAN)
    assert {name: one.counts.tolist() for name, one in counts.items()} == {
        name: one.counts.tolist() for name, one in count(table, PLAN, what).items()
    }
