"""A scheme of one's own, with a learned slope.

For one experiment with one model, the bias as a matrix is shorter and nothing is missed; a bias that is a function of
query, key and positions is what torch's FlexAttention compiles for a GPU. A class of posembed is the better choice
where the idea has to work elsewhere too: in a file of its own the same class goes into a model with a cache, into GPT-2
and Llama, and into a grid of training runs.
"""

import torch

ABSENT = {
    "transformers": "the registered function of the seventh task, with this bias in it",
    "rotary_embedding_torch": "rotations alone",
    "transformer_lens": "the hook of the seventh task, with this bias in it",
    "nnsight": "the trace of the seventh task, with this bias in it",
}


def given(quick):
    """Queries, keys and values, "batch heads seq d_head", and a slope for each head."""
    torch.manual_seed(0)
    return *(
        torch.randn(2, 8, 16 if quick else 1024, 64) for _ in range(3)
    ), torch.linspace(0.1, 0.8, 8)


def posembed(q, k, v, slopes):
    """The output and the gradient of the slopes, and a class that goes wherever the package's own do."""
    import torch

    from posembed import PositionScheme
    from posembed.models import attend

    class RootDistance(PositionScheme):
        def __init__(self):
            super().__init__()
            self.slopes = torch.nn.Parameter(slopes)

        def bias_by_offset(self, offsets):
            return -self.slopes[:, None] * offsets.abs().sqrt()

    own, at = RootDistance(), torch.arange(q.shape[2])
    output = attend(
        q, k, v, causal=True, scheme=own, positions=at, key_positions=at
    )
    return output, torch.autograd.grad(output.square().mean(), own.slopes)[0]


def x_transformers(q, k, v, slopes):
    """The same, and a module that its layers take as `rel_pos`."""
    import torch
    from x_transformers.attend import Attend

    class RootDistance(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.slopes = torch.nn.Parameter(slopes)

        def forward(self, n_queries, n_keys):
            offsets = (
                torch.arange(n_keys)
                - torch.arange(n_keys - n_queries, n_keys)[:, None]
            )
            return -self.slopes[:, None, None] * offsets.abs().sqrt()

    own = RootDistance()
    output, _ = Attend(causal=True, flash=True)(
        q, k, v, attn_bias=own(q.shape[2], k.shape[2])
    )
    return output, torch.autograd.grad(output.square().mean(), own.slopes)[0]


def plain(q, k, v, slopes):
    """The same, by torch's attention; a matrix for each head is kept for the gradient."""
    import torch

    slopes, at = torch.nn.Parameter(slopes), torch.arange(q.shape[2])
    offsets = at - at[:, None]
    bias = (-slopes[:, None, None] * offsets.abs().sqrt()).masked_fill(
        offsets > 0, -torch.inf
    )
    output = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=bias
    )
    return output, torch.autograd.grad(output.square().mean(), slopes)[0]


def shown(answer, _):
    """The gradient of one slope."""
    return f"gradient of the first slope {answer[1][0]:.6f}"


def agree(answers, _):
    """Output and gradient are the same up to rounding in float32."""
    ours = answers["posembed"]
    assert all(
        torch.allclose(each, own, atol=1e-5)
        for two in answers.values()
        for each, own in zip(two, ours, strict=True)
    )
