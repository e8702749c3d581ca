"""From a request to the mechanism that answers it."""

from confide.mechanisms import (
    Mechanism,
    noisy_histogram_for,
    opendp_quantile_for,
    pps_for,
    pps_laplace_for,
    split_conformal_for,
)
from confide.planning.plan import slopes_for_request
from confide.planning.request import Request


def mechanism_for(request: Request) -> Mechanism | None:
    """The mechanism for a checked request; None if +inf has to be answered without touching the data.

    Examples
    --------
    >>> from fractions import Fraction
    >>> request = Request(
    ...     Fraction(1, 10), 1.0, "replace_one", 1000, 1, 1000, None, 1000, 1, "permute_and_flip", None, None, "pps"
    ... )
    >>> round(float(mechanism_for(request).level), 4)
    0.9289
    """
    n, m, level, epsilon = request.n, request.candidates, request.level, request.per_record
    match request.mechanism:
        case "slopes":
            return slopes_for_request(request)
        case "noisy-histogram":
            return noisy_histogram_for(level, epsilon, m, n, request.n_min)
        case "opendp-quantile":
            return opendp_quantile_for(level, epsilon, n)
    assert n is not None  # the request was checked
    match request.mechanism:
        case "pps":
            return pps_for(n, request.alpha, epsilon, m)
        case "pps-laplace":
            return pps_laplace_for(n, request.alpha, epsilon, m)
        case "none":
            return split_conformal_for(level, n)
