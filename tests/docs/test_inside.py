"""The steps of a release are the same in the code, in the document and in its picture, and happen in this order."""

import inspect
import re
from dataclasses import dataclass, field

import numpy as np
import pytest

from confide.core import Request, Scores, release
from confide.core.account import Account
from tests.docs.blocks import ROOT

VERBS = ["prepare", "check", "read", "compare", "charge", "draw", "store"]


def test_code_document_and_picture_have_the_same_steps():
    code = re.findall(r"^ {4,8}# (\w+)", inspect.getsource(release), re.MULTILINE)
    document = re.findall(r"^\d\. \*\*(\w+)\*\*", (ROOT / "docs/inside.md").read_text(encoding="utf-8"), re.MULTILINE)
    picture = re.findall(r">\d  (\w+)", (ROOT / "docs/images/inside.svg").read_text(encoding="utf-8"))
    for named in (code, document, picture):
        assert [verb.lower() for verb in named] == VERBS


@dataclass(frozen=True)
class Noted(Account):
    """An account that notes what it is asked for, and pays for itself."""

    done: list = field(default_factory=list)
    has_earlier: bool = False
    has_ledger = False

    def account(self, request, bills):
        self.done.append("prepare")
        return self

    def check_limit(self):
        self.done.append("check")

    def earlier_releases(self, marks):
        self.done.append("compare")
        return {}

    def charge(self, without=()):
        self.done.append("charge")
        return dict.fromkeys(self.request.draws, "token")

    def store(self, tokens, drawn, marks):
        self.done.append("store")


@pytest.mark.parametrize(
    ("visible", "has_earlier", "order"),
    [
        (False, False, VERBS),
        (True, True, VERBS),  # an earlier release may be the answer, so that the records are compared first
        (True, False, ["prepare", "check", "charge", "read", "compare", "draw", "store"]),
    ],
)
def test_steps_happen_in_this_order(draw_with, visible, has_earlier, order):
    request = Request(alpha=0.1, epsilon=1.0, score="lac")
    account = Noted(request, {}, has_earlier=has_earlier)

    class Records(Scores):
        reading_is_visible = visible

        def count(self, request, candidates):
            account.done.append("read")
            return super().count(request, candidates)

    draw_with(noisy_number=lambda n, *rest: account.done.append("draw") or n)
    records = Records({None: np.linspace(0, 1, 1000)})
    release(records, request, account)
    assert account.done == order
