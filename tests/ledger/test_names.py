"""Names of data sets: spellings of one name, and warnings of similar names."""

import pytest

from confide import BudgetError, Ledger, SimilarNameWarning
from confide.ledger import Cost
from tests.refused import refused

pytestmark = pytest.mark.filterwarnings("ignore::confide.CoverageWarning")  # +inf is drawn now and then

COST = Cost(1.0, "add_remove", "slopes")
COMPOSED, DECOMPOSED, CAPITAL = "café", "cafe\u0301", "Café"


@pytest.fixture
def ledger(place):
    return Ledger(place, limit=2.5)


def test_unicode_forms_and_case_are_one_name(ledger):
    for k, name in enumerate((COMPOSED, DECOMPOSED)):
        ledger.charge(name, COST, f"{k}" * 64)
    with refused(BudgetError, "dataset"):
        ledger.charge(CAPITAL.upper(), COST, "2" * 64)
    assert list(ledger.accounts()) == [COMPOSED]
    assert ledger.account(CAPITAL).spent().epsilon == 2.0
    assert ledger.relation(DECOMPOSED) == "add_remove"
    assert ledger.set_limit(CAPITAL, 9.0).dataset == COMPOSED
    assert list(ledger.accounts()) == [COMPOSED]


@pytest.mark.slow
def test_spellings_ask_the_same(ledger):
    import numpy as np

    import confide

    scores = np.linspace(0, 1, 300)
    first = confide.calibrate(scores, 0.1, 1.0, ledger=ledger, dataset=COMPOSED)
    with pytest.warns(confide.EarlierReleaseWarning):
        assert confide.calibrate(scores, 0.1, 1.0, ledger=ledger, dataset=CAPITAL) == first


@pytest.mark.parametrize(
    ("known", "new"),
    [
        ("patients 2024", "p\u0430tients 2024"),  # a Cyrillic letter
        ("OPERA", "\u039fPERA"),  # a Greek one
        ("patients 2024", "patients-2024"),
        ("ward 10", "ward lO"),
        ("caf\u00e9", "cafe"),
        ("clinic", "\uff43linic"),  # a wide letter
        ("patients", "patient"),  # a letter too few
        ("north ward", "northh ward"),
        ("patients 2024", "pateints 2024"),  # two letters exchanged
        ("Patients-2024", "patjents 2024"),
    ],
)
def test_similar_names_are_pointed_out_once(ledger, known, new):
    ledger.charge(known, COST, "0" * 64)
    with pytest.warns(SimilarNameWarning) as said:
        ledger.charge(new, COST, "1" * 64)
    assert said[0].filename == __file__
    assert repr(known) in str(said[0].message)
    ledger.charge(new, COST, "2" * 64)  # known by now
    assert list(ledger.accounts()) == [known, new]
