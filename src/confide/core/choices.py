"""The public choices of a threshold that all functions of the API take."""

from typing import TypedDict

from confide.mechanisms import MechanismName, Neighbors
from confide.support import Level


class Choices(TypedDict, total=False):
    """Public choices of a threshold, in addition to its level, epsilon and candidates.

    Parameters
    ----------
    rho
        zCDP loss per person, instead of epsilon: the mechanism has the largest epsilon that it allows
        (docs/theory.md, Lemma P3).
    neighbors
        The adjacency: `"add_remove"` (n stays secret) or `"replace_one"` (n is public).
    n_min
        Public lower bound on the secret number of records (`add_remove` only). With `delta`, and for published methods,
        the coverage guarantee holds for every n >= n_min. The default guarantee holds for every n.
    delta
        Guarantee "coverage at least 1-alpha with probability 1-delta over the calibration data" instead of marginal
        coverage; in (0, 1).
    records_per_person
        Public bound on the number of records of one person; each record then gets epsilon/records_per_person.
    mechanism
        `"slopes"` (default), or the name of a published method, for comparisons: `"pps"`, `"pps-laplace"`,
        `"noisy-histogram"`, `"opendp-quantile"` (no coverage guarantee) or `"none"` (**not private**: split
        conformal prediction; leave out epsilon). See docs/methods.md.
    """

    rho: float | None
    neighbors: Neighbors
    n_min: int
    delta: Level | None
    records_per_person: int
    mechanism: MechanismName


CHOICES = tuple(Choices.__annotations__)
