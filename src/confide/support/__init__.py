"""What every room needs and nobody comes to see: in come values and texts, out go exact numbers, or a clear refusal.

checks.py       scalar arguments, each returned or refused; how much of everything there may be
names.py        the one rule for names of classes and groups
rationals.py    levels as exact fractions, floats rounded to a side
strict_json.py  the one reader of JSON: texts to objects, objects field by field
shapes.py       shapes of JSON objects: one table that reads and writes their fields
files.py        files written whole or not at all
locks.py        one process at a time
file_kinds.py   what a file is, and what may be written over it
extras.py       optional packages
events.py       what happens, for those who listen
addresses.py    addresses of servers, shown without passwords
object_stores.py  S3, Google Cloud Storage, Azure, and their objects, asked as files are
callers.py      where warnings point
foreign_text.py what others wrote, harmless for screens
text_tables.py  numbers for people, tables for screens
versions.py     the versions that something was made with
axes.py         what all pictures have in common
shown.py        values that show themselves: in one line, and in notebooks as a table
"""

from confide.support import shapes
from confide.support.addresses import names_server, shown_address
from confide.support.axes import BAD, FILL, INK, PROMISE, axes_of, labelled, legend, named_ticks, promise_line
from confide.support.callers import outside
from confide.support.checks import (
    LEAST_LOSS,
    MOST_CANDIDATES,
    MOST_LOSS,
    MOST_PER_PERSON,
    MOST_RECORDS,
    MOST_WEIGHT,
    as_number,
    one_of,
    positive_integer,
    positive_number,
    privacy_loss,
    refuse_marked,
    refuse_unknown,
    several,
)
from confide.support.events import DEBUG, INFO, listening, tell
from confide.support.extras import needs_extra
from confide.support.file_kinds import (
    LEDGER_ID,
    SHOWN_ELSEWHERE,
    Kind,
    kind_named,
    kind_of,
    mistaken,
    refuse_input,
    refuse_other_than_html,
    same_place,
)
from confide.support.files import OutputExistsError, new_file, read_as, read_text, refuse_existing, to_disk, write_text
from confide.support.foreign_text import harmless, harmless_json, one_line
from confide.support.locks import has_locks, locked
from confide.support.names import (
    Classes,
    Name,
    as_integer,
    canonical,
    check_names,
    column_order,
    known_positions,
    only_count,
    order_of,
    places,
    public_classes,
    refuse_first_of_pair,
    refuse_turned,
)
from confide.support.object_stores import (
    Address,
    ObjectPath,
    Place,
    as_place,
    names_object,
    of_store,
    store_words,
)
from confide.support.rationals import Level, ceil_to, exact_level, float_above, float_below, fraction_of
from confide.support.shown import Shown, html_lines, html_table
from confide.support.strict_json import Fields, parse_object, read_fraction
from confide.support.text_tables import aligned, decimal_text
from confide.support.versions import VERSIONS, check_versions, library_versions, optional_versions, versions_text

__all__ = [
    "BAD", "DEBUG", "FILL", "INFO", "INK", "LEAST_LOSS", "LEDGER_ID", "MOST_CANDIDATES",
    "MOST_LOSS", "MOST_PER_PERSON", "MOST_RECORDS", "MOST_WEIGHT", "PROMISE", "SHOWN_ELSEWHERE", "VERSIONS", "Address",
    "Classes", "Fields", "Kind", "Level", "Name", "ObjectPath", "OutputExistsError", "Place",
    "Shown", "aligned", "as_integer", "as_number", "as_place", "axes_of", "canonical", "ceil_to", "check_names",
    "check_versions", "column_order", "decimal_text", "exact_level", "float_above", "float_below",
    "fraction_of", "harmless", "harmless_json", "has_locks", "html_lines", "html_table", "kind_named", "kind_of",
    "known_positions", "labelled", "legend", "library_versions", "listening", "locked", "mistaken", "named_ticks",
    "names_object", "names_server", "needs_extra", "new_file", "of_store", "one_line", "one_of",
    "only_count", "optional_versions", "order_of", "outside", "parse_object", "places", "positive_integer",
    "positive_number", "privacy_loss", "promise_line", "public_classes", "read_as", "read_fraction", "read_text",
    "refuse_existing", "refuse_first_of_pair", "refuse_input", "refuse_marked", "refuse_other_than_html",
    "refuse_turned", "refuse_unknown", "same_place", "several", "shapes", "shown_address", "store_words",
    "tell", "to_disk", "versions_text", "write_text",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
