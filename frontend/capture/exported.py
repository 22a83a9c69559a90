"""Graph modules: which of them say that they are in training."""

from __future__ import annotations

import torch

_MADE_BY_TORCH = ("torch.fx.", "torch.export.", "torch._export.")


def in_training(module: torch.nn.Module) -> bool:
    """Whether a part of the program would behave as in training. The flag of a graph's own module means nothing: what
    the graph does is written in it, so only the modules that it calls are asked."""
    if not isinstance(module, torch.fx.GraphModule):
        return module.training and not type(module).__module__.startswith(_MADE_BY_TORCH)
    called = {str(node.target) for node in module.graph.nodes if node.op == "call_module"}
    return any(in_training(module.get_submodule(name)) for name in called)
