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


def format_of(name: str | Place) -> Format | None:
    """The format that the ending of a name stands for; None for any other ending.

    Examples
    --------
    >>> format_of("scores.Parquet").kind, format_of("scores.csv.gz").compressed, format_of("scores")
    ('parquet', True, None)
    """
    lower = str(name).lower()
    return next((ENDINGS[ending] for ending in ENDINGS if lower.endswith(ending)), None)


def file_format(path: Place) -> Format:
    """The format of a file.

    Raises
    ------
    InputError
        If its ending is not known.
    """
    found = format_of(path)
    if found is None:
        raise InputError(
            f"file {str(path)!r} must end in one of {', '.join(ENDINGS)}; found {path.suffix or 'no extension'!r}"
        )
    return found
