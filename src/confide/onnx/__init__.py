"""Append sets or intervals of a release to the ONNX graph of a model. Extra `onnx`.

append.py   `append`: appends to a tensor, and stores the release in the metadata; `read` returns it
graph.py    nodes with distinct names; sets and intervals in ONNX operators

Every ONNX runtime can run the result: onnxruntime in Python, .NET, Java, a browser or a phone, Triton, KServe. The sets
are those of `predict_set`, for the scores `lac`, `margin`, `absolute_residual` and those of CQR.
"""

from confide.support import needs_extra

with needs_extra("confide.onnx", "onnx"):
    import onnx

from confide.onnx.append import append, read

__all__ = ["append", "read"]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
