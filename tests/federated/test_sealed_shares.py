"""Encrypted shares: one reader, one writer, one answer of one session."""

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from confide.federated.sharing import P, decrypt_share, encrypt_shares, pack, unpack


def key():
    made = X25519PrivateKey.generate()
    return made.private_bytes_raw(), made.public_key().public_bytes_raw().hex()


DEALER, ONE, OTHER, STRANGER = (key() for _ in range(4))
SHARES = np.array([[1, 2, P - 1], [0, 5, 7]], dtype=np.uint64)


@pytest.fixture
def sealed():
    return encrypt_shares(SHARES, [ONE[1], OTHER[1]], DEALER[1], DEALER[0], b"session|digest")


def read(text, ephemeral, *, opener=ONE, dealer=DEALER[1], context=b"session|digest", size=3):
    return decrypt_share(text, size, opener[1], opener[0], dealer, ephemeral, context)


def test_every_share_holder_reads_only_its_share(sealed):
    ephemeral, texts = sealed
    assert read(texts[0], ephemeral).tolist() == SHARES[0].tolist()
    assert read(texts[1], ephemeral, opener=OTHER).tolist() == SHARES[1].tolist()
    for text, opener in ((texts[1], ONE), (texts[0], OTHER), (texts[0], STRANGER), (texts[0], (STRANGER[0], ONE[1]))):
        with pytest.raises(ValueError):
            read(text, ephemeral, opener=opener)


def test_a_box_opens_nowhere_else(sealed):
    """Shares do not decrypt in another session or plan, as another silo's, or as another answer of the silo."""
    ephemeral, texts = sealed
    again, others = encrypt_shares(SHARES, [ONE[1], OTHER[1]], DEALER[1], DEALER[0], b"session|digest")
    assert again != ephemeral
    assert not set(texts) & set(others)
    for wrong in ({"context": b"session|other"}, {"context": b"other|digest"}, {"dealer": STRANGER[1]}):
        with pytest.raises(ValueError):
            read(texts[0], ephemeral, **wrong)
    with pytest.raises(ValueError):
        read(texts[0], again)
    for low in ("00" * 32, "01" + "00" * 31):
        with pytest.raises(ValueError):
            read(texts[0], low)


def test_only_the_dealer_can_have_written_it(sealed):
    """An attacker with fresh keys lacks the dealer's key, and the dealer's pinned key lacks the fresh key."""
    ephemeral, texts = sealed
    forged, boxes = encrypt_shares(SHARES[:1], [ONE[1]], DEALER[1], STRANGER[0], b"session|digest")
    with pytest.raises(ValueError):
        read(boxes[0], forged)
    leaked = (DEALER[0], ONE[1])  # exchanges with the public fresh key and the reader's public key
    for dealer in (DEALER[1], ONE[1]):
        with pytest.raises(ValueError):
            read(texts[0], ephemeral, opener=leaked, dealer=dealer)


def test_anything_else_than_elements_is_refused(sealed):
    ephemeral, texts = sealed
    with pytest.raises(ValueError):
        read(texts[0], ephemeral, size=2)
    with pytest.raises(ValueError):
        unpack(np.array([P], dtype="<u8").tobytes(), 1)
    with pytest.raises(ValueError):
        read("%" + texts[0][1:], ephemeral)
    assert unpack(pack(SHARES[0]), 3).tolist() == SHARES[0].tolist()
    low = "00" * 32
    with pytest.raises(ValueError):
        encrypt_shares(SHARES[:1], [low], DEALER[1], DEALER[0], b"")
