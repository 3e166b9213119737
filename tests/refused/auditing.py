"""What `audit` refuses."""

import torch
from small_models import build
from torch import nn

from posembed import audit
from posembed.errors import AuditError


class Draws(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.words = nn.Embedding(30, width)

    def forward(self, ids):
        return self.words(ids) + torch.randn(1)


def checked(model, **options):
    return lambda: audit(model, **options)


CASES = {
    name: (AuditError, *case)
    for name, case in {
        "a model that draws": (checked(Draws(), vocab_size=30), "the model draws, or keeps a state"),
        "an unknown vocabulary": (checked(Draws()), "say vocab_size="),
        "no model": (checked(3), "model is 3"),
        "the name of a model": (checked("gpt2"), "model is 'gpt2'; give the model itself"),
        "other names": (checked(nn.Linear(2, 2), vocab_size=3), "it must take ids"),
        "a mask by another name": (checked(lambda ids, attention_mask=None: ids, vocab_size=30), "it must take ids"),
        "no logits": (checked(lambda ids: ids, vocab_size=30), "numbers for each token"),
        "one number a text": (checked(lambda ids: ids.float().sum(1), vocab_size=30), "numbers for each token"),
        "an image model": (checked(build("vit")), "takes no ids of words"),
        "the meta device": (checked(build("bert").to("meta")), "meta device"),
        "a short table": (checked(build("gpt2", n_positions=8)), "8 positions; give one of at least 16"),
        "an error of its own": (checked(lambda ids: 1 / 0, vocab_size=30), "does not run on ids alone"),
        "one word beside padding": (checked(Draws(), vocab_size=2), "two different words"),
        "the same for all ids": (checked(lambda ids: torch.zeros(*ids.shape, 4), vocab_size=30), "does not read them"),
        "what a config says": (checked(build("gpt2"), n_positions=128), "n_positions would not be used"),
        "an empty vocabulary": (checked(Draws(), vocab_size=0), "vocab_size is 0"),
    }.items()
}
