"""The methods of one-shot federated calibration, by their names in plans, and the channels that add vectors.

From terms they make the plan of a threshold, which defines a silo's message, the threshold and the guarantee.
"""

from confide.federated.protocols.channels import Channel, Clear, Masked
from confide.federated.protocols.fedcp2_qq import FedCP2QQ, published_quantile
from confide.federated.protocols.secure_sum import NoisyCounts
from confide.federated.protocols.sorted_replies import PrivateQQ
from confide.federated.protocols.threshold_plan import Certificate, Promise, Protocol, ThresholdPlan

PROTOCOLS: dict[str, Protocol] = {
    row.name: row
    for row in (
        Protocol("private-qq", PrivateQQ, Clear),  # of confide, private in the silo; the default
        Protocol("secure-sum", NoisyCounts, Masked),  # of confide, private in the sum
        Protocol("fedcp2-qq", FedCP2QQ, Clear),  # published, private in the silo
        Protocol("fedcp2-qq-sum", FedCP2QQ, Masked),  # the same, and the single replies are hidden
    )
}
METHODS = tuple(PROTOCOLS)
