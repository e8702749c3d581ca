"""Models with appended sets or intervals: properties for all bytes and metadata. Needs `onnx`."""

import json
from functools import cache
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto, helper

import confide
from confide.errors import ConfideError
from confide.onnx import append, read
from fuzz.source import Source, change, one_line

_APPENDED = "confide.appended"


@cache
def appended() -> tuple[bytes, ...]:
    """Serialised models: sets of one threshold, of two groups, and intervals."""
    scores = np.linspace(0, 1, 300)
    one = confide.calibrate(scores, 0.2, 4.0, score="margin", classes=["a", "b"], neighbors="replace_one")
    ward = np.where(np.arange(300) % 2, "north", "south")
    two = confide.calibrate(
        scores, 0.2, 4.0, groups=ward, names=["north", "south"], score="lac", neighbors="replace_one"
    )
    line = confide.calibrate(scores, 0.2, 4.0, score="absolute_residual", neighbors="replace_one")
    made = (
        append(_passing(["n", 2]), one, logits=True),
        append(_passing(["n", 2]), two),
        append(_passing(["n"]), line),
    )
    return tuple(model.SerializeToString() for model in made)


def _passing(shape: list[Any]) -> onnx.ModelProto:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "p")]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["p"])], "model", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def onnx_model(data: bytes) -> None:
    """`confide.onnx.read` on models with changed options or changed bytes: the release, or an error of one line."""
    source = Source(data)
    content = appended()[source.below(len(appended()))]
    model = onnx.ModelProto.FromString(content)
    if source.byte() % 2:
        entry = next(one for one in model.metadata_props if one.key == _APPENDED)
        entry.value = json.dumps(change(json.loads(entry.value), source))
    else:
        changed = bytearray(content)
        for _ in range(1 + source.byte() % 3):
            place = (source.byte() << 16 | source.byte() << 8 | source.byte()) % len(changed)
            changed[place] = source.byte()
        try:
            model = onnx.ModelProto.FromString(bytes(changed))
        except DecodeError:
            return
    try:
        release = read(model)
    except ConfideError as error:
        one_line(error)
        return
    assert release.to_json() in {one.value for one in model.metadata_props}
