"""What all tests share: the profile of hypothesis, and the mark `gpu`."""

import pytest
from hypothesis import settings

settings.register_profile("dlcb", deadline=None, derandomize=True, database=None)
settings.load_profile("dlcb")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if not on_gpu:
        return
    import torch

    if not torch.cuda.is_available():
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason="no GPU"))
