"""The command `show`, the page and the model card of a release state the same facts, each of them once."""

import pytest

import confide
from confide.cli.run import main
from confide.core import Release, about_facts, load_release, making_section
from confide.mechanisms import loss_facts
from tests.kept import path_of
from tests.reports.test_pages import page_of, words_of

pytestmark = pytest.mark.xdist_group("released")

EVERYDAY = ["renewed", "federated"]
OTHERS = ["groups", "levels", "risk", "pps", "class-shares", "counts-calibration", "federated-levels"]


def facts_stated(release: Release) -> list[tuple[str, str]]:
    """All facts that a reader finds in every form."""
    made = making_section(release)
    return [
        *made.facts,
        *(fact for part in made.parts for fact in part.facts),
        *((name, text) for name, text in about_facts(release) if text),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*EVERYDAY, *OTHERS])
def test_show_page_and_card_state_the_same_facts(name, capsys):
    release = load_release(path_of(name))
    assert main(["show", str(path_of(name))]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    page, card = words_of(page_of(release)), confide.card(release).text.replace("\\", "")
    facts = facts_stated(release)
    assert facts
    for fact, text in facts:
        one = f"{fact} {' '.join(text.split())}"
        assert one in shown or f"{fact}: {text}" in shown  # the description above the other facts has it
        assert one in page, one
        assert f"- **{fact}**: {text}" in card, fact
    for unit, loss in loss_facts(release.privacy, release.privacy.records_per_person):
        assert f"{unit} {loss}" in page
    for unit, loss in loss_facts(release.privacy):
        assert f"{unit} {loss}" in shown
