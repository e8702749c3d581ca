"""`python -m benchmarks.replied_sums`: sums of replies and of counts at the same privacy loss, as a table."""

import hashlib

import numpy as np

from benchmarks.small import small
from confide import Candidates, all_scores, federated, lac_score
from confide.federated import planning
from confide.federated.comparison import with_pilot
from confide.planning import Pilot

CASES = [  # silos, records in each, epsilon of the sum, candidates of the sum of replies
    (5, 200, 10.0, 100),
    (5, 200, 5.0, 100),
    (20, 200, 5.0, 100),
    (100, 100, 5.0, 100),
    (100, 100, 2.0, 100),
    (1000, 100, 2.0, 100),
    (1000, 1, 1.0, 6),
    (5000, 1, 1.0, 11),
    (10000, 1, 1.0, 21),
]
DP_DELTA = 1e-6


def invited(m: int, n: int) -> list[federated.Silo]:
    """Silos of one size, without the time of keys."""
    keys = ([hashlib.sha256(f"{use} {i}".encode()).hexdigest() for use in "ab"] for i in range(m))
    return [federated.Silo(f"s{i}", *pair, n) for i, pair in enumerate(keys)]


def pilot() -> Pilot:
    """Ten classes, some of them hard to distinguish."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(10, 0.12), 4000)
    drawn = (rng.random((4000, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    return Pilot(lac_score(p, np.minimum(drawn, 9)), all_scores(p))


def cell(one: federated.Alternative) -> str:
    """Expected coverage for uniform and Gaussian scores, and the mean size of sets."""
    if one.plan is None:
        return "no plan"
    return f"{one.expected:.3f} / {one.expected_bell:.3f}, {one.on_pilot.size:.2f}"


def main() -> None:
    """Print one line per case."""
    sample = pilot()
    print("| silos | records in each | epsilon of the sum | of a reply | as claimed | sum of replies | secure-sum |")
    print("|---|---|---|---|---|---|---|")
    for m, n, epsilon, size in small(CASES, CASES[:2]):
        silos, options = invited(m, n), {"score": "lac", "population": "common"}
        options_of_both = {"dp_delta": DP_DELTA, "candidates": Candidates.spread("probability", size)}
        make = planning.one_threshold(0.1, epsilon)
        replied = with_pilot(planning.alternative(silos, make, "fedcp2-qq-sum", options | options_of_both), sample)
        counted = with_pilot(planning.alternative(silos, make, "secure-sum", options), sample)
        local = "" if replied.plan is None else f"{replied.plan.epsilon:.2f}"
        claimed = federated.clones_local(epsilon, m - max(1, (m - 1) // 2), DP_DELTA)
        print(f"| {m} | {n} | {epsilon:g} | {local} | {claimed:.2f} | {cell(replied)} | {cell(counted)} |", flush=True)


if __name__ == "__main__":
    main()
