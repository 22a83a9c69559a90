"""DLCB: a deep-learning compiler for PyTorch; one compile serves every shape."""
