"""Files of evaluations and watches, changed by someone who knows the format: refused, or read as they state it."""

import json
import re

import pytest

from confide.core import Document
from confide.errors import ConfideError
from tests.builders import slow
from tests.changed import changes
from tests.files import signed
from tests.kept import content_of
from tests.reports.pages import several

EVALUATION = {"query.partitions", "query.records_per_person", "query.statements", "counts", "sums", "examples"}
WATCH = {
    *("epsilon", "batch", "looks", "records_per_person", "promised", "promised.name", "reference"),
    *("reference.counts", "reference.epsilon", "reference.noises"),
    *("correction", "correction.alpha", "correction.delay", "correction.scales.threshold"),
}
STATED = {
    "evaluation": {
        *("query.epsilon", "query.partitions.names", "query.partitions.promised", "versions", *EVALUATION),
        *("examples.members", "examples.truth", "examples.group"),
    },
    "watch": {"looks", "looks.name", "looks.counts", *(f"settings.{name}" for name in WATCH)},
    "corrected": set(),
}
"""Fields that their writer may state otherwise: the others follow from them."""


def content(name):
    """A kept file, or an evaluation of several parts."""
    return json.loads(several()[name][1].to_json()) if name in several() else content_of(name)


def plain(text):
    return json.dumps(json.loads(text), sort_keys=True)


@pytest.mark.parametrize(
    "name",
    [
        *("sides", "intervals", "private-sets", "watch", "watch-sizes", "watch-correction", "watch-alarm"),
        *slow(["levels", "groups", "classes", "lengths", "sets", "corrected"]),
    ],
)
def test_whatever_is_changed_is_refused_or_read_as_stated(name):
    """A changed file with its own checksum is refused, or the field may be so; and nothing is read as another value."""
    document = content(name)
    kind, read = document["kind"].removeprefix("confide/"), set()
    assert plain(Document.from_json(signed(document)).to_json()) == plain(signed(document))
    for path, changed in changes(document, first=3):
        if not isinstance(changed, dict) or path == ("sha256",):
            continue
        try:
            value = Document.from_json(signed(changed))
        except ConfideError:
            continue
        read.add(re.sub(r"\.\d+", "", ".".join(map(str, path))))
        assert plain(value.to_json()) == plain(signed(changed))
    assert {re.sub(r"^versions\..*", "versions", one) for one in read} <= STATED[kind]
    assert kind != "evaluation" or ("counts" in read) == (len(document["counts"]) == 1)  # several tables must add up
