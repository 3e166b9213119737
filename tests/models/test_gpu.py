"""Attention on a GPU gives what the CPU gives, through FlexAttention where a scheme has a hook.

    python -m pytest --noconftest tests/models/test_gpu.py

FlexAttention counts the arguments of a hook, and cannot see them through the shape checks that conftest.py puts on.
All pass on an NVIDIA H200 with PyTorch 2.11.
"""

import pytest
import torch

from posembed import check_equivariance, scheme
from posembed.models import KeyValueCache, MultiHeadAttention

CHECKED = hasattr(MultiHeadAttention.forward, "__wrapped__")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available() or CHECKED, reason="needs a GPU, and --noconftest")
# float32 sums in another order.
FLOAT32 = {"rtol": 0, "atol": 2e-5}
SCHEMES = ["nopos", "shaw", "t5", "alibi", "rope", "xpos", "kerple", "fire", "cope", "rope+alibi"]


@pytest.fixture(autouse=True)
def _whole_float32():
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    yield
    torch.backends.cuda.matmul.allow_tf32 = before


def on_both(name, causal):
    """The same layer on the CPU and on the GPU."""
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        one = scheme(name, d_model=256, n_heads=4, n_positions=512, causal=causal)
        yield MultiHeadAttention(256, 4, one, causal=causal).eval().to(device)


def drawn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", SCHEMES)
def test_outputs_and_gradients_are_those_of_the_cpu(name, compiled):
    found = []
    for layer in on_both(name, True):
        x = drawn(2, 300, 256).to(layer.query.weight.device).requires_grad_()
        out = (torch.compile(layer) if compiled and x.is_cuda else layer)(x)
        gradients = torch.autograd.grad(out.square().mean(), [x, *layer.parameters()])
        found.append([each.detach().cpu() for each in (out, *gradients)])
    for cpu, gpu in zip(*found, strict=True):
        torch.testing.assert_close(gpu, cpu, **FLOAT32)


@pytest.mark.parametrize("name", SCHEMES)
def test_padded_and_cached_texts_are_those_of_the_cpu(name):
    mask, found = torch.ones(2, 300, dtype=torch.bool), []
    mask[0, :40] = False
    for layer in on_both(name, True):
        device, cache = layer.query.weight.device, KeyValueCache()
        x, seen = drawn(2, 300, 256).to(device), mask.to(device)
        with torch.no_grad():
            steps = [
                layer(x[:, a:b], attention_mask=seen[:, :b], cache=cache) for a, b in [(0, 256), (256, 257), (257, 300)]
            ]
        found.append(torch.cat(steps, 1).cpu()[mask])
    torch.testing.assert_close(found[1], found[0], **FLOAT32)


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("dropout", [0.0, 1e-9], ids=["fused", "in blocks"])
def test_bfloat16_gives_what_float32_gives_but_for_rounding(name, dropout):
    cpu, gpu = on_both(name, True)
    x = drawn(2, 300, 256).bfloat16().float()
    gpu = gpu.to(torch.bfloat16).train()
    gpu.dropout = dropout  # with dropout FlexAttention is not asked
    narrow = x.cuda().to(torch.bfloat16).requires_grad_()
    found = gpu(narrow)
    (gradient,) = torch.autograd.grad(found.float().square().mean(), narrow)
    with torch.no_grad():
        wanted = cpu(x)
    assert found.dtype == gradient.dtype == torch.bfloat16 and bool(gradient.isfinite().all())
    assert float((found.float().cpu() - wanted).norm() / wanted.norm()) < 0.02


@pytest.mark.parametrize("name", SCHEMES)
def test_an_exported_layer_gives_what_the_cpu_gives(name):
    cpu, gpu = on_both(name, True)
    x = drawn(2, 300, 256)
    with torch.no_grad():
        found = torch.export.export(gpu, (x.cuda(),)).module()(x.cuda())
        torch.testing.assert_close(found.cpu(), cpu(x), **FLOAT32)


def test_equivariance_is_checked_there():
    _, blind = on_both("nopos", False)
    assert check_equivariance(blind, drawn(1, 16, 256).cuda()).verdict == "equivariant"
    _, sighted = on_both("alibi", False)
    assert check_equivariance(sighted, drawn(1, 16, 256).cuda()).verdict == "neither"


@pytest.mark.parametrize("name", ["sinusoidal", "rope", "alibi"])
def test_neighbours_stay_apart_in_bfloat16(name):
    one = scheme(name, d_model=256, n_heads=4).to("cuda", torch.bfloat16)
    far = torch.arange(999_936, 1_000_000, device="cuda")
    x = torch.ones(1, 64, 256 if name == "sinusoidal" else 64, device="cuda", dtype=torch.bfloat16)
    rows = one.bias_by_offset(far - far[-1]).T if name == "alibi" else (one.add(x, far) + one.rotate(x, far))[0]
    assert len(torch.unique(rows, dim=0)) == 64
