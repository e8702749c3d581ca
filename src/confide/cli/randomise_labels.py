"""`confide randomise-labels`: the tool of whoever keeps true labels."""

import json
from pathlib import Path
from typing import Annotated

from confide.cli import options as o
from confide.cli.budget import LedgerOptions
from confide.cli.output import check_output, emit, heard, say, warn
from confide.cli.parameters import command
from confide.errors import EarlierReleaseWarning
from confide.support import Kind, OutputExistsError, write_text
from confide.tables import file_format, randomise_table


@command
def randomise_labels(
    source: o.Source,
    *,
    label: Annotated[str, o.columns("COLUMN", "The true labels, which are randomised.")],
    classes: Annotated[str, o.columns("A,B,C", "All class names: a public list, not taken from the labels.")],
    epsilon: Annotated[float, o.privacy("NUMBER", "Privacy loss of each label.")],
    keep: Annotated[
        list[str] | None, o.output("COLUMN,...", "Other columns to keep; may be repeated (default: all).")
    ] = None,
    out: Annotated[Path, o.output("FILE", "A new table; FILE.labels.json beside it says how labels were randomised.")],
    budget: LedgerOptions,
    as_json: o.AsJson = False,
) -> None:
    r"""Randomise labels before they leave, one by one.

    Each label stays with probability e^epsilon/(e^epsilon + K - 1), and else
    becomes one of the K - 1 others: whoever sees the new table learns little
    of any one label. Other columns are NOT protected, and stay as they are.
    Every run costs its epsilon anew, unless --ledger knows it; what is
    computed from the new table costs nothing more:
    `confide calibrate --label-epsilon FILE.labels.json`.

    Example:

      confide randomise-labels labels.csv --label label --classes no,yes \
        --epsilon 1 --out noisy.csv
    """
    beside = Path(f"{out}.labels.json")
    _ = file_format(out)  # refuses unknown endings
    for path, kind in ((out, Kind.TABLE), (beside, Kind.LABELLING)):
        check_output(path, kind, *source.files, *budget.files, force=False)
    if beside.exists():
        raise OutputExistsError(f"output {str(beside)!r} exists already; choose another name")
    receipt = budget.receipt()
    with heard() as caught, receipt, source.opened(source.file, "randomising") as (opened, progress):
        statement = randomise_table(
            opened,
            label,
            o.split(classes),
            epsilon,
            out,
            keep=None if keep is None else [name for text in keep for name in o.split(text)],
            skip_incomplete=source.skip_incomplete,
            progress=progress,
            **budget.account(source.file),
        )
    write_text(beside, statement.to_json(), overwrite=False)
    earlier = [one.message for one in caught if issubclass(one.category, EarlierReleaseWarning)]
    if as_json:
        told = {"out": str(out), "statement": json.loads(statement.to_json()), "saved": str(beside)}
        emit({**told, "earlier": [time for one in earlier for time in one.made], "warnings": [], **receipt.fields()})  # type: ignore[union-attr]
        return
    for one in earlier:
        warn(str(one))
    say(str(statement))
    say(receipt.text())
    say(f"saved: {out}, {beside}")
