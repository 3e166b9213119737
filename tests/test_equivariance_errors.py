"""Input that no verdict can come from: a named error whose one line says what to do."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from refusals import refused
from small_models import build
from torch import nn
from transformers import (
    Dinov2Config,
    Dinov2Model,
    PerceiverConfig,
    PerceiverModel,
    SiglipTextConfig,
    SiglipTextModel,
    YolosConfig,
    YolosModel,
)

from posembed import check_equivariance
from posembed.errors import EquivarianceInputError

pytestmark = pytest.mark.bad_input
X = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
SIGLIP = SiglipTextConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, vocab_size=9)
DINOV2 = Dinov2Config(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, image_size=8, patch_size=4)
YOLOS = YolosConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, image_size=[8, 8], patch_size=4)
PERCEIVER = PerceiverConfig(
    num_latents=3, d_latents=8, d_model=8, num_self_attends_per_block=1, num_self_attention_heads=2
)
IDS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])


def spoiled(value):
    return X.index_fill(1, torch.tensor([2]), value)


@dataclasses.dataclass
class Bad:
    # What the message must speak of: what was given, and what to do.
    says: list[str]
    x: object = None
    fn: object = torch.relu
    options: dict = dataclasses.field(default_factory=dict)


def one_place(x, value):
    """Bad only where the first token is not the first any more, so for permuted input alone."""
    return x if torch.equal(x, X) else x.index_fill(1, torch.tensor([2]), value)


BAD = {
    "a list": Bad(["tensor", "list"], [[1.0, 2.0]]),
    "a number": Bad(["tensor", "float"], 3.0),
    "nothing": Bad(["tensor", "NoneType"], None),
    "no axes": Bad(["()", "axis 1", "seq_dim="], torch.tensor(1.0)),
    "no axes, seq_dim=0": Bad(["()", "axis 0", "seq_dim="], torch.tensor(1.0), options={"seq_dim": 0}),
    "one axis": Bad(["(5,)", "axis 1", "seq_dim="], torch.arange(5.0)),
    "axis 3 of three": Bad(["(2, 5, 8)", "axis 3", "seq_dim="], X, options={"seq_dim": 3}),
    "axis -4 of three": Bad(["(2, 5, 8)", "axis -4", "seq_dim="], X, options={"seq_dim": -4}),
    "an empty batch": Bad(["(0, 5, 8)", "empty", "give it"], torch.zeros(0, 5, 8)),
    "an empty sequence": Bad(["(2, 0, 8)", "empty", "at least two tokens"], torch.zeros(2, 0, 8)),
    "no features": Bad(["(2, 5, 0)", "empty", "give it"], torch.zeros(2, 5, 0)),
    "one token": Bad(["one token", "give it at least two"], X[:, :1]),
    "equal tokens": Bad(["all tokens of x are equal", "give it different ones"], X[:, :1].expand(2, 5, 8)),
    "equal ids": Bad(["all tokens of x are equal", "give it different ones"], torch.full((2, 5), 7)),
    "NaN in x": Bad(["x holds NaN or infinity", "mend"], spoiled(torch.nan)),
    "infinity in x": Bad(["x holds NaN or infinity", "mend"], spoiled(-torch.inf)),
    "NaN in fn(x)": Bad(["fn(x) holds NaN", "mend"], X, lambda x: x.log()),
    "infinity in fn(x)": Bad(["fn(x) holds NaN or infinity"], X, lambda x: x / 0),
    "NaN for permuted x": Bad(["fn of the permuted x"], X, lambda x: one_place(x, torch.nan)),
    "infinity for permuted x": Bad(["fn of the permuted x"], X, lambda x: one_place(x, torch.inf)),
    "no features left": Bad(["empty", "(2, 5, 0)"], X, lambda x: x[..., :0]),
    "the tokens of all rows on one axis": Bad(["(10, 8)", "output="], X, lambda x: x.reshape(-1, 8)),
    "one row without its batch axis": Bad(["(5, 8)", "output="], X[:1], lambda x: x[0]),
    "scores of channels-first x": Bad(["axis 2", "(2, 5)"], X.mT, lambda x: x.sum(1), {"seq_dim": 2}),
    "an image model": Bad(["ViTModel takes no inputs_embeds"], torch.rand(1, 3, 8, 8), build("vit")),
    "an image model without an encoder": Bad(["ViTModel takes no", "of their vectors, which calls"], X, build("vit")),
    "an image model with one": Bad(["such as lambda x: model.encoder(x)"], X, Dinov2Model(DINOV2)),
    "an image model whose encoder needs more": Bad(["of their vectors, which calls its"], X, YolosModel(YOLOS)),
    "a Perceiver": Bad(["5 tokens", "(2, 3, 8)", "output="], X, PerceiverModel(PERCEIVER)),
    "two towers given vectors": Bad(["CLIPModel takes no", "give model.text_model and ids"], X, build("clip")),
    "an encoder-decoder of sound": Bad(["reads two sequences", "such as model.get_decoder()"], X, build("whisper")),
    "a sound model": Bad(["WhisperEncoder takes no input_ids"], IDS, build("whisper").encoder),
    "a text tower given vectors": Bad(["CLIPTextModel takes no inputs_embeds; give ids"], X, build("clip").text_model),
    "SigLIP's text tower": Bad(["SiglipTextModel takes no inputs_embeds; give ids"], X, SiglipTextModel(SIGLIP)),
    "a model of two towers": Bad(
        ["CLIPModel cannot be called with this x as input_ids alone", "of it, such as model.text_model"],
        IDS,
        build("clip"),
    ),
    "another width": Bad(["GPT2Model cannot be called with", "(The size of"], X, build("gpt2")),
    "another format": Bad(["x is of torch.float32 and the module of torch.float16; give"], X, nn.Linear(8, 8).half()),
    "an encoder-decoder": Bad(["T5Model reads two sequences", "get_encoder()"], IDS, build("t5")),
    "another encoder-decoder": Bad(["BartModel reads two sequences"], X, build("bart")),
    "torch's encoder-decoder": Bad(["Transformer needs src, tgt", "stay"], X, nn.Transformer(8, 2, 1, 1, 8)),
    "torch's attention": Bad(
        ["MultiheadAttention needs query, key, value", "lambda x: fn(x, x, x)"], X, nn.MultiheadAttention(8, 2)
    ),
    "two arguments": Bad(["needs x, mask, and x is one input", "lambda x: fn(x, x)"], X, lambda x, mask: x),
    "a name for fn": Bad(["fn is a str", "loaded before"], X, "gpt2"),
    "a number for fn": Bad(["fn is a int", "give a function"], X, 5),
    "a class": Bad(["fn is the class Linear", "made"], X, nn.Linear),
    "a choice that is no tensor": Bad(
        ["output='a' gave a tuple of 2", "tensor"], X, lambda x: {"a": (x, x)}, {"output": "a"}
    ),
    "longer": Bad(["5 tokens on axis 1", "(2, 6, 8)", "output="], X, lambda x: F.pad(x, (0, 0, 1, 0))),
    "shorter": Bad(["5 tokens on axis 1", "(2, 4, 8)", "output="], X, lambda x: x[:, 1:]),
    "one left": Bad(["5 tokens", "(2, 1, 8)", "output="], X, lambda x: x.mean(1, keepdim=True)),
    "none left": Bad(["empty", "(2, 0, 8)"], X, lambda x: x[:, :0]),
    "another axis moved": Bad(["5 tokens", "(2, 8, 5)"], X, lambda x: x.mT),
    "ids to fewer ids": Bad(["5 tokens", "(2, 4)", "output="], IDS, lambda ids: ids[:, 1:]),
    "ids to more states": Bad(["(2, 6, 4)"], IDS, lambda ids: torch.zeros(2, 6, 4)),
    "ids to one state": Bad(["(2, 1, 9)"], IDS, lambda ids: F.one_hot(ids, 10)[:, :1, 1:].float()),
    "no result": Bad(["NoneType", "output="], X, lambda x: None),
    "a number from fn": Bad(["float", "output="], X, lambda x: x.sum().item()),
    "an array": Bad(["ndarray", "output="], X, lambda x: x.numpy()),
    "a tuple": Bad(["a tuple of 2", "output="], X, lambda x: (x, x)),
    "a tuple of one": Bad(["a tuple of 1", "output="], X, lambda x: (x,)),
    "a list of tensors": Bad(["a list of 1", "output="], X, lambda x: [x]),
    "an unknown dict": Bad(["a dict with a, b", "output="], X, lambda x: {"a": x, "b": x}),
    "an empty dict": Bad(["a dict with", "output="], X, lambda x: {}),
    "a missing key": Bad(["'c'", "a dict with a"], X, lambda x: {"a": x}, {"output": "c"}),
    "a missing attribute": Bad(["'c'", "Tensor"], X, torch.relu, {"output": "c"}),
    "a missing index": Bad(["5", "a tuple of 1"], X, lambda x: (x,), {"output": 5}),
    "an index into a dict": Bad(["0", "a dict with a"], X, lambda x: {"a": x}, {"output": 0}),
    "no permutations": Bad(["n_permutations is 0", "at least"], X, options={"n_permutations": 0}),
    "negative permutations": Bad(["n_permutations is -3", "at least"], X, options={"n_permutations": -3}),
    "a seed in words": Bad(["seed is 'x'", "whole number"], X, options={"seed": "x"}),
    "half a permutation": Bad(["n_permutations is 2.5", "whole number"], X, options={"n_permutations": 2.5}),
    "a tolerance of text": Bad(["tolerance is '1e-3'; it must be zero or"], X, options={"tolerance": "1e-3"}),
    "half an axis": Bad(["axis 1.5", "seq_dim="], X, options={"seq_dim": 1.5}),
    "negative tolerance": Bad(["tolerance is -0.1", "zero or a positive"], X, options={"tolerance": -0.1}),
    "NaN tolerance": Bad(["tolerance is nan", "zero or a positive"], X, options={"tolerance": torch.nan}),
    "infinite tolerance": Bad(["tolerance is inf"], X, options={"tolerance": torch.inf}),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_named_error_in_one_line_that_says_what_to_do(bad):
    message = refused(EquivarianceInputError, check_equivariance, bad.fn, bad.x, **bad.options)
    assert [piece for piece in bad.says if piece not in message] == []


def test_the_encoder_that_is_named_can_be_checked():
    model = Dinov2Model(DINOV2).eval()
    assert check_equivariance(lambda x: model.encoder(x), X).verdict == "equivariant"


def test_a_perceiver_reads_a_set():
    model = PerceiverModel(PERCEIVER).eval()
    assert check_equivariance(model, X, output=lambda y: y[0].mean(dim=1)).verdict == "invariant"


def test_an_error_of_the_function_is_its_own():
    with pytest.raises(ZeroDivisionError):
        check_equivariance(lambda x: 1 / 0, X)


def test_an_error_in_output_keeps_its_cause():
    with pytest.raises(EquivarianceInputError) as caught:
        check_equivariance(lambda x: {"a": {}}, X, output=lambda y: y["a"]["b"])
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda x: x.to_sparse(), "sparse or nested"),
        (lambda x: torch.nested.nested_tensor([x[0], x[1, :2]]), "sparse or nested"),
        (lambda x: x.to("meta"), "on the meta device"),
        (lambda x: x.to(torch.float8_e4m3fn), "of float8_e4m3fn"),
    ],
)
def test_tensors_that_nothing_is_computed_with(make, said):
    x = torch.randn(2, 5, 4)
    assert f"x is {said}" in refused(EquivarianceInputError, check_equivariance, lambda x: x, make(x))
    assert f"what fn returns is {said}" in refused(EquivarianceInputError, check_equivariance, make, x)
