"""The pages in a real browser: what they show, what they ask for, and whether everybody can use them."""

import hashlib
import json
import re
import subprocess
import sys

import pytest

import confide
from confide.reports.plan_page import grid
from confide.reports.promise import laws, plan_laws
from tests.reports.browser import Opened, chromium, needs_chromium
from tests.reports.pages import CLASSES, HOSTILE, calibration, evaluation, write_all

pytestmark = [needs_chromium, pytest.mark.slow, pytest.mark.xdist_group("browser")]
KINDS = ("report", "plan", "federated", "regression", "levels", "groups", "watch", "sizes")
LONG_WIDTHS = [
    pytest.param(kind, width, marks=pytest.mark.long)
    for kind, width in [("report", 390), ("report", 768), *((kind, 360) for kind in KINDS[3:])]
]
MORE = [
    ("plan", "light"),
    ("plan", "dark"),
    ("federated", "light"),
    ("regression", "light"),
    ("regression", "dark"),
    ("levels", "light"),
    ("groups", "dark"),
    ("levels", "dark"),
    ("groups", "light"),
]


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp("pages"), whole=False)


@pytest.mark.parametrize(
    ("kind", "scheme"),
    [
        *((kind, "light") for kind in KINDS),
        ("report", "dark"),
        *(pytest.param(kind, "dark", marks=pytest.mark.long) for kind in KINDS[1:]),
    ],
)
def test_draws_without_a_complaint_and_asks_the_network_for_nothing(browser, pages, kind, scheme):
    with Opened(browser, pages[kind], scheme=scheme) as opened:
        assert opened.complaints == []
        assert opened.requests == []
        charts = opened.page.locator("svg.plot")
        count = {"report": 6, "plan": 3, "federated": 5, "regression": 3, "levels": 3 + 2 + 1 + 3 * 3, "groups": 3 + 4}
        count |= {"watch": 2, "sizes": 2}
        assert charts.count() == count[kind]
        for i in range(charts.count()):
            assert charts.nth(i).get_attribute("role") == "img"
            assert charts.nth(i).get_attribute("aria-label")
            assert charts.nth(i).locator("path, circle, line, rect").count() > 0


def test_the_policy_stops_what_the_page_does_not_bring(browser, pages):
    """The recorder works, and so does the policy: no request leaves, and a script that is smuggled in does not run."""
    with Opened(browser, pages["plan"]) as opened:
        opened.page.evaluate(
            """() => {
                const image = document.createElement("img");
                image.src = "http://example.org/x.png";
                document.body.append(image);
                const script = document.createElement("script");
                script.textContent = "window.ran = true";
                document.body.append(script);
            }"""
        )
        opened.page.wait_for_timeout(200)
        assert opened.page.evaluate("window.ran") is None
        assert opened.requests == []
        assert len([line for line in opened.complaints if "Content Security Policy" in line]) == 2


def test_a_notebook_shows_a_page_in_a_frame_that_works(browser, tmp_path):
    made, path = confide.report(calibration(), title=HOSTILE), tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><meta charset=utf-8><h1>Notebook</h1>{made._repr_html_()}", encoding="utf-8")
    with Opened(browser, path) as opened:
        frame = opened.page.frame_locator("iframe")
        assert frame.locator("h1").inner_text() == HOSTILE
        assert frame.locator("svg.plot").count() == 3
        frame.locator("#epsilon").press("ArrowRight")
        assert frame.locator("output[for=epsilon]").inner_text() == "2"
        frame.locator("a[href='#cost']").first.click()
        assert -1 <= frame.locator("#cost").evaluate("one => one.getBoundingClientRect().top") < 100
        with opened.page.expect_download() as saved:
            frame.locator("#save").click()
        assert saved.value.path().read_text(encoding="utf-8") == calibration().to_json()
        assert opened.page.evaluate("getComputedStyle(document.querySelector('h1')).fontSize") == "32px"
        assert (opened.complaints, opened.requests) == ([], [])


LONG_NAME = "adenocarcinoma, epithelial, moderately differentiated, of the descending colon"


@pytest.mark.parametrize("width", [390, 1000])
def test_names_in_charts_are_whole(browser, tmp_path, width):
    classes, path = (*CLASSES[:3], LONG_NAME), tmp_path / "named.html"
    confide.report(calibration(), evaluation=evaluation(calibration(), classes)).save(path)
    with Opened(browser, path, width=width) as opened:
        chart = opened.page.locator(".class-coverage svg.plot")
        assert LONG_NAME in " ".join(chart.locator("text tspan, text:not(:has(tspan))").all_text_contents())
        assert "…" not in (chart.text_content() or "")
        assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        left = chart.evaluate("svg => svg.getBoundingClientRect().left")
        ends = chart.locator("text").evaluate_all("all => all.map((one) => one.getBoundingClientRect().left)")
        assert min(ends) >= left - 1


def test_hostile_names_are_shown_as_text(browser, pages):
    with Opened(browser, pages["report"]) as opened:
        opened.page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        assert HOSTILE in opened.text("#evaluation details")
        assert opened.page.locator("img").count() == 0
        assert opened.page.locator("script").count() == 6


POSITIONS = [(0, 0, 0), (1, 3, 3), (2, 2, 2), (3, 3, 4), (3, 4, 5), (2, 0, 5), (0, 4, 0)]


@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"neighbors": "replace_one"}, marks=pytest.mark.long),
        pytest.param({"delta": 0.05, "neighbors": "replace_one"}, marks=pytest.mark.long),
    ],
)
def test_numbers_on_the_page_are_those_of_the_library(browser, tmp_path, options):
    chosen = confide.plan(alpha=0.1, epsilon=1.0, n=1000, **options)
    path = tmp_path / "plan.html"
    confide.report(chosen).save(path)
    made = grid(chosen.request, 1000)
    with Opened(browser, path) as opened:
        for place in (made.chosen, *POSITIONS):
            for name, i in zip(("alpha", "epsilon", "records"), place, strict=True):
                opened.slide(name, i)
            alpha, epsilon, n = made.alphas[place[0]], made.epsilons[place[1]], made.records[place[2]]
            asked = confide.plan(alpha=alpha, epsilon=epsilon, n=n, candidates=chosen.request.candidates, **options)
            names = ("coverage", "excess", "chances", "most", "target", "plain", "gaps", "needed")
            shown = {name: opened.text(f"#{name}") for name in names}
            level = f"{float(100 * (1 - alpha)):g} %"
            assert shown["coverage"] == f"{100 * asked.expected_coverage:.2f} %, where {level} is asked for"
            assert shown["excess"].startswith(f"{asked.expected_excess:.1f} records more")
            assert shown["most"].startswith(f"{100 * asked.coverage_at_most:.2f} %")
            assert shown["needed"].startswith(f"about {asked.records_needed:,};")
            chances = [
                "below 0.1 %" if round(100 * p, 1) < 0.1 else f"{100 * p:.1f} %"
                for p in (asked.chance_of_all, asked.chance_beyond)
            ]
            assert shown["chances"] == f"{chances[0]} for +∞; {chances[1]} for +∞ or a threshold beyond all scores"
            if asked.mechanism is not None:
                assert f"within {round(asked.desert):,} ranks" in shown["gaps"]
            assert shown["plain"] == (f"{asked.nonprivate_rank:,}" if asked.nonprivate_rank <= n else "+∞")
            if asked.mechanism is None:
                assert shown["target"] == "none serves: the answer is +∞"
            else:
                assert float(shown["target"].split(",")[0]) == round(asked.target_rank, 2)
                assert ("above n" in shown["target"]) == (asked.target_rank > n)
            outputs = [opened.text(f"output[for={name}]") for name in ("alpha", "epsilon", "records")]
            assert outputs == [f"{float(alpha):g}", f"{epsilon:g}", f"{n:,}"]
        assert opened.complaints == []
        opened.page.click("#reset")
        assert opened.text("output[for=records]") == "1,000"


def test_the_tables_of_the_cost_charts_are_those_of_the_library(browser, pages):
    with Opened(browser, pages["plan"]) as opened:
        opened.slide("alpha", 1)
        opened.page.locator("#by-records summary").click()
        rows = opened.page.locator("#by-records tbody tr").all_inner_texts()
        chosen = confide.plan(alpha=0.1, epsilon=1.0, n=1000).request
        made = grid(chosen, 1000)
        assert len(rows) == len(made.records)
        for row, n in zip(rows, made.records, strict=True):
            asked = confide.plan(alpha=0.05, epsilon=1.0, n=n, candidates=chosen.candidates)
            alone = asked.nonprivate_rank / (n + 1) if asked.nonprivate_rank <= n else 1.0
            size, coverage, excess, plain = row.replace("\u00a0", " ").split("\t")
            assert size == f"{n:,}"
            assert coverage == f"{100 * asked.expected_coverage:.2f} %"
            assert excess == f"{asked.expected_excess:.1f}"
            assert plain == f"{100 * alone:.2f} %"


def test_the_slider_of_the_law_shows_the_law_of_that_many_records(browser, pages):
    released = calibration()
    with Opened(browser, pages["report"]) as opened:
        assert opened.text("output[for=law-n-0]") == "1,000"
        for i, law in enumerate(laws(released)):
            opened.slide("law-n-0", i)
            assert opened.text("output[for=law-n-0]") == f"{law.n:,}"
            label = opened.page.locator(".law svg.plot").get_attribute("aria-label")
            assert label.endswith(f"at least {100 * law.reached[1]:.2f}\u00a0%.")
            reached = released.conditional_coverage(0.05, law.n)
            assert law.reached[1] == pytest.approx(reached, abs=2e-7)
    assert len(laws(released)) == len(plan_laws(confide.plan(alpha=0.1, epsilon=1.0)))


def test_sliders_and_everything_else_work_by_keyboard(browser, pages):
    with Opened(browser, pages["report"]) as opened:
        page = opened.page
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        assert page.url.endswith("#main")
        page.focus("#epsilon")
        before = opened.text("#sentence")
        page.keyboard.press("ArrowRight")
        assert opened.text("output[for=epsilon]") == "2"
        assert page.get_attribute("#epsilon", "aria-valuetext") == "2"
        assert opened.text("#sentence") != before
        assert "ε = 2" in opened.text("#sentence")
        page.keyboard.press("Home")
        assert opened.text("output[for=epsilon]") == "0.2"
        page.focus("#reset")
        page.keyboard.press("Enter")
        assert opened.text("#sentence") == before
        visited = set()
        page.evaluate("document.activeElement.blur()")
        for _ in range(60):
            page.keyboard.press("Tab")
            visited.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
        assert {"epsilon", "records", "alpha", "reset", "law-n-0", "save", "SUMMARY", "A"} <= visited
        page.focus("details summary >> nth=0")
        page.keyboard.press("Enter")
        assert page.locator("details").first.evaluate("one => one.open")


@pytest.mark.parametrize(
    ("kind", "scheme"),
    [
        ("report", "light"),
        ("report", "dark"),
        ("federated", "dark"),
        *(pytest.param(kind, scheme, marks=pytest.mark.long) for kind, scheme in MORE),
    ],
)
def test_axe_finds_nothing(browser, pages, kind, scheme):
    sync = pytest.importorskip("axe_playwright_python.sync_playwright")
    with Opened(browser, pages[kind], scheme=scheme) as opened:
        opened.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        found = sync.Axe().run(opened.page)
        wrong = [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found.response["violations"]]
        assert wrong == []
        assert len(found.response["passes"]) > 20


@pytest.mark.parametrize(("kind", "width"), [*((kind, 360) for kind in KINDS[:3]), ("report", 1600), *LONG_WIDTHS])
def test_no_wider_than_the_screen(browser, pages, kind, width):
    with Opened(browser, pages[kind], width=width) as opened:
        opened.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
        wide = opened.page.evaluate(
            """() => [...document.querySelectorAll("body *")].filter((one) => !one.closest(".scroll, pre, svg, .skip")
                && one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML.slice(0, 80))"""
        )
        assert wide == []


def test_charts_follow_the_width_of_the_window(browser, pages):
    with Opened(browser, pages["plan"], width=1100) as opened:
        chart = opened.page.locator("#by-records svg.plot")
        wide = float(chart.get_attribute("width"))
        opened.page.set_viewport_size({"width": 360, "height": 700})
        for _ in range(100):
            if float(chart.get_attribute("width")) < wide:
                break
            opened.page.wait_for_timeout(50)
        assert float(chart.get_attribute("width")) <= 330 < wide


def test_print_leaves_the_controls_out_and_is_light(browser, pages):
    with Opened(browser, pages["report"], scheme="dark") as opened:
        page = opened.page
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 24, 30)"
        page.emulate_media(media="print")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
        for hidden in ("nav", "fieldset", ".control", "#save", ".skip", "summary"):
            assert not page.locator(hidden).first.is_visible(), hidden
        for kept in ("h1", "#sentence", "#by-epsilon svg", ".law svg", ".command", ".warning"):
            assert page.locator(kept).first.is_visible(), kept
        assert page.pdf(format="A4").startswith(b"%PDF")


@pytest.mark.parametrize("kind", ["report", "federated"])
def test_the_certificate_can_be_saved_and_the_command_on_the_page_checks_it(browser, pages, kind, tmp_path):
    with Opened(browser, pages[kind], accept_downloads=True) as opened:
        with opened.page.expect_download() as waiting:
            opened.page.click("#save")
        saved = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(saved)
        command, digest = opened.text("#making .command").split(), opened.text(".hash")
        assert opened.complaints == []
    assert command == ["confide", "show", saved.name]
    text = saved.read_text(encoding="utf-8")
    assert confide.Calibration.from_json(text).to_json() == text
    assert hashlib.sha256(saved.read_bytes()).hexdigest() == digest
    done = subprocess.run([sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "promise: coverage at least 0.9" in done.stdout
    altered = json.loads(text)
    altered["guarantee"]["coverage"] = 0.99
    saved.write_text(json.dumps(altered), encoding="utf-8")
    refused = subprocess.run([sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True)
    assert refused.returncode == 3
    assert re.search("altered|checksum", refused.stderr)


def test_without_scripts_the_text_and_the_tables_are_there(browser, pages):
    with Opened(browser, pages["report"], java_script_enabled=False) as opened:
        assert opened.page.locator("svg.plot").count() == 0
        assert not opened.page.locator("#explore").is_visible()
        assert "confide plan" in opened.page.locator("#cost").inner_text()
        assert opened.page.locator("#meaning .example").is_visible()
        assert opened.page.locator(".law table").count() == 1
