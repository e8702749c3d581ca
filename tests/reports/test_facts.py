"""The command `show` and the page of a release state the same facts; the model card is the page."""

import pytest

import confide
from confide.cli.run import main
from confide.core import about_facts, load_release, making_section
from confide.mechanisms import loss_facts
from tests.kept import path_of
from tests.reports.test_pages import page_of, words_of

pytestmark = pytest.mark.xdist_group("released")
NAMES = ("renewed", "federated", "groups", "levels", "risk", "pps", "class-shares", "counts-calibration", "sides")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_show_page_and_card_state_the_same_facts(name, capsys):
    release = load_release(path_of(name))
    assert main(["show", str(path_of(name))]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    page, card = words_of(page_of(release)), confide.card(release).text.replace("\\", "")
    made = making_section(release)
    stated = [fact for fact in about_facts(release) if fact[1]]
    for fact, text in (*made.facts, *(fact for part in made.parts for fact in part.facts), *stated):
        line = f"{fact} {' '.join(text.split())}"
        assert line in shown or f"{fact}: {text}" in shown  # the description above the other facts has it
        assert line in page
        assert f"- **{fact}**: {text}" in card
    for unit, loss in loss_facts(release.privacy):
        assert f"{unit} {loss}" in shown
        assert f"{unit} {loss}" in page
