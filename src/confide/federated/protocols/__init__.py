"""The protocols of one-shot federated calibration, a file each, by the names that plans give them.

Terms and options come in; planned protocols leave. They say what a silo sends, what becomes of it and what is promised.
"""

from confide.federated.protocols.dealt import DealtVectors
from confide.federated.protocols.fedcp2_qq import (
    FedCP2QQ,
    PublishedChoice,
    best_published,
    published_at,
    published_correction,
    published_quantile,
)
from confide.federated.protocols.fedcp2_qq_sum import FedCP2QQOpenedSum, FedCP2QQSum, RepliedSum
from confide.federated.protocols.fedcp_avg import FedCPAvg
from confide.federated.protocols.fedcp_qq import FedCPQQ
from confide.federated.protocols.opened_sum import OpenedSum
from confide.federated.protocols.private_qq import PrivateQQ
from confide.federated.protocols.protocol import Counts, FederatedProtocol, Options, Promise
from confide.federated.protocols.secure_sum import SecureSum
from confide.federated.protocols.sorted_replies import CandidateReplies

__all__ = [
    "METHODS", "PROTOCOLS", "CandidateReplies", "Counts", "DealtVectors", "FedCP2QQ", "FedCP2QQOpenedSum",
    "FedCP2QQSum", "FedCPAvg", "FedCPQQ", "FederatedProtocol", "OpenedSum", "Options", "PrivateQQ", "Promise",
    "PublishedChoice", "RepliedSum", "SecureSum", "best_published", "protocol_of", "published_at",
    "published_correction", "published_quantile",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)


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
