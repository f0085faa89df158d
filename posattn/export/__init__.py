"""`posattn export`: a model as one graph for any batch and length, checked where it will run."""

from posattn.export.graph import export_graph as export_graph
from posattn.export.graph import save_graph as save_graph
from posattn.export.onnx import save_onnx as save_onnx
from posattn.export.source import load_model as load_model
