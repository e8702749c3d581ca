"""The protocols of one-shot federated calibration, by the names that plans give them.

Terms and options come in; planned protocols leave. They say what a silo sends, what becomes of it and what is promised.
"""

from confide.federated.protocols.fedcp2_qq import (
    FedCP2QQ,
    FedCP2QQOpenedSum,
    FedCP2QQSum,
    PublishedChoice,
    RepliedSum,
    best_published,
    published_at,
    published_correction,
    published_quantile,
)
from confide.federated.protocols.protocol import Counts, FederatedProtocol, Options, Promise
from confide.federated.protocols.secure_sum import OpenedSum, SecureSum
from confide.federated.protocols.sorted_replies import CandidateReplies, FedCPAvg, FedCPQQ, PrivateQQ
from confide.federated.protocols.vectors import DealtVectors

PROTOCOLS: dict[str, type[FederatedProtocol]] = {
    protocol.method: protocol
    for protocol in (
        PrivateQQ,  # ours, private in the silo; the default
        SecureSum,  # ours, private in the sum
        FedCPQQ,  # published, not private
        FedCP2QQ,  # published, private in the silo
        FedCP2QQSum,  # published, the same, and who replied what is hidden
        FedCPAvg,  # published, not private, without a guarantee
    )
}
METHODS = tuple(PROTOCOLS)


def protocol_of(method: str, dropouts: int) -> type[FederatedProtocol]:
    """The protocol of a method: a sum with silos that may be missing takes a second message.

    Examples
    --------
    >>> protocol_of("secure-sum", 0).__name__, protocol_of("secure-sum", 1).__name__
    ('SecureSum', 'OpenedSum')
    """
    return _OPENED.get(method, PROTOCOLS[method]) if dropouts else PROTOCOLS[method]


_OPENED: dict[str, type[FederatedProtocol]] = {protocol.method: protocol for protocol in (OpenedSum, FedCP2QQOpenedSum)}
