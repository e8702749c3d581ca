"""A model's ONNX graph and a release come in; the same graph with sets or intervals appended leaves. Extra `onnx`.

append.py   `append`: what is appended to which tensor, and the certificate in the metadata; `read` gives it back
graph.py    what a graph says of its tensors; nodes and constants under names of their own
answers.py  thresholds as tensors, and the sets or intervals that they give, in the words of ONNX

Whatever runs ONNX runs them then: onnxruntime in Python, .NET, Java, a browser or a phone, Triton, KServe. The numbers
are those of `confide.scores`: comparisons and exact sums in float64, so that the sets are those of `predict_set`.
"""

from confide.support import needs_extra

with needs_extra("confide.onnx", "onnx"):
    import onnx

from confide.onnx.append import append, read

__all__ = ["append", "read"]


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
