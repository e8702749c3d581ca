"""The page "Try it": its sampler has the exact law, its cells run with it, and its releases are marked everywhere."""

import json
import math
import os
import shutil
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from importlib.util import find_spec, module_from_spec, spec_from_file_location

import numpy as np
import pytest
from scipy import stats

import confide
from confide.federated import Conditions
from confide.selection import selection_law
from tests.docs.blocks import ROOT, blocks
from tests.reports.browser import chromium, needs_chromium

STATIC, SITE = ROOT / "docs" / "_static", ROOT / "docs" / "_build" / "html"
PYODIDE = ROOT / ".venv-stores" / "node_modules" / "pyodide"
LEVEL = 1e-6 / 20  # for each of fewer than 20 tests by chance


def loaded():
    spec = spec_from_file_location("demonstration_sampler", STATIC / "demonstration_sampler.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


demonstration = loaded()


class UnfinishedError(Exception):
    """A draw asked for more than its script has."""


class Scripted(demonstration.Sampler):
    """Takes its choices from a script, and multiplies their probabilities."""

    def __init__(self, script, exp=None):
        self.script, self.weight, self.asked, self.exp = list(script), 1.0, [], exp

    def choose(self, weights):
        if not self.script:
            self.asked = weights
            raise UnfinishedError
        chosen = self.script.pop(0)
        self.weight *= float(weights[chosen])
        return chosen

    def below(self, n):
        return self.choose([Fraction(1, n)] * n)

    def bernoulli(self, p):
        return bool(self.choose([1 - p, p]))

    def bernoulli_exp(self, x):
        if self.exp is None:
            return super().bernoulli_exp(x)
        p = self.exp(x)
        return bool(self.choose([1 - p, p]))


def enumerated(draw, least=1e-9, exp=None):
    """The law of a draw by its whole tree of choices, and the mass of the branches below `least`, not followed."""
    law, left, scripts = Counter(), 0.0, [()]
    while scripts:
        script = scripts.pop()
        sampler = Scripted(script, exp)
        try:
            law[draw(sampler)] += sampler.weight
        except UnfinishedError:
            for chosen, weight in enumerate(sampler.asked):
                if sampler.weight * float(weight) > least:
                    scripts.append((*script, chosen))
                else:
                    left += sampler.weight * float(weight)
    assert math.isclose(sum(law.values()) + left, 1, rel_tol=1e-12)
    return law, left


def exp(x):
    """The probability of a coin exp(-x), for trees that do not follow its own choices."""
    return math.exp(-x)


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(0.1) * 21])
def test_exponential_coins_are_exact(x):
    law, left = enumerated(lambda sampler: sampler.bernoulli_exp(x), 1e-12)
    assert abs(float(law[True]) - math.exp(-x)) <= float(left) + 1e-12
    assert left < 1e-9


@pytest.mark.parametrize("utilities", [[0, 0], [-3, 0, -1], [5, 5, 1, 4], [-2000, 0, -1, -1]])
@pytest.mark.parametrize("scale", [Fraction(2), Fraction(0.3)])
def test_permute_and_flip_is_exact(utilities, scale):
    """All orders and coins, against the law that the certificates use."""
    law, left = enumerated(lambda sampler: sampler.permute_and_flip(utilities, scale), 0.0, exp)
    assert left < 1e-300
    u = np.array(utilities)
    wanted = selection_law(np.exp((u - u.max()) / float(scale)), "permute_and_flip")
    np.testing.assert_allclose([float(law[j]) for j in range(len(u))], wanted, rtol=1e-9, atol=1e-300)


def test_exponential_mechanism_is_exact():
    """Every round proposes alike, so the law given an end after few rounds is the law."""
    u = np.array([0, -1, -3])
    law, left = enumerated(lambda sampler: sampler.exponential(u.tolist(), Fraction(2)), 1e-5, exp)
    wanted = selection_law(np.exp(u / 2), "exponential")
    np.testing.assert_allclose([float(law[j] / (1 - left)) for j in range(3)], wanted, rtol=0.02)


@pytest.mark.slow
def test_discrete_laplace_is_exact():
    law, left = enumerated(lambda sampler: sampler.discrete_laplace(Fraction(3, 2)), 1e-6, exp)
    assert left < 0.02
    for z in range(-4, 5):
        exact = math.tanh(1 / 3) * math.exp(-abs(z) / 1.5)
        assert -1e-12 <= exact - law[z] <= left, z
        assert math.isclose(law[z] / law[0], math.exp(-abs(z) / 1.5), rel_tol=0.05), z


@pytest.mark.slow
@pytest.mark.parametrize("selector", ["permute_and_flip", "exponential"])
def test_selections_have_the_law(selector):
    u, scale, runs = [-40, -3, 0, -1, -6, -2], Fraction(2.3), 20_000
    sampler = demonstration.Sampler()
    found = np.bincount([getattr(sampler, selector)(u, scale) for _ in range(runs)], minlength=6)[1:]
    wanted = selection_law(np.exp(np.array(u) / 2.3), selector)[1:]
    assert stats.chisquare(found, wanted / wanted.sum() * found.sum()).pvalue > LEVEL


@pytest.mark.slow
def test_noise_has_the_law():
    scale, runs, sampler = 2.7, 20_000, demonstration.Sampler()
    drawn = [sampler.discrete_laplace(Fraction(scale)) for _ in range(runs)]
    inside = range(-12, 13)
    wanted = np.array([math.tanh(1 / (2 * scale)) * math.exp(-abs(z) / scale) for z in inside])
    found = np.array([drawn.count(z) for z in inside])
    observed, expected = [*found, runs - found.sum()], [*(runs * wanted), runs * (1 - wanted.sum())]
    assert stats.chisquare(observed, expected).pvalue > LEVEL


def vectors(name, operation):
    """Cases of the repository's test vectors, computed with many digits elsewhere."""
    cases = json.loads((ROOT / "vectors" / name).read_text(encoding="utf-8"))["cases"]
    return [case for case in cases if case["operation"] == operation]


def test_selections_agree_with_the_test_vectors():
    small = [case for case in vectors("laws.json", "law") if len(case["input"]["utilities"]) <= 4]
    flips = [case for case in small if case["input"]["selector"] == "permute_and_flip"]
    assert flips
    for case in flips:
        given = case["input"]
        u, scale = given["utilities"], Fraction(given["scale"])
        law, _ = enumerated(lambda sampler, u=u, s=scale: sampler.permute_and_flip(u, s), 0.0, exp)
        wanted = [float(one) for one in case["expected"]]
        np.testing.assert_allclose([law[j] for j in range(len(u))], wanted, atol=1e-12)


def test_noise_agrees_with_the_test_vectors():
    (case,) = (one for one in vectors("noise.json", "noise_law") if one["id"] == "law-1-1")
    law, left = enumerated(lambda sampler: sampler.discrete_laplace(Fraction(1)), 1e-9, exp)
    assert left < 1e-6
    for z, wanted in zip(case["input"]["values"], case["expected"], strict=True):
        assert abs(law[z] - float(wanted)) <= left + 1e-12, z


WITHOUT_OPENDP = """
import sys
sys.path[:0] = {paths!r}
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "opendp":
            raise ModuleNotFoundError(name=name)
import importlib.util, importlib.metadata
found = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == "opendp" and name not in sys.modules else found(name)
import demonstration_sampler
demonstration_sampler.install()
sys.meta_path.insert(0, sys.meta_path.pop())  # before the installed OpenDP
sys.meta_path.insert(0, Hidden())
"""


def run_here(code, folder):
    """Run code as the page does, in a process that hides OpenDP."""
    paths = [str(STATIC), str(ROOT / "src")]
    return subprocess.run(
        [sys.executable, "-W", "always", "-c", WITHOUT_OPENDP.format(paths=paths) + code],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip


def cells():
    """The code of the page, as the browser runs it."""
    return [block.text for block in blocks(ROOT / "docs" / "try.md") if block.language == "python"]


def test_the_sampler_refuses_where_opendp_is_installed():
    assert find_spec("opendp")
    with pytest.raises(RuntimeError, match="OpenDP is installed"):
        demonstration.install()


MORE = """
confide.evaluate(released, scores=rng.random(500), epsilon=1.0).save("evaluation.json")
confide.Watch.start(released, epsilon=1.0, batch=500).look("Monday", [450, 50]).save("watch.json")
"""


@pytest.fixture(scope="module")
def demonstrated(tmp_path_factory):
    """All cells, with the release and its page as files, and a private evaluation and a watch of it."""
    folder = tmp_path_factory.mktemp("page")
    *first, last = cells()
    ending = f"\npage = {last.strip()}\npage.save('page.html'); released.save('released.json')\n{MORE}"
    return folder, run_here("\n".join(first) + ending, folder)


@pytest.mark.slow
def test_cells_run_and_their_release_is_marked(demonstrated):
    folder, done = demonstrated
    assert "claims: recomputed, and they hold" in done.stdout
    assert "changed file:" in done.stdout
    assert "demonstration: not private: drawn by a demonstration sampler" in done.stdout
    assert "CoverageWarning: not private: drawn by a demonstration sampler" in done.stderr
    released = confide.load(folder / "released.json")
    assert released.versions["opendp"] == demonstration.VERSION
    assert "private: drawn by a demonstration sampler" in (folder / "page.html").read_text(encoding="utf-8")
    assert Conditions().check(released).failures == ("not private: drawn by a demonstration sampler, not by OpenDP",)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["released", "evaluation", "watch"])
def test_verify_rejects_a_demonstration(demonstrated, name):
    folder, _ = demonstrated
    for command, code in (("verify", 5), ("show", 0)):
        done = subprocess.run(
            [sys.executable, "-m", "confide", command, f"{name}.json"],
            cwd=folder, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        assert "not private: drawn by a demonstration sampler" in done.stderr
        assert "demonstration: not private: drawn by a demonstration sampler" in done.stdout


@pytest.mark.slow
def test_pages_do_not_call_a_demonstration_private(demonstrated):
    folder, _ = demonstrated
    released, watch = confide.load(folder / "released.json"), confide.load(folder / "watch.json")
    page = " ".join(confide.report(released, evaluation=folder / "evaluation.json").html.split())
    assert "The private evaluation is not private: drawn by a demonstration sampler" in page
    assert "They may be published" not in page
    marked = '<p class="warning" role="note">Not private: drawn by a demonstration sampler, not by OpenDP.</p>'
    assert marked in page
    assert marked in confide.report(watch).html
    card = confide.card(released, evaluation=folder / "evaluation.json").text
    assert "The evaluation is not private: drawn by a demonstration sampler" in card


needs_pyodide = pytest.mark.skipif(
    shutil.which("node") is None or not PYODIDE.is_dir(),
    reason="needs node and Pyodide: nox -s stores",
)
needs_site = pytest.mark.skipif(not (SITE / "try-files.js").is_file(), reason="needs the built site: make docs")


def try_files():
    text = (SITE / "try-files.js").read_text(encoding="utf-8")
    return json.loads(text.removeprefix("window.tryFiles = ").removesuffix(";\n"))


IN_NODE = """
import { loadPyodide } from %(pyodide)s;
import { readFileSync } from "node:fs";
const files = JSON.parse(readFileSync(0, "utf8"));
const python = await loadPyodide();
python.unpackArchive(Uint8Array.from(Buffer.from(files.wheel, "base64")), "wheel");
python.FS.writeFile("/home/pyodide/demonstration_sampler.py", files.sampler);
python.runPython(`
import demonstration_sampler, sys, json
from fractions import Fraction
from importlib.metadata import version
demonstration_sampler.install()
demonstration_sampler.install()  # twice is once
import confide, opendp.measurements
sampler = demonstration_sampler.Sampler()
drawn = [sampler.permute_and_flip([-3, 0, -1, -2], Fraction(2.0)) for _ in range(4000)]
print(json.dumps([sys.platform, version("confide"), version("opendp"), confide.__version__, drawn]))
`);
"""


@pytest.mark.slow
@needs_pyodide
@needs_site
def test_the_wheel_and_the_sampler_run_in_webassembly(tmp_path):
    """All that needs no numpy, which has no WebAssembly build on npm or PyPI: import, versions, draws."""
    program = IN_NODE % {"pyodide": json.dumps((PYODIDE / "pyodide.mjs").as_uri())}
    (tmp_path / "run.mjs").write_text(program, encoding="utf-8")
    done = subprocess.run(
        ["node", "run.mjs"], cwd=tmp_path, input=json.dumps(try_files()), capture_output=True, text=True, check=True
    )
    platform, wheel, sampler, version, drawn = json.loads(done.stdout.splitlines()[-1])
    assert (platform, wheel, sampler, version) == (
        "emscripten", confide.__version__, demonstration.VERSION, confide.__version__,
    )  # fmt: skip
    law = selection_law(np.exp(np.array([-3, 0, -1, -2]) / 2), "permute_and_flip")
    assert stats.chisquare(np.bincount(drawn, minlength=4), law * len(drawn)).pvalue > LEVEL


@pytest.mark.slow
@needs_chromium
@needs_site
def test_nothing_is_requested_before_the_button(tmp_path):
    """Without a network the page tells so, and the button works again."""
    with chromium() as browser:
        page = browser.new_page()
        asked = []
        page.route("https://**", lambda route: (asked.append(route.request.url), route.abort()))
        page.goto((SITE / "try.html").as_uri())
        page.wait_for_timeout(500)
        assert asked == []
        button = page.locator("#try-load")
        assert "cdn.jsdelivr.net" in button.inner_text()
        button.click()
        page.wait_for_function("document.getElementById('try-status').textContent.includes('could not be loaded')")
        # The worker's own request is not seen here; the browser's message names it.
        assert "https://cdn.jsdelivr.net/pyodide/v314.0.7/full/pyodide.mjs" in page.locator("#try-status").inner_text()
        assert button.is_enabled()


def test_the_page_names_the_pinned_pyodide():
    pinned = json.loads((ROOT / "requirements" / "npm" / "package.json").read_text(encoding="utf-8"))["dependencies"]
    assert f"/pyodide/v{pinned['pyodide']}/full/" in (STATIC / "try.js").read_text(encoding="utf-8")
