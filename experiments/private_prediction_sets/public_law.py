"""Scores of ImageNet's size and shape by a public law, for users without ImageNet.

50,000 records, 1000 classes. The logits of record i are a exp(s g_i) times independent standard normals, g_i standard
normal: records differ in how hard they are. The label is drawn from the softmax of the logits, so the
probabilities are calibrated, which is the aim of a well-scaled temperature. a = 15 and s = 0.9 give about the accuracy of the papers'
ResNet-152 (top-1 0.783, top-5 0.940 by torchvision's documentation). Coverages do not depend on the law as long as
scores are continuous; set sizes are comparable in order only.
"""

import numpy as np

from benchmarks.small import small
from experiments.private_prediction_sets.tail_scores import TailScores

RECORDS, CLASSES, SCALE, SPREAD = *small((50_000, 1000), (500, 50)), 15.0, 0.9
_BLOCK = 2000


def imagenet_shaped(records: int = RECORDS, classes: int = CLASSES, seed: int = 152) -> TailScores:
    """Scores of `records` records by the law; the same `seed` draws the same ones on every machine."""
    rng = np.random.default_rng(seed)

    def block(n: int) -> tuple[np.ndarray, np.ndarray]:
        logits = rng.standard_normal((n, classes), dtype=np.float32)
        logits *= (SCALE * np.exp(SPREAD * rng.standard_normal((n, 1)))).astype(np.float32)
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        return p, np.argmax(logits + rng.gumbel(size=(n, classes)), axis=1)  # argmax of logits + Gumbel follows p

    parts = [min(_BLOCK, records - start) for start in range(0, records, _BLOCK)]
    return TailScores.of("public law", (block(n) for n in parts))
