"""Our models with the weights of transformers', against those models themselves."""

import pytest
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForQuestionAnswering,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    GPT2Model,
    LlamaConfig,
    LlamaModel,
)

from posembed.errors import ModelInputError
from posembed.models import (
    LanguageModel,
    MaskedLanguageModel,
    from_transformers,
    positions_from_mask,
    use_scheme,
)

VOCAB, WIDTH, LAYERS, LENGTH = 50, 32, 3, 16
GPT2 = {"vocab_size": VOCAB, "n_layer": LAYERS, "n_embd": WIDTH, "n_head": 4, "n_positions": LENGTH}
GPT2 |= {"bos_token_id": 1, "eos_token_id": 1}
BERT = {"vocab_size": VOCAB, "num_hidden_layers": LAYERS, "hidden_size": WIDTH, "num_attention_heads": 4}
BERT |= {"intermediate_size": 3 * WIDTH, "max_position_embeddings": LENGTH}
IDS = torch.arange(24).view(2, 12)
# Three tokens of padding behind the second text; before it where a text is to go on.
BEHIND = (torch.arange(12) < torch.tensor([[12], [9]])).long()
BEFORE = BEHIND.flip(1)


def gpt2(kind=GPT2LMHeadModel, **changes):
    return perturbed(kind(GPT2Config(**GPT2 | changes)))


def bert(kind=BertModel, **changes):
    return perturbed(kind(BertConfig(**BERT | changes)))


def perturbed(model):
    """Every number differs from the others, those of norms and biases too: no two can be exchanged unnoticed."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return model.eval()


def largest(ours, theirs, mask=None):
    """The largest difference of states or logits, at real tokens."""
    real = slice(None) if mask is None else mask.bool()
    return (ours[real] - theirs[real]).abs().max().item()


def agrees(ours, theirs, mask=None):
    assert len(ours) == len(theirs) == LAYERS + 1
    return max(largest(*pair, mask) for pair in zip(ours, theirs, strict=True)) <= 1e-5


@pytest.mark.parametrize("changes", [{}, {"n_inner": 40, "activation_function": "relu", "layer_norm_epsilon": 1e-2}])
@pytest.mark.parametrize("mask", [None, BEHIND, BEFORE])
@torch.no_grad()
def test_gpt2(mask, changes):
    theirs = gpt2(**changes)
    ours = from_transformers(theirs)
    positions = None if mask is None else positions_from_mask(mask)
    expected = theirs(IDS, attention_mask=mask, position_ids=positions, output_hidden_states=True)
    assert type(ours) is LanguageModel
    assert agrees(ours.transformer.hidden_states(IDS, positions, attention_mask=mask), expected.hidden_states, mask)
    assert largest(ours(IDS, positions, attention_mask=mask), expected.logits, mask) <= 1e-5


@pytest.mark.parametrize("changes", [{}, {"hidden_act": "gelu_new", "layer_norm_eps": 1e-2, "type_vocab_size": 3}])
@pytest.mark.parametrize("mask", [None, BEHIND])
@torch.no_grad()
def test_bert(mask, changes):
    theirs = bert(**changes)
    ours = from_transformers(theirs)
    expected = theirs(IDS, attention_mask=mask, output_hidden_states=True).hidden_states
    assert agrees(ours.hidden_states(IDS, attention_mask=mask), expected, mask)


@torch.no_grad()
def test_a_pair_of_texts():
    theirs, types = bert(), (torch.arange(12) > 6).long().expand(2, -1)
    ours = from_transformers(theirs)
    expected = theirs(IDS, token_type_ids=types, attention_mask=BEHIND, output_hidden_states=True).hidden_states
    assert agrees(ours.hidden_states(IDS, attention_mask=BEHIND, token_types=types), expected, BEHIND)
    assert largest(ours(IDS, attention_mask=BEHIND), expected[-1], BEHIND) > 0.1


@pytest.mark.parametrize("mask", [None, BEHIND])
@torch.no_grad()
def test_bert_guesses_hidden_words(mask):
    theirs = bert(BertForMaskedLM)
    ours = from_transformers(theirs)
    assert type(ours) is MaskedLanguageModel
    assert largest(ours(IDS, attention_mask=mask), theirs(IDS, attention_mask=mask).logits, mask) <= 1e-5


@torch.no_grad()
def test_the_real_encoder(encoder):
    texts = ["No table tells me where I stand.", "A shorter one."]
    inputs = encoder.tokenizer(texts, padding=True, return_tensors="pt")
    mask = inputs["attention_mask"]
    assert not mask.all()
    ours = from_transformers(encoder.model)
    expected = encoder.model(**inputs, output_hidden_states=True).hidden_states
    states = ours.hidden_states(inputs["input_ids"], attention_mask=mask, token_types=inputs["token_type_ids"])
    assert max(largest(*pair, mask) for pair in zip(states, expected, strict=True)) <= 1e-5


def test_dtype_mode_and_dropout_are_theirs():
    theirs = gpt2(embd_pdrop=0.3, attn_pdrop=0.3, resid_pdrop=0.3).double()
    ours = from_transformers(theirs.train())
    assert ours.training and not from_transformers(theirs.eval()).training
    assert {parameter.dtype for parameter in ours.parameters()} == {torch.float64}
    assert ours.transformer.config.dropout == 0.3
    assert all(parameter.requires_grad for parameter in ours.parameters())


def test_no_random_number_is_drawn():
    theirs = gpt2()
    before = torch.get_rng_state()
    from_transformers(theirs)
    assert torch.equal(before, torch.get_rng_state())


class Changed(GPT2LMHeadModel):
    """A subclass may compute anything."""


def untied():
    return gpt2(tie_word_embeddings=False)


def with_another_table():
    model = gpt2()
    model.transformer.wpe = torch.nn.Embedding(LENGTH + 1, WIDTH)
    return model


def with_a_scheme():
    model = gpt2()
    use_scheme(model, "alibi")
    return model


def with_an_adapter():
    model = bert()
    model.encoder.layer[0].attention.self.query.adapter = torch.nn.Linear(WIDTH, 2)
    return model


def in_whole_numbers():
    model = gpt2()
    weight = torch.nn.Parameter(torch.zeros(VOCAB, WIDTH, dtype=torch.int8), requires_grad=False)
    model.transformer.wte.weight = weight
    return model


def without_numbers():
    with torch.device("meta"):
        return GPT2Model(GPT2Config(**GPT2))


def llama():
    return LlamaModel(LlamaConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2))


KNOWN = "give one of BertForMaskedLM, BertModel, GPT2LMHeadModel, GPT2Model of transformers"


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (llama, f"LlamaModel cannot be taken over; {KNOWN}"),
        (lambda: bert(BertForQuestionAnswering), f"BertForQuestionAnswering cannot be taken over; {KNOWN}"),
        (lambda: gpt2(Changed), f"Changed cannot be taken over; {KNOWN}"),
        (lambda: "gpt2", f"str cannot be taken over; {KNOWN}"),
        (with_a_scheme, "there is a position scheme in this GPT2LMHeadModel; remove it first"),
        (untied, "lm_head.weight differs from transformer.words.weight, which serves here for both"),
        (with_another_table, "transformer.position_scheme.weight has shape (17, 32), by its config (16, 32)"),
        (with_an_adapter, "it has encoder.layer.0.attention.self.query.adapter.weight, for which there is no place"),
        (in_whole_numbers, "transformer.wte.weight is torch.int8; load the model with its weights in memory"),
        (without_numbers, "wte.weight is on the meta device; load the model with its weights in memory"),
        (lambda: gpt2(scale_attn_by_inverse_layer_idx=True), "its scale_attn_by_inverse_layer_idx is True; only False"),
        (lambda: gpt2(add_cross_attention=True), "its add_cross_attention is True; only False can be taken over"),
        (lambda: gpt2(activation_function="silu"), "its activation is 'silu'; those that can be taken over are gelu, "),
        (lambda: gpt2(attn_pdrop=0.3), "it has several rates of dropout (embd_pdrop=0.1, attn_pdrop=0.3, resid_pdrop"),
    ],
)
def test_what_cannot_be_taken_over(make, message):
    with pytest.raises(ModelInputError) as caught:
        from_transformers(make())
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
