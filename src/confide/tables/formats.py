"""File formats, told by the ending of a name."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from confide.errors import InputError
from confide.support import Place

Kind: TypeAlias = Literal["parquet", "csv", "arrow"]


@dataclass(frozen=True)
class Format:
    """A file format.

    Parameters
    ----------
    kind
        `parquet`, `csv` or `arrow`.
    delimiter
        Between the cells of a CSV file.
    compressed
        Whether a CSV file is packed by gzip.
    """

    kind: Kind
    delimiter: str = ","
    compressed: bool = False

    @property
    def in_words(self) -> str:
        """The format's name with its article."""
        return {"parquet": "a Parquet file", "csv": "a CSV file", "arrow": "an Arrow (IPC) or Feather file"}[self.kind]


ENDINGS: dict[str, Format] = {
    ".parquet": Format("parquet"),
    ".pq": Format("parquet"),
    ".csv": Format("csv"),
    ".tsv": Format("csv", "\t"),
    ".csv.gz": Format("csv", ",", True),
    ".tsv.gz": Format("csv", "\t", True),
    ".arrow": Format("arrow"),
    ".feather": Format("arrow"),
    ".ipc": Format("arrow"),
}


def ending_of(name: str | Place) -> str | None:
    """The known ending of a name; None of any other.

    Examples
    --------
    >>> ending_of("scores.CSV.gz"), ending_of("scores")
    ('.csv.gz', None)
    """
    lower = str(name).lower()
    return next((ending for ending in ENDINGS if lower.endswith(ending)), None)


def format_of(name: str | Place) -> Format | None:
    """The format that the ending of a name stands for; None for any other ending.

    Examples
    --------
    >>> format_of("scores.Parquet").kind, format_of("scores.csv.gz").compressed, format_of("scores")
    ('parquet', True, None)
    """
    ending = ending_of(name)
    return None if ending is None else ENDINGS[ending]


_SPREADSHEET = "; in Excel: Save as, CSV UTF-8"
_REMEDIES = {
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls"), _SPREADSHEET),
    ".ods": "; in LibreOffice: Save as, Text CSV, UTF-8",
    ".txt": "; a text table may be renamed: .csv, or .tsv where tabs separate values",
    ".dat": "; a text table may be renamed: .csv, or .tsv where tabs separate values",
}


def file_format(path: Place, *, to_read: bool = False) -> Format:
    """The format of a file.

    Raises
    ------
    InputError
        If its ending is not known; of a file `to_read` with what makes it one that is.
    """
    found = format_of(path)
    if found is None:
        remedy = _REMEDIES.get(path.suffix.lower(), "") if to_read else ""
        raise InputError(
            f"file {str(path)!r} must end in one of {', '.join(ENDINGS)}; found {path.suffix or 'no extension'!r}"
            f"{remedy}"
        )
    return found
