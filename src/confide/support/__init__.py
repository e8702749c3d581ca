"""Helpers that every subpackage uses: argument checks, exact numbers, names, JSON, files and texts.

checks.py         scalar arguments, each validated; exact levels; floats rounded in a given direction
names.py          the rule for names of classes and groups
forms.py          strict JSON documents: a kind, a schema, fields and a checksum
file_kinds.py     kinds of files, by their first bytes
files.py          permission to overwrite files, atomic writing, reading, locks
object_stores.py  S3, Google Cloud Storage and Azure with the interface of files
installed.py      optional packages, and versions of libraries
events.py         what a program hears: log events, and the place that warnings refer to
shown.py          texts, addresses without passwords, numbers and tables for people
section.py        descriptions of values, and their renderings
axes.py           common parts of all plots
"""

from confide.support.axes import (
    AS_PROMISED,
    BAD,
    BELOW,
    FILL,
    INK,
    MARKERS,
    PROMISE,
    axes_of,
    labelled,
    legend,
    named_ticks,
    promise_line,
)
from confide.support.checks import (
    LEAST_LOSS,
    MAX_DENOMINATOR,
    MOST_CANDIDATES,
    MOST_LOSS,
    MOST_PER_PERSON,
    MOST_RECORDS,
    MOST_WEIGHT,
    SCHEMA,
    Level,
    as_number,
    bisect,
    bisect_upwards,
    ceil_to,
    check_types,
    check_unknown_arguments,
    exact_level,
    float_above,
    float_below,
    fraction_of,
    one_of,
    positive_integer,
    positive_number,
    privacy_loss,
    raise_for_rows,
    require,
    scale_for,
    several,
    takes_alpha,
)
from confide.support.events import DEBUG, INFO, caller_stacklevel, handled, listening, log_event
from confide.support.file_kinds import (
    LEDGER_ID,
    SHOWN_ELSEWHERE,
    WRITTEN_BY,
    FileKind,
    foreign_file,
    kind_named,
    kind_of,
    kind_stated,
)
from confide.support.files import (
    OutputExistsError,
    card_or_page,
    check_new,
    check_not_input,
    has_locks,
    locked,
    new_file,
    read_as,
    read_text,
    refuse_other_than_html,
    same_place,
    to_disk,
    write_text,
)
from confide.support.forms import (
    UNUSABLE,
    Form,
    check_schema,
    checksum,
    json_number,
    parse_document,
    parse_object,
    refused_content,
)
from confide.support.installed import check_version_texts, library_versions, needs_extra, require_extra, versions_text
from confide.support.names import (
    Classes,
    Name,
    as_integer,
    canonical_name,
    check_column_order,
    check_names,
    class_count,
    column_order,
    common_length,
    first_names,
    is_numbering,
    known_positions,
    name_text,
    order_of,
    places,
    plain_names,
    positions,
    public_classes,
    refuse_first_of_pair,
)
from confide.support.object_stores import FileLocation, ObjectPath, ObjectReader, as_place, names_object, store_reason
from confide.support.section import Described, Facts, Section, Table, describe, to_html, to_markdown, to_text
from confide.support.shown import (
    aligned,
    chance_text,
    decimal_text,
    escape_json,
    escape_line,
    escape_text,
    has_password,
    names_server,
    short_number,
    shown_address,
)
