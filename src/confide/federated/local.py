"""A silo's own threshold after a common release: `local`, with a guarantee for new records of this silo alone."""

from typing import Any, Unpack

from numpy.typing import ArrayLike

from confide.candidates import AnyCandidates
from confide.core import Options, Release, calibrate
from confide.errors import InputTypeError
from confide.federated.calibration import FederatedRelease, FederatedThreshold


def local(
    released: FederatedRelease,
    scores: ArrayLike,
    epsilon: float,
    *,
    candidates: AnyCandidates = None,
    **options: Unpack[Options],
) -> Release:
    """Calibrate a silo's own threshold by the request of the common one.

    Level, delta, score and classes are those of the plan, and so are public candidates or a unit that it states. The
    guarantee is for new records of this silo, and holds however unlike the other silos are. It is a release of one
    owner, and its privacy loss adds up with that of the silo's answer for people who are in both.

    Parameters
    ----------
    released
        The common release. Of several thresholds select one first: `released.alone(key)`.
    scores
        The silo's scores, shape (n,).
    epsilon
        The privacy loss.
    candidates
        Other candidates. `Candidates.around(released.threshold)` is allowed only for records that did **not** answer
        the plan, because the guarantee needs candidates that do not depend on the calibrated records.
    **options
        Other arguments of `confide.calibrate`, such as `ledger` and `dataset`.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from confide import federated
    >>> coordinator = federated.SiloKeys.generate("coordinator")
    >>> hospitals = [federated.SiloKeys.generate(name) for name in ("north", "south", "east")]
    >>> plan = federated.plan([keys.public(size=300) for keys in hospitals], 0.1, 4.0, method="private-qq", score="lac")
    >>> text, folder, answers = plan.sign(coordinator), tempfile.TemporaryDirectory(), []
    >>> policy, rng = federated.Policy(coordinator.public().identity, 4.0, 4.0), np.random.default_rng(0)
    >>> for power, keys in enumerate(hospitals, 1):
    ...     ledger = federated.SiloLedger(f"{folder.name}/{keys.name}.db")
    ...     answers.append(federated.answer(text, rng.random(300) ** power, keys, policy, ledger))
    >>> released = federated.aggregate(text, answers)
    >>> north = local(released, rng.random(500), 1.0)
    >>> north.coverage, north.score, north.threshold > 0.85
    (0.9, 'lac', True)
    >>> folder.cleanup()
    """
    if not isinstance(released, FederatedRelease):
        raise InputTypeError("released", "must be the release of a federation", got=type(released).__name__)
    # The request of the common threshold, as far as no option replaces it
    common, request = released.only, released.plan.request
    assert isinstance(common, FederatedThreshold)
    stated: Any = request.candidates
    asked: dict[str, Any] = {"delta": common.plan.delta, "unit": request.unit, **options}
    return calibrate(
        scores,
        common.alpha,
        epsilon,
        score=common.score,
        classes=request.classes,
        candidates=stated if candidates is None else candidates,
        **asked,
    )
