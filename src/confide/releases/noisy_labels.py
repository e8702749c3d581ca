"""Randomised labels: their public statement, and calibrations from them.

A calibration with such labels uses only their privacy loss and their classes. It guarantees coverage of the true
labels. Its privacy loss is that of each label, spent where the label was randomised: calibrating adds nothing. Features
and model outputs are not protected.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from confide.errors import FormatError, InputError
from confide.mechanisms import LabelPrivacy, NoisyLabels
from confide.releases.calibration import Calibration
from confide.releases.documents import Kind, common_form
from confide.releases.words import CLASSES, class_list
from confide.selection import MOST_LABEL_LOSS, stay_probability
from confide.support import (
    LEAST_LOSS,
    MOST_RECORDS,
    VERSIONS,
    Classes,
    Described,
    Fields,
    Section,
    positive_integer,
    positive_number,
    public_classes,
    read_as,
    shapes,
    write_text,
)

MOST_CLASSES = 1_000_000


@dataclass(frozen=True, repr=False)
class NoisyLabelCalibration(Calibration):
    """A calibration from randomised labels; a `Calibration` in every other respect.

    Its `privacy` is a `confide.mechanisms.LabelPrivacy`, and `epsilon` the privacy loss of one label.

    Examples
    --------
    >>> import confide, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 3000)
    >>> noisy = confide.randomise_labels((p.cumsum(axis=1) < rng.random((3000, 1))).sum(axis=1), 3, epsilon=2.0)
    >>> released = confide.calibrate_noisy_labels(p, noisy, alpha=0.1)
    >>> print(released.privacy.brief)
    epsilon 2 (of each label, local; features not protected)
    >>> released == confide.Calibration.from_json(released.to_json())
    True
    """

    privacy: LabelPrivacy
    mechanism: NoisyLabels
    recipe: Mapping[str, Any] = field(hash=False)
    versions: Mapping[str, str] = field(hash=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.mechanism, NoisyLabels) or not isinstance(self.privacy, LabelPrivacy):
            raise InputError("mechanism", "mechanism and privacy must be those of randomised labels")


def read_label_epsilon(name: str, value: Any) -> float:
    """The privacy loss of a label, in the range in which labels can be randomised.

    Examples
    --------
    >>> read_label_epsilon("epsilon", 1)
    1.0
    """
    epsilon = positive_number(name, value)
    if not LEAST_LOSS <= epsilon <= MOST_LABEL_LOSS:
        raise InputError(name, f"must lie between {LEAST_LOSS:g} and {MOST_LABEL_LOSS:g}", got=f"{epsilon:g}")
    return epsilon


_HEAD = 100


@dataclass(frozen=True)
class LabelStatement(Described):
    """The public statement of a randomisation of labels.

    Parameters
    ----------
    epsilon
        The privacy loss of one label.
    classes
        The class names among which labels were randomised, or their number.
    n
        The number of labels.
    versions
        The libraries that drew them; empty if the file does not state them.

    Examples
    --------
    >>> statement = LabelStatement(1.0, ("no", "yes"), 500)
    >>> print(statement)
    500 labels, randomised among 2: no, yes with epsilon 1
    each is the true one with probability 0.731059, and one of the others with the rest
    features and all other columns: as they were, not protected
    >>> statement == LabelStatement.from_json(statement.to_json())
    True
    """

    mechanism: ClassVar[str] = "randomised-response"

    epsilon: float
    classes: Classes
    n: int
    versions: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "versions", MappingProxyType(dict(self.versions)))
        object.__setattr__(self, "epsilon", read_label_epsilon("epsilon", self.epsilon))
        object.__setattr__(self, "classes", public_classes("classes", self.classes))
        positive_integer("n", self.n, most=MOST_RECORDS)
        positive_integer("the number of classes less one", self.width - 1, most=MOST_CLASSES)

    @property
    def width(self) -> int:
        """K, the number of classes."""
        return self.classes if isinstance(self.classes, int) else len(self.classes)

    @property
    def probability_unchanged(self) -> float:
        """The probability that a label is the true one."""
        return stay_probability(self.width, self.epsilon)

    def to_json(self) -> str:
        """The statement as a JSON document with a schema version and a checksum."""
        return _KIND.write(self)

    @classmethod
    def from_json(cls, text: str) -> "LabelStatement":
        """Read the output of `to_json`; raises `FormatError` for everything else."""
        if f'"kind": "{_KIND.form.kind}"' not in text[:_HEAD]:
            raise FormatError("file", "must be a statement about labels, as `confide randomise-labels` writes it")
        statement: LabelStatement = _KIND.read_text(text)
        return statement

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write `to_json()` to a file, atomically."""
        write_text(path, self.to_json(), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> "LabelStatement":
        """Read a file written by `save`."""
        return read_as(path, cls.from_json)

    def _section(self) -> Section:
        randomised = f"{self.n} labels, randomised among {class_list(self.classes)} with epsilon {self.epsilon:g}"
        unchanged = f"{self.probability_unchanged:.6g}"
        each = f"each is the true one with probability {unchanged}, and one of the others with the rest"
        kept = (("features and all other columns", "as they were, not protected"),)
        return Section("Statement on randomised labels", f"{randomised}\n{each}", kept)


_SHAPE: shapes.Shape = {
    "mechanism": shapes.choice(LabelStatement.mechanism),
    "label_epsilon": replace(shapes.number(), attribute="epsilon"),
    "classes": CLASSES,
    "n": shapes.integer(),
    "versions": shapes.optional(VERSIONS),
}


def _read(fields: Fields) -> LabelStatement:
    values = shapes.read_shape(fields, _SHAPE)
    return LabelStatement(values["label_epsilon"], values["classes"], values["n"], values["versions"] or {})


def _fields(statement: LabelStatement) -> dict[str, Any]:
    return shapes.write_shape(statement, _SHAPE)


_KIND = Kind(common_form("confide.labelling", "labels", later=(frozenset({"versions"}),)), _fields, _read)
