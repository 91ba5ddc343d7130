"""A trained model as int8 graphs for ONNX Runtime."""
