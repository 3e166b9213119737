"""The figures' JavaScript, run by node against what torch computes."""

import itertools

import torch
import torch.nn.functional as F
from widget_checks import run_tests, trained

from posembed import with_position_table
from posembed.widgets import LookupFigure, ShuffleFigure
from posembed.widgets.shuffle import DECIMALS, N_CHANNELS

SENTENCE = "I do like coding"


class Layer:
    """The first attention of a BERT model by its own modules and torch's kernel, in double precision."""

    def __init__(self, encoder):
        self.model, self.tokenizer = encoder
        self.attention = self.model.encoder.layer[0].attention

    def inputs(self, words, positions):
        ids = torch.tensor([self.tokenizer.convert_tokens_to_ids([word.lower() for word in words])])
        places = torch.arange(1, len(words) + 1)[None]  # behind [CLS]
        with torch.no_grad():
            if positions:
                return self.model.embeddings(input_ids=ids, position_ids=places)[0]
            with with_position_table(self.model, "zeroed"):
                return self.model.embeddings(input_ids=ids, position_ids=places)[0]

    def outputs(self, words, positions, causal):
        inputs = self.inputs(words, positions)
        with torch.no_grad():
            query, key, value = (
                module(inputs).unflatten(-1, (self.attention.self.num_attention_heads, -1)).transpose(0, 1).double()
                for module in (self.attention.self.query, self.attention.self.key, self.attention.self.value)
            )
            heads = F.scaled_dot_product_attention(query, key, value, is_causal=causal).transpose(0, 1).flatten(1)
            dense = self.attention.output.dense
            return F.linear(heads, dense.weight.double(), dense.bias.double())[:, :N_CHANNELS]


def test_the_reference_is_what_the_model_itself_computes(encoder):
    """The layer before its residual and norm, with nothing of ours in between."""
    layer = Layer(encoder)
    inputs = layer.inputs(SENTENCE.split(), positions=True)
    with torch.no_grad():
        states = layer.attention.self(inputs[None])[0]
        whole = layer.attention.output.dense(states)[0, :, :N_CHANNELS]
    wanted = layer.outputs(SENTENCE.split(), positions=True, causal=False)
    # Two ways to a float32 result: a few of its last places, about 1e-7 each, of numbers near 1.
    torch.testing.assert_close(whole.double(), wanted, rtol=0, atol=2e-6)


def error_of_rounded_tables(layer):
    """How far outputs may move when every number in the tables is off by half a unit of the last decimal.

    With logits off by at most e, the weights of a row change by at most exp(2 e) - 1 in all, each head's output by that
    times its largest value, plus e for the values themselves; the heads add up, and the bias is rounded too.
    """
    off = 0.5 * 10**-DECIMALS
    largest = torch.tensor(layer["values"]).abs().amax(dim=(1, 2))
    return float((torch.expm1(torch.tensor(2 * off)) * largest + off).sum() + off)


def test_the_tables_are_finer_than_what_the_figure_calls_unchanged(encoder):
    """Half a percent of the largest output: twice the error of one, since a change is a difference, must be below."""
    figure = ShuffleFigure(encoder, SENTENCE)
    largest = Layer(encoder).outputs(figure.words, positions=False, causal=False).abs().max()
    assert 2 * error_of_rounded_tables(figure.layer) < 0.005 * largest


def test_shuffle(encoder, tmp_path):
    figure = ShuffleFigure(encoder, SENTENCE)
    layer = Layer(encoder)
    cases = [
        {
            "order": order,
            "positions": positions,
            "causal": causal,
            "outputs": layer.outputs([figure.words[word] for word in order], positions, causal).tolist(),
        }
        for order in itertools.permutations(range(4))
        for positions in (False, True)
        for causal in (False, True)
    ]
    fixtures = {"layer": figure.layer, "cases": cases, "tolerance": error_of_rounded_tables(figure.layer)}
    run_tests("shuffle", tmp_path, figure.source(), fixtures, private="inputs, softmax, move, largest, percent")


def test_lookup(tmp_path):
    figure = LookupFigure()
    cases = [trained(figure, padding, n_steps=3) for padding in (False, True)]
    run_tests("lookup", tmp_path, figure.source(), {"state": figure.state(), "cases": cases}, private="shown, PAD")
