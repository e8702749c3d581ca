"""A calibration from labels that were randomised before anybody saw them.

It promises coverage of the true labels. Its loss is that of each label, spent where the label was given: calibrating
adds nothing. Features and model outputs are not protected.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from confide.errors import InputError
from confide.mechanisms import LabelPrivacy, NoisyLabels
from confide.releases.calibration import Calibration
from confide.selection import MOST_LABEL_LOSS
from confide.support import LEAST_LOSS, positive_number

MOST_CLASSES = 1_000_000


@dataclass(frozen=True, repr=False)
class NoisyLabelCalibration(Calibration):
    """A calibration from randomised labels; a `Calibration` in every other respect.

    Its `privacy` is a `confide.mechanisms.LabelPrivacy`, and `epsilon` the loss of one label.

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
            raise InputError("mechanism and privacy must be those of randomised labels")


def read_label_epsilon(name: str, value: Any) -> float:
    """The loss of a label, in the range in which labels can be randomised.

    Examples
    --------
    >>> read_label_epsilon("epsilon", 1)
    1.0
    """
    found = positive_number(name, value)
    if not LEAST_LOSS <= found <= MOST_LABEL_LOSS:
        raise InputError(f"{name} must lie between {LEAST_LOSS:g} and {MOST_LABEL_LOSS:g}; found {found:g}")
    return found
