"""What is looked up in weights by weights is computed once, and again when they change."""

import pytest
import torch
from torch import Tensor, nn

from dlcb.tests.end_to_end.agreement import compiled, rand


class RelativePositions(nn.Module):
    """A table read at places that a buffer says, as Swin transformers do."""

    index: Tensor

    def __init__(self, last: int = 8) -> None:
        super().__init__()
        self.table = nn.Parameter(rand(9, 3))
        self.register_buffer("index", torch.arange(16).reshape(4, 4) % 9)
        self.index[3, 3] = last

    def forward(self, x: Tensor) -> Tensor:
        return x + self.looked_up().permute(2, 0, 1).contiguous().unsqueeze(0)

    def looked_up(self) -> Tensor:
        return self.table[self.index.view(-1)].view(4, 4, -1)


class ReturnedPositions(RelativePositions):
    def forward(self, x: Tensor) -> Tensor:
        return self.looked_up().permute(2, 0, 1)


@torch.no_grad()
@pytest.mark.parametrize("weights", ["live", "frozen"])
def test_a_table_read_by_a_buffer_is_read_anew_when_either_changes(weights: str) -> None:
    network = RelativePositions().eval()
    model = compiled(network, (rand(2, 3, 4, 4),), weights=weights)
    for batch in (2, 1, 0, 5):
        x = rand(batch, 3, 4, 4)
        assert torch.equal(model(x), network(x))
    x = rand(2, 3, 4, 4)
    network.table.mul_(2)
    network.index.add_(1).remainder_(9)
    if weights == "frozen":
        assert not torch.equal(model(x), network(x))
        model.refresh_weights()
    assert torch.equal(model(x), network(x))


@torch.no_grad()
@pytest.mark.parametrize("weights", ["live", "frozen"])
def test_who_changes_a_table_that_was_returned_changes_nothing_else(weights: str) -> None:
    network = ReturnedPositions().eval()
    model = compiled(network, (rand(2),), weights=weights)
    model(rand(2)).zero_()
    assert torch.equal(model(rand(2)), network(rand(2)))


@torch.no_grad()
@pytest.mark.parametrize("weights", ["live", "frozen"])
def test_a_buffer_that_points_past_the_table_is_an_error(weights: str) -> None:
    with pytest.raises(IndexError, match="index 9 is out of range for dimension 0 of size 9"):
        compiled(RelativePositions(last=9).eval(), (rand(2, 3, 4, 4),), weights=weights)(rand(2, 3, 4, 4))
