"""`python -m benchmarks.plan`: what a fresh plan with its certificate costs, over caches that are empty."""

import time

from confide.planning.slope_choice import best_slopes

import confide
from confide.guarantee import certificate, conditional
from confide.mechanisms.certify import certify
from confide.planning.plan import slopes_for_request

CACHES = (certificate.sharp_loss, conditional.line_holds, certify, best_slopes, slopes_for_request)


def fresh(**options) -> float:
    """Processor seconds of one plan that nothing was computed for before."""
    for cached in CACHES:
        cached.cache_clear()
    start = time.process_time()
    plan = confide.plan(**{"alpha": 0.1, "epsilon": 1.0, **options})
    request = plan.request
    secret_from = request.n_min if request.n is None else None
    certify(plan.mechanism, request.alpha, request.candidates, request.n, secret_from, request.delta)
    return time.process_time() - start


def main() -> None:
    """Print one line per kind of plan: the best of three."""
    kinds = ({}, {"neighbors": "replace_one"}, {"epsilon": 0.1}, {"delta": 0.05}, {"epsilon": 0.1, "delta": 0.05})
    for options in kinds:
        name = ", ".join(f"{key}={value}" for key, value in options.items()) or "defaults"
        print(f"plan ({name}): {min(fresh(**options) for _ in range(3)):.2f} s")


if __name__ == "__main__":
    main()
