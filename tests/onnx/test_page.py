"""The configurations on the ONNX page match the graph of its first example."""

import re

import pytest
import yaml

pytest.importorskip("onnx", reason="needs ONNX: pip install 'confide[onnx]'")

from confide.onnx import append
from tests.calibrations import calibration_at
from tests.docs.blocks import ROOT, blocks
from tests.onnx.test_append import classifier

PAGE = blocks(ROOT / "docs" / "howto" / "onnx.md")


def described(tensors):
    """Tensors as in Triton's configuration: without the first dimension, which is the batch's."""
    kinds = {1: "TYPE_FP32", 9: "TYPE_BOOL", 11: "TYPE_FP64"}
    return {
        one.name: (kinds[one.type.tensor_type.elem_type], [d.dim_value for d in one.type.tensor_type.shape.dim[1:]])
        for one in tensors
    }


def test_tritons_configuration_names_the_tensors_of_the_graph():
    text = next(block.text for block in PAGE if "max_batch_size" in block.text)
    found = {
        side: {
            name: (kind, [int(size) for size in dims.split(",")])
            for name, kind, dims in re.findall(r'name: "(\w+)" data_type: (\w+) dims: \[ ([\d, ]+) \]', part)
        }
        for side, part in re.findall(r"^(input|output) \[(.*?)^\]", text, flags=re.MULTILINE | re.DOTALL)
    }
    graph = append(classifier(), calibration_at(0.5), output="p").graph
    assert found["input"] == described(graph.input)
    assert found["output"] == {name: one for name, one in described(graph.output).items() if name != "logits"}
    firsts = [one.type.tensor_type.shape.dim[0].dim_param for one in (*graph.input, *graph.output)]
    assert set(firsts) == {"n"}  # Triton's batches


def test_kserves_configuration_is_one():
    service = yaml.safe_load(next(block.text for block in PAGE if block.language == "yaml"))
    assert service["kind"] == "InferenceService"
    assert service["spec"]["predictor"]["model"]["modelFormat"]["name"] == "onnx"
    assert service["spec"]["predictor"]["model"]["protocolVersion"] == "v2"
