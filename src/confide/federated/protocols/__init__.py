"""The methods of one-shot federated calibration, by the names that plans give them, and the channels that add vectors.

Terms and options come in; planned methods and channels leave. They say what a silo sends, what becomes of it and what
is promised.
"""

from confide.federated.protocols.channels import Channel, Clear, Dealt, Masked, Shared
from confide.federated.protocols.fedcp2_qq import (
    FedCP2QQ,
    PublishedChoice,
    best_published,
    published_at,
    published_correction,
    published_quantile,
)
from confide.federated.protocols.method import Method, Promise, Row
from confide.federated.protocols.plan_fields import Counts, Options
from confide.federated.protocols.secure_sum import NoisyCounts
from confide.federated.protocols.sorted_replies import FedCPAvg, FedCPQQ, PrivateQQ

PROTOCOLS: dict[str, Row] = {
    row.name: row
    for row in (
        Row("private-qq", PrivateQQ, (Clear, Clear)),  # ours, private in the silo; the default
        Row("secure-sum", NoisyCounts, (Masked, Shared)),  # ours, private in the sum
        Row("fedcp-qq", FedCPQQ, (Clear, Clear)),  # published, not private
        Row("fedcp2-qq", FedCP2QQ, (Clear, Clear)),  # published, private in the silo
        Row("fedcp2-qq-sum", FedCP2QQ, (Masked, Shared)),  # the same, and who replied what is hidden
        Row("fedcp-avg", FedCPAvg, (Clear, Clear)),  # published, not private, without a guarantee
    )
}
METHODS = tuple(PROTOCOLS)
