"""regraph(folder): an exported model's graphs written anew, as this version builds them, over the same weight files.

    python -m teo_lab.regraph src/teo/default/onnx

Only for the project's own backbone, whose weights can be read back from an export.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import onnx

from teo.export.families import read_network
from teo.export.graph import Form
from teo.export.model import decoder_graph, encoder_graph
from teo.files import write_json
from teo.runtime.onnx_files import DESCRIPTION, FORMAT_VERSION
from teo.runtime.onnx_weights import WeightWriter
from teo.runtime.torch_reading import read_exported

_BUILDERS = {"encoder.onnx": encoder_graph, "decoder.onnx": decoder_graph}


def regraph(folder: Path) -> None:
    """Write both graphs of a folder anew; they name the tensors that lie there already, and no other."""
    file = folder / DESCRIPTION
    described = {**json.loads(file.read_text(encoding="utf-8")), "format": FORMAT_VERSION}
    write_json(file, described)
    stored = {
        tensor.name: tensor
        for name in _BUILDERS
        for tensor in onnx.load(str(folder / name), load_external_data=False).graph.initializer
    }
    network = read_network(read_exported(folder), folder)
    form: Form = "int8" if described["form"] == "int8" else "none"
    writer = WeightWriter(folder, stored=stored)
    graphs = {name: build(writer, form, network.shape, network.weights) for name, build in _BUILDERS.items()}
    for name, graph in graphs.items():
        onnx.save(graph, str(folder / name))
    if writer.slices:
        raise RuntimeError(f"{folder}: expected every tensor to be stored, found new ones: {', '.join(writer.slices)}")


if __name__ == "__main__":
    regraph(Path(sys.argv[1]))
