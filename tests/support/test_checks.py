"""Scalar arguments, names, descriptions, documents, log events, and errors that name the argument or the extra."""

import json
import logging
import math
import re
import subprocess
import sys
import warnings
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import confide
from confide.arrays.labels import as_positions
from confide.cli import main
from confide.errors import FormatError, InputTypeError
from confide.support import (
    MOST_CANDIDATES,
    MOST_PER_PERSON,
    MOST_RECORDS,
    Described,
    Form,
    Section,
    Table,
    check_version_texts,
    checksum,
    describe,
    log_event,
    to_html,
    to_text,
)
from confide.support.checks import MAX_DENOMINATOR, ceil_to, exact_level, float_above, float_below
from confide.support.names import as_integer, canonical_name, check_names, places, positions
from tests.builders import slow
from tests.refused import PLANTED, assert_no_private_value, planted_scores, refused


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (0.1, Fraction(1, 10)),
        (1 - 0.9, Fraction(1, 10)),
        (0.1 + 0.2, Fraction(3, 10)),
        (1 / 3, Fraction(1, 3)),
        (2 / 7, Fraction(2, 7)),
        ("0.05", Fraction(1, 20)),
        (" 5e-2 ", Fraction(1, 20)),
        ("1/3", Fraction(1, 3)),
        (".5", Fraction(1, 2)),
        (Fraction(3, 1000), Fraction(3, 1000)),
        (np.float64(0.1), Fraction(1, 10)),
        (1e-6, Fraction(1, 10**6)),
        (1 - 1e-6, Fraction(10**6 - 1, 10**6)),
        (0.123457, Fraction(123457, 10**6)),
    ],
)
def test_levels(value, exact):
    assert exact_level("alpha", value) == exact


@pytest.mark.long
@given(st.integers(1, 999), st.integers(2, 1000))
def test_floats_of_simple_fractions_mean_the_fraction(numerator, denominator):
    if numerator < denominator:
        assert exact_level("alpha", numerator / denominator) == Fraction(numerator, denominator)


@pytest.mark.parametrize("value", [True, None, 1j, [0.1], np.array(0.1), b"0.1", object()])
@pytest.mark.parametrize("name", ["alpha", "delta"])
def test_levels_of_the_wrong_type(name, value):
    if name == "delta" and value is None:
        return
    with refused(confide.errors.InputTypeError, name) as caught:
        confide.plan(**{"alpha": 0.1, "epsilon": 1.0, name: value})
    assert caught.value.got == type(value).__name__


OUT_OF_RANGE = [
    *(0, 1, 0.0, 1.0, -0.1, 1.1, math.nan, math.inf, -math.inf, 10**400, -(10**400), 2**53),
    *("abc", "", "nan", "inf", "0", "1", "1/0", "-1/3", "1 / 3", "0x1p-2", "1_0e-2", "٠.١", "1e-99999999", "1e"),
    "0." + "1" * 500,
    *map(Decimal, ("NaN", "sNaN", "Infinity", "0", "1", "-0.1", "1E-400", "1E+999999999")),
]
ROUNDED = [1e-7, 1e-300, 5e-324, math.pi / 10, 1 - 1e-9, np.nextafter(1, 0), "1/3000001", "1e-400"]


@pytest.mark.parametrize("value", [*OUT_OF_RANGE, *ROUNDED, Decimal("0.31415926")])
def test_levels_out_of_range_or_that_need_rounding(value):
    with refused(confide.errors.InputError, "alpha"):
        confide.calibrate([0.5], alpha=value, epsilon=1.0)


def test_the_error_of_a_level_is_at_most_one_in_a_trillion():
    for value in (0.333333333333, 0.1 + 9e-13):
        exact = exact_level("alpha", value)
        assert abs(exact - Fraction(value)) <= Fraction(11, 10**13)
        assert exact.denominator <= MAX_DENOMINATOR
    with refused(confide.errors.InputError, "alpha"):
        exact_level("alpha", 0.1 + 2e-12)


@pytest.mark.long
@given(st.fractions(min_value=-(10**6), max_value=10**6))
def test_floats_on_either_side(exact):
    low, high = float_below(exact), float_above(exact)
    assert Fraction(low) <= exact <= Fraction(high)
    assert low == high or math.nextafter(low, math.inf) == high


@pytest.mark.long
@given(st.fractions(max_denominator=10**4), st.integers(1, 1000))
def test_ceil_to(value, denominator):
    ceiling = ceil_to(value, denominator)
    assert (ceiling * denominator).denominator == 1
    assert value <= ceiling < value + Fraction(1, denominator)


# --- counts and privacy losses


def check_refused(kind, argument, got=None, **changed):
    """All entry points raise the same error, with the value if it is stated."""
    arguments = {"alpha": 0.1, "epsilon": 1.0, **changed}
    histogram = confide.ScoreHistogram.from_scores(planted_scores(), confide.Candidates.unit(10))
    doors = [
        confide.plan,
        partial(confide.calibrate, planted_scores()),
        partial(confide.calibrate_histogram, histogram),
    ]
    for call in doors[:1] if changed.keys() & {"n", "candidates"} else doors:
        with refused(kind, argument) as caught:
            call(**arguments)
        assert got in (None, caught.value.got)


@pytest.mark.parametrize(
    "value", [0, -1, 0.0, -0.0, math.nan, math.inf, -math.inf, 9e-7, 1.1e6, 1e300, 10**400, 5e-324]
)
@pytest.mark.parametrize("name", ["epsilon", "rho"])
def test_privacy_losses_out_of_range(name, value):
    check_refused(confide.errors.InputError, name, **{"epsilon": None, name: value})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("n", MOST_RECORDS),
        ("n_min", MOST_RECORDS),
        ("candidates", MOST_CANDIDATES),
        ("records_per_person", MOST_PER_PERSON),
    ],
)
def test_counts(name, most):
    for value in (0, -1, most + 1, 10**400):
        check_refused(confide.errors.InputError, name, str(value), **{name: value})
    for value in (True, 1.0, "1", [1], np.array([1]), 1j, math.nan):
        check_refused(confide.errors.InputTypeError, name, type(value).__name__, **{name: value})
    assert confide.plan(**{"alpha": 0.5, "epsilon": 9.0, name: np.int64(7)}).mechanism is not None


@pytest.mark.long
def test_privacy_losses_never_exceed_the_request():
    """Rounding is downwards: neither the stated privacy loss per person nor rho exceeds the request by a digit."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        k, loss = int(rng.integers(1, 60)), round(float(rng.uniform(0.01, 8)), 3)
        neighbors = ["add_remove", "replace_one"][int(rng.integers(2))]
        request = {"alpha": 0.1, "neighbors": neighbors, "n": 10**6, "records_per_person": k}
        for asked in ({"epsilon": loss}, {"rho": loss}):
            spent = confide.plan(**request, **asked).privacy
            assert getattr(spent, *asked) <= loss
            assert getattr(spent, *asked) >= loss * (1 - 1e-12)
            assert Fraction(spent.epsilon) * (1 + Fraction(1, 10**12)) >= k * Fraction(getattr(spent, neighbors))


NAMES = (
    st.integers() | st.integers().map(str) | st.text(max_size=4) | st.sampled_from(["07", "1.0", " 7", "-0", "+1", "١"])
)


@pytest.mark.long
@given(NAMES, NAMES)
def test_equivalent_names_are_the_same(one, other):
    same = canonical_name(one) == canonical_name(other)
    assert (places([one])[other] == 0) == (places([other])[one] == 0) == same
    if same and as_integer(one) is not None:
        assert as_integer(one) == as_integer(other)


@pytest.mark.parametrize(
    "values",
    [
        [1, 0, 1],
        ["1", "0", "1"],
        [1, "0", np.int8(1)],
        np.array([1, 0, 1], np.uint64),
        np.array(["1", "0", "1"]),
        np.array([1, "0", 1], dtype=object),
        pd.Series(["1", "0", "1"], dtype="category"),
        pd.Series([1, 0, 1], dtype="Int8"),
    ],
)
@pytest.mark.parametrize("names", [(0, 1), ("0", "1"), (0, "1")])
def test_groups_of_any_kind(values, names):
    np.testing.assert_array_equal(as_positions("groups", values, names, 3), [1, 0, 1])


@pytest.mark.parametrize("wrong", ["01", "1.0", " 1", "+1", "", None, 2, 2**70, np.nan, 0.5])
def test_values_that_are_not_names(wrong):
    with refused(confide.errors.InputError, "groups"):
        as_positions("groups", [0, wrong, 1], ("0", 1), 3)


def test_invalid_names():
    for names in ([], [1.0], [None], [b"a"], [("a",)]):
        with refused(confide.errors.InputTypeError, "names"):
            check_names("names", names)
    for names in ("ab", 3, None):
        with refused(confide.errors.InputTypeError, "names"):
            check_names("names", names)
    with refused(confide.errors.InputTypeError, "groups"):
        positions("groups", [["a"]], ["a"])


SETS = "import numpy, confide; sets = confide.PredictionSets(numpy.eye(2, dtype=bool)); "
CALLS = [
    ("torch", "import confide.torch", "confide[torch]"),
    ("pandas", SETS + "sets.to_pandas()", "confide[pandas]"),
    ("matplotlib", SETS + "confide.plots.plot_sizes(sets)", "confide[plots]"),
    ("array_api_compat", "from confide.array_api import _namespace; _namespace([1.0])", "confide[arrays]"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("package", "call", "extra"), CALLS)
def test_a_missing_package_is_named_with_its_extra(package, call, extra):
    code = f"import sys; sys.modules[{package!r}] = None; {call}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("confide.errors.MissingExtraError: "), done.stderr
    assert f"'{package}'" in last
    assert f"pip install '{extra}'" in last


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "program"),
    [
        ("click", "import runpy; runpy.run_module('confide', run_name='__main__')"),
        ("click", "import confide.cli; sys.exit(confide.cli.main(['show', 'released.json']))"),
    ],
)
def test_the_command_without_its_packages_prints_a_one_line_remedy(package, program):
    code = f"import sys; sys.modules[{package!r}] = None; {program}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: the command line: needs the package {package!r}")
    assert done.stderr.count("\n") == 1
    assert "pip install 'confide[standard]'" in done.stderr


HOSTILE = "<script>$x$\u202e</script>\x1b"


def whole(text):
    """A section with a text in every place."""
    table = Table((text, text), ((text, text),), text)
    part = Section(text, text, ((text, text),))
    return Section(text, text, ((text, text),), (table,), (text,), None, (part,), (text,))


def test_tables_have_a_caption_and_heads_with_a_scope_and_no_colours():
    shown = to_html(Section("Sets", tables=(Table(("record", "set"), (("0", "cat"),)),), notes=("a note",)))
    assert shown.startswith("<table")
    assert "<caption" in shown
    assert shown.count('scope="col"') == 2
    assert shown.count('scope="row"') == 1
    assert '<td colspan="2"' in shown
    assert not re.search("color|background", shown)


def test_every_text_is_escaped_and_no_formula():
    shown = to_html(whole(HOSTILE))
    assert not re.search("<script|\u202e|\x1b", shown)
    assert shown.count("&lt;script") == 14
    assert "tex2jax_ignore mathjax_ignore" in shown


def test_text_and_notebook_have_the_same_facts_in_the_same_order():
    inner = Section("With 10 records", facts=(("target rank", "9"), ("coverage", "0.9")))
    made = Section("Plan", "a plan", (("privacy", "1"),), warnings=("few",), parts=(inner,), notes=("no alarm",))
    assert to_text(made).splitlines() == [
        "few", "a plan", "privacy: 1", "With 10 records:", "  target rank  9", "  coverage     0.9", "no alarm",
    ]  # fmt: skip
    shown = to_html(made)
    assert shown.count('scope="row"') == 3
    assert shown.count('scope="rowgroup"') == 1
    cells = re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", shown)
    assert cells == [
        "few", "a plan", "privacy", "1", "With 10 records", "target rank", "9", "coverage", "0.9", "no alarm",
    ]  # fmt: skip


def test_a_repr_is_one_line_and_values_without_description_raise():
    class Named(Described):
        def _brief(self):
            return "a\nname"

    assert repr(Named()) == "Named(a\\nname)"
    with pytest.raises(TypeError):
        describe(3)
    for missing in (lambda: Described()._section(), lambda: Described()._brief()):
        with pytest.raises(NotImplementedError):
            missing()


FORM = Form("confide/example", "example", most_characters=1000)


@pytest.mark.parametrize("fields", [{"a": 1}, {"a": 1, "b": {}}])
def test_a_form_has_a_schema_and_a_checksum(fields):
    text = FORM.write(fields)
    content = json.loads(text)
    assert list(content) == ["kind", "schema", *fields, "sha256"]
    assert content["schema"] == 1
    assert FORM.read(text) == fields


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"kind": "other"}, "example.kind"),
        ({"kind": ...}, "example.kind"),
        *(({"schema": schema}, "example.schema") for schema in (0, -1, 2, 3, True, "1", 1.0, None, ...)),
        ({"a": "1" * 1000}, "example"),
    ],
)
def test_texts_of_another_form_raise(change, path):
    content = {"kind": "confide/example", "schema": 1, "a": 1, **change}
    content = {name: value for name, value in content.items() if value is not ...}
    with refused(FormatError, path):
        FORM.read(json.dumps({**content, "sha256": checksum(content)}))


def test_missing_checksums_and_other_types_raise():
    text = FORM.write({"a": 1})
    for damaged in (text.replace('"a": 1', '"a": 2'), "{}"[:1], "[]", text[:-3], text.replace('"a"', '"a": 1, "a"')):
        with pytest.raises(FormatError):
            FORM.read(damaged)
    with refused(InputTypeError, "text"):
        FORM.read(b"{}")


@pytest.mark.parametrize(
    "versions",
    [{"": "1"}, {"a": ""}, {"a": 1}, {"a": "1\n"}, {"a": "1" * 101}, dict.fromkeys("abcdefghijklmnopqrstu", "1")],
)
def test_versions_are_few_short_printable_texts(versions):
    check_version_texts("versions", {"confide": "0.4.0", "a": "1" * 100})
    with refused(FormatError, "versions"):
        check_version_texts("versions", versions)


N = 4177
"""A secret number of records, which occurs nowhere else."""

ONE = {"alpha": 0.1, "epsilon": 1.0}


@pytest.fixture
def heard(caplog):
    caplog.set_level(logging.DEBUG)
    return caplog


def lines(heard):
    """Messages alone, because other libraries may have set a format of the process's handlers."""
    return "\n".join(record.getMessage() for record in heard.records)


def assert_private(heard, *secrets):
    own = [record for record in heard.records if record.name.startswith("confide")]
    for record in own:  # with all attributes, which any handler may print
        facts = f"{record.getMessage()} {record.__dict__}".replace(f"{heard.handler!r}", "")
        assert_no_private_value(facts)
        for secret in (N, *secrets):
            assert f"={secret}" not in facts
            assert f": {secret}" not in facts
    return [record.event for record in own]


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """A file of N records with planted scores, labels and people, and the same as arrays."""
    path = tmp_path_factory.mktemp("records") / "records.csv"
    scores = np.resize(np.minimum(PLANTED, 0.9), N)
    lines = [f"{s!r},{1 - s!r},{'ab'[i % 2]}" for i, s in enumerate(scores.tolist())]
    path.write_text("p_a,p_b,y\n" + "\n".join(lines) + "\n")
    return path, scores


@pytest.mark.slow
def test_arrays_with_a_ledger(heard, records, tmp_path):
    ledger = confide.Ledger(tmp_path / "l.db", limit=8.0)
    released = [confide.calibrate(records[1], **ONE, ledger=ledger, dataset="ward 7")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", confide.errors.EarlierReleaseWarning)
        confide.calibrate(records[1], **ONE, ledger=ledger, dataset="ward 7")
    groups = np.resize(["g", "h"], N)
    released += confide.calibrate(
        records[1], groups=groups, names=["g", "h"], ledger=ledger, dataset="ward 7", partition="place", **ONE
    ).parts.values()
    events = assert_private(heard, *(one.threshold for one in released), N // 2, N - N // 2)
    assert {"created", "charged", "released", "answered before", "plan searched"} >= set(events)
    assert events.count("released") == 3
    assert events.count("answered before") == 1
    charged = [record.facts for record in heard.records if getattr(record, "event", "") == "charged"]
    assert [(one["dataset"], one["epsilon"], one["left"]) for one in charged[:1]] == [("ward 7", 1.0, 7.0)]
    assert 'charged dataset="ward 7" epsilon=1 left=7 neighbors=add_remove mechanism=slopes' in lines(heard)


def test_without_listeners_nothing_is_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "logging")
    log_event("ledger", "charged", dataset="a")
    assert "logging" not in sys.modules


def test_the_logger_is_silent_by_default(capsys):
    log_event("ledger", "charged", dataset="a")
    assert any(isinstance(one, logging.NullHandler) for one in logging.getLogger("confide").handlers)
    assert capsys.readouterr() == ("", "")


CALIBRATE = ["--probabilities", "p_*", "--label", "y", "--alpha", "0.1", "--epsilon", "1", "--dataset", "a", "--json"]


@pytest.mark.parametrize("way", ["-vv", *slow(["-v", "CONFIDE_LOG"])])
def test_a_command_shows_it_on_standard_error(way, records, tmp_path, capsys, monkeypatch):
    before = list(logging.getLogger("confide").handlers)
    if way == "CONFIDE_LOG":
        monkeypatch.setenv(way, "info")
    given = [way] if way.startswith("-") else []
    out = ["--out", str(tmp_path / "r.json"), "--ledger", str(tmp_path / "l.db")]
    assert main([*given, "calibrate", str(records[0]), *CALIBRATE, *out]) == 0
    printed = capsys.readouterr()
    assert "INFO confide.ledger charged dataset=a epsilon=1" in printed.err
    assert "INFO confide.core released score=lac alpha=1/10" in printed.err
    assert ("DEBUG confide.tables counted" in printed.err) == (way == "-vv")
    assert ("rows=secret" in printed.err) == (way == "-vv")
    assert f"={N}" not in printed.err
    assert_no_private_value(printed.err)
    assert printed.out.startswith("{")
    assert logging.getLogger("confide").handlers == before


def test_an_invalid_log_level_raises(monkeypatch, capsys):
    monkeypatch.setenv("CONFIDE_LOG", "loud")
    assert main(["show", "nothing.json"]) == 2
    assert "CONFIDE_LOG must be info or debug" in capsys.readouterr().err
