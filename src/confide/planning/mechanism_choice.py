"""From a request to the mechanism that answers it. Mechanisms other than slopes are loaded when they are asked for."""

from confide.mechanisms.interface import Mechanism
from confide.planning.plan import mechanism_for
from confide.planning.request import Request


def chosen_mechanism(request: Request) -> Mechanism | None:
    """The mechanism for a checked request; None if +inf has to be answered without touching the data.

    Examples
    --------
    >>> from fractions import Fraction
    >>> request = Request(
    ...     Fraction(1, 10), 1.0, "replace_one", 1000, 1, 1000, None, 1000, 1, "permute_and_flip", None, None, "pps"
    ... )
    >>> round(float(chosen_mechanism(request).level), 4)
    0.9289
    """
    name, n, m, level, epsilon = request.mechanism, request.n, request.candidates, request.level, request.per_record
    if name == "slopes":
        return mechanism_for(request)
    if name == "noisy-histogram":
        from confide.mechanisms.noisy_histogram import noisy_histogram_for

        return noisy_histogram_for(level, epsilon, m, n, request.n_min)
    if name == "opendp-quantile":
        from confide.mechanisms.opendp_quantile import opendp_quantile_for

        return opendp_quantile_for(level, epsilon, n)
    assert n is not None  # the request was checked
    if name == "pps":
        from confide.mechanisms.pps import pps_for

        return pps_for(n, request.alpha, epsilon, m)
    if name == "pps-laplace":
        from confide.mechanisms.pps_laplace import pps_laplace_for

        return pps_laplace_for(n, request.alpha, epsilon, m)
    from confide.mechanisms.split_conformal import split_conformal_for

    return split_conformal_for(level, n)
