"""Without an optional package, the error names the extra that contains it."""

import subprocess
import sys

import pytest

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
