"""A reference model of a federation: its plans and silos, which messages count, and which sum the parts reconstruct."""

import base64
import json
import math
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from scipy import stats

from confide import federated
from confide.candidates import Candidates

M, N, BUDGET, PER_PLAN = 4, 60, 17.0, 8.0
FEW = Candidates.unit(6)
VALUES = [float(value) for value in FEW.values]
P = 2**61 - 1
NOW, CLOSES, AFTER = (datetime(year, 1, 1, tzinfo=UTC) for year in (2030, 2031, 2032))

KEYS = [federated.SiloKeys(f"silo {i}", bytes([1 + i]) * 32, bytes([101 + i]) * 32) for i in range(M)]
COORDINATOR = federated.SiloKeys("coordinator", bytes([50]) * 32, bytes([51]) * 32)
STRANGER = federated.SiloKeys("stranger", bytes([60]) * 32, bytes([61]) * 32)
PUBLIC, SECRET = [keys.public(size=N) for keys in KEYS], [keys.public() for keys in KEYS]
NAMES = [keys.name for keys in KEYS]
POLICY = federated.Policy(
    COORDINATOR.public().identity,
    BUDGET,
    PER_PLAN,
    methods=federated.METHODS,
    peers={silo.name: silo.identity for silo in PUBLIC},
    least_colluding=0,
)
STRICT = replace(POLICY, methods=("private-qq", "secure-sum", "fedcp2-qq", "fedcp2-qq-sum"), per_plan=0.5)
RNG = np.random.default_rng(0)
DATA = [[RNG.random(N), RNG.random(N) ** 2, RNG.random(N - 1)] for _ in range(M)]
"""For each silo: its scores, other scores of the same number, and one score fewer than its stated size."""
GROUPS = {N: ["a", "b"] * (N // 2), N - 1: ["a", "b"] * (N // 2 - 1) + ["a"]}
from tests.federated.helpers import content_of


@dataclass(frozen=True)
class Kind:
    """The kind of a plan: one threshold or several by level or group, the channel, and whether sizes are public."""

    method: str
    options: dict = field(default_factory=dict)
    epsilon: float = 4.0
    channel: str = "clear"
    by: str | None = None
    secret: bool = False

    def plan(self):
        silos = SECRET if self.secret else PUBLIC
        more = {"candidates": FEW, "closes": CLOSES, "method": self.method, **self.options}
        if self.by == "level":
            return federated.plan_levels(silos, [0.4, 0.3], self.epsilon, **more)
        if self.by is not None:
            return federated.plan_groups(silos, ["a", "b"], 0.4, self.epsilon, by=self.by, **more)
        return federated.plan(silos, 0.4, self.epsilon, **more)


SUM, SOME = {"colluding": 0}, {"colluding": 0, "dropouts": 1}
KINDS = {
    "private-qq": Kind("private-qq", {"dropouts": 1}),
    "private-qq, arbitrary": Kind("private-qq", {"dropouts": 1, "missing": "arbitrary"}),
    "private-qq, a liar": Kind("private-qq", {"liars": 1}),
    "fedcp2-qq": Kind("fedcp2-qq", {"dropouts": 1}),
    "secure-sum, masked": Kind("secure-sum", SUM, channel="masked"),
    "secure-sum, shared": Kind("secure-sum", SOME, channel="shared"),
    "fedcp2-qq-sum, masked": Kind("fedcp2-qq-sum", SUM, channel="masked"),
    "fedcp2-qq-sum, shared": Kind("fedcp2-qq-sum", SOME, channel="shared"),
    "levels of private-qq": Kind("private-qq", epsilon=6.0, by="level"),
    "levels of fedcp2-qq": Kind("fedcp2-qq", epsilon=8.0, by="level"),
    "levels of secure-sum": Kind("secure-sum", SUM, channel="masked", by="level"),
    "levels of secure-sum, shared": Kind("secure-sum", SOME, channel="shared", by="level"),
    "private-qq, secret sizes": Kind("private-qq", {"dropouts": 1}, secret=True),
    "groups": Kind("private-qq", by="group", secret=True),
    "classes": Kind("private-qq", by="class", secret=True),
}


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def forged(text, change, keys=None):
    """Change a message's content and sign it with `keys`; without keys the signature is unchanged."""
    message = json.loads(text)
    change(message["content"])
    if keys is not None:
        key = Ed25519PrivateKey.from_private_bytes(keys.signing)
        message["signer"] = key.public_key().public_bytes_raw().hex()
        head = {name: message[name] for name in ("kind", "schema", "content")}
        message["signature"] = key.sign(canonical(head)).hex()
    return json.dumps(message, indent=1) + "\n"


@cache
def target(honest, silos, scale, alpha):
    """Return the least T with (T - 1 - c)/n >= 1 - alpha (Theorem F7), where c = E[X | X > 0] for one noise X."""
    share = stats.nbinom.pmf(np.arange(301), silos / honest, -math.expm1(-1 / scale))
    positive = np.convolve(share, share[::-1])[301:]
    cost = np.arange(1, 301) @ positive / positive.sum()
    return math.ceil((1 - alpha) * silos * N + 1 + Fraction(cost))


class RefusedError(Exception):
    """The model expects a refusal with this code."""


def expected(work):
    """Return the expected outcome: a code and None, or None and a result."""
    try:
        return None, work()
    except RefusedError as refused:
        return str(refused), None


@dataclass
class Message:
    """A text for the coordinator, with its silo and its defect in the model."""

    text: str
    silo: int | None
    code: str | None = None

    @property
    def content(self):
        return content_of(self.text)


@dataclass
class Memory:
    """The contents of a silo's ledger.

    By session: (message, data) and (survivor set, part). Also all charges and all steps.
    """

    answers: dict = field(default_factory=dict)
    parts: dict = field(default_factory=dict)
    charged: list = field(default_factory=list)
    steps: list = field(default_factory=list)


@dataclass
class Round:
    """A plan and all texts that were made for it."""

    kind: Kind
    text: str
    answers: list = field(default_factory=list)
    parts: list = field(default_factory=list)
    lists: list = field(default_factory=list)

    def __post_init__(self):
        self.plan = federated.read_plan(self.text)
        content = content_of(self.text)
        first = content["plans"][0]["content"] if "plans" in content else content
        self.fields, self.session = first, first["session"]
        self.each = list(self.plan.parts.values()) if self.kind.by else [self.plan]
        self.least = M - first["dropouts"]

    def cost(self, i):
        return self.plan.privacy([i]).epsilon


def accepted_of(texts, drop):
    """Return the messages that count, by silo, and the codes of the refused ones, by name or place."""
    accepted, refused, seen = {}, {}, {}
    for place, one in enumerate(texts, start=1):
        seen.setdefault(one.text, (place, one))
    for place, one in seen.values():
        code, who = one.code, None if one.silo is None else NAMES[one.silo]
        if code is None:
            if one.silo in accepted and accepted[one.silo].content == one.content:
                continue
            if one.silo in accepted or who in refused:
                accepted.pop(one.silo, None)
                code = "duplicate"
            else:
                accepted[one.silo] = one
        if code is not None:
            if not drop:
                raise RefusedError(code)
            refused[who or place] = code
    return accepted, refused


def parts_of(parts, drop, after):
    """Return the same for the parts of share holders: their survivor sets and their sums."""
    read, refused = {}, {}
    for place, one in enumerate(parts, start=after + 1):
        code, who = one.code, None if one.silo is None else NAMES[one.silo]
        if code is None:
            earlier = read.get(one.silo, one).content
            if earlier != one.content or who in refused:
                read.pop(one.silo, None)
                code = "duplicate"
            else:
                read[one.silo] = one
        if code is not None:
            if not drop:
                raise RefusedError(code)
            refused[who or place] = code
    return read, refused


def interpolated(values, points, at):
    """Evaluate Lagrange's polynomial through (points, values) modulo P at one point."""
    total = 0
    for i, value in zip(points, values, strict=True):
        weight = 1
        for j in points:
            if j != i:
                weight = weight * (at - j) * pow(i - j, -1, P) % P
        total = (total + weight * value) % P
    return total


def opened(asked, parts):
    """Reconstruct the sum from the parts; refuse with `inconsistent` if they do not lie on a polynomial."""
    sums = {i + 1: np.frombuffer(base64.b64decode(one.content["sum"]), "<u8").tolist() for i, one in parts.items()}
    needed = sorted(sums)[: asked.fields["needed"]]
    total = []
    for place in range(FEW.size):
        values = [sums[i][place] for i in needed]
        if any(interpolated(values, needed, other) != sums[other][place] for other in sums):
            raise RefusedError("inconsistent")
        value = interpolated(values, needed, 0)
        total.append(value - P if value > P // 2 else value)
    return total
