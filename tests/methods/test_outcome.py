"""What a step leaves for training and for the log."""

import pytest
import torch
from torch import nn

from dign.methods import AugMix, DiGN


def test_the_terms_add_up_to_the_loss_and_hold_no_graph():
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 5))
    outcome = (DiGN() + AugMix())(model, torch.rand(4, 3, 8, 8), torch.arange(4))
    assert list(outcome.terms) == ["cross_entropy", "consistency", "augmix_consistency"]
    assert outcome.loss.item() == pytest.approx(sum(term.item() for term in outcome.terms.values()), rel=1e-6)
    assert outcome.loss.requires_grad
    assert not outcome.logits.requires_grad and not any(term.requires_grad for term in outcome.terms.values())
