# %% Nothing else is changed
# Holds in What to remember: "The scheme's parameters are trained and saved with the model."
assert torch.allclose(again(ids).logits, expected, atol=1e-6)
assert torch.equal(again.position_scheme.weight, learned_bias)
try:
    alone(ids[:, :4])
except posembed.PosembedError as error:
    assert "was saved with a scheme" in str(error)
else:
    raise AssertionError("a model with its former positions runs")

# Holds: "Of these three, no positions at all leave the outputs nearest"
assert left["nopos"] == max(left.values()) < 0.9
assert left["sinusoidal"] < others.mean()
row = scheme("sinusoidal", d_model=384).add(torch.zeros(1, 1, 384), torch.tensor([5]))
word_rows = encoder.get_input_embeddings()(words)[0]
assert row.norm() > 5 * word_rows.norm(dim=-1).mean()

# The small GPT-2's table, and what a longer text asks of it.
# Holds in GPT-2 with ALiBi: "The small GPT-2 below has a table of 16 positions."
assert gpt2.config.n_positions == len(gpt2.transformer.wpe.weight) == 16
# Holds in What to remember: "The scheme's parameters are trained and saved with the model."
with use_scheme(gpt2, "t5"):
    fresh = gpt2.position_scheme.weight
    assert fresh is dict(gpt2.named_parameters())["position_scheme.weight"]
    assert "position_scheme.weight" in gpt2.state_dict()
    assert not torch.allclose(fresh, learned_bias)
assert "position_scheme.weight" not in gpt2.state_dict()

# The same of who sees the scheme's parameters.
# Holds: "so an optimizer that is made there sees them"
early = torch.optim.AdamW(gpt2.parameters(), lr=1e-2)
with use_scheme(gpt2, "t5"):
    weight = gpt2.position_scheme.weight
    inside = torch.optim.AdamW(gpt2.parameters(), lr=1e-2)
    for optimizer, sees in ((early, False), (inside, True)):
        known = {id(p) for each in optimizer.param_groups for p in each["params"]}
        assert (id(weight) in known) == sees

# And of a scheme that was given as an object.
# Holds: "a scheme that was given as an object or by its import path"
drawn = {"d_model": 32, "n_positions": 16}
with use_scheme(gpt2, scheme("learned", **drawn)), TemporaryDirectory() as kept:
    expected = gpt2(short).logits
    gpt2.save_pretrained(kept)
    again = load_with_scheme(kept, scheme("learned", **drawn)).model
    try:
        load_with_scheme(kept)
    except posembed.PosembedError as error:
        assert "give it again, as scheme=: no config holds an object" in str(error)
    else:
        raise AssertionError("an object comes back by itself")
assert torch.allclose(again(short).logits, expected, atol=1e-6)

# And of `from_pretrained`, here and where nothing is known of posembed.
import subprocess

load = "import sys; from transformers import GPT2LMHeadModel as Model; "
load += "Model.from_pretrained(sys.argv[1])"
other = {"attn_implementation": "sdpa"}
with use_scheme(gpt2, "t5"), TemporaryDirectory() as kept:
    gpt2.save_pretrained(kept)
    former = GPT2LMHeadModel.from_pretrained(kept, **other)
    words = [sys.executable, "-c", load, kept]
    told = subprocess.run(words, capture_output=True, text=True)
# Holds: "`from_pretrained` alone refuses such a folder, or makes a model that"
assert told.returncode != 0
assert 'attn_implementation="posembed"` is not supported' in told.stderr
assert torch.allclose(former(short).logits, gpt2(short).logits, atol=1e-6)

# %% Exercises
# Holds: "With a scheme that adds vectors it does, and with FIRE from position"
counted = (mask.cumsum(dim=1) - 1).clamp(min=0)
with use_scheme(gpt2, "sinusoidal"):
    own_count = gpt2(batch, attention_mask=mask, position_ids=counted)
    no_count = gpt2(batch, attention_mask=mask)
    unpadded = gpt2(ids[:, :25]).logits[0]
    options = {"max_new_tokens": 5, "do_sample": False, "pad_token_id": 0}
    longer = gpt2.generate(batch, attention_mask=mask, **options)[1, 40:]
    expected = gpt2.generate(ids[:, :25], **options)[0, 25:]
with use_scheme(gpt2, "fire") as fire:
    batched = {"attention_mask": mask}
    as_made = gpt2(batch, **batched).logits[1, 15:]
    assert torch.allclose(as_made, gpt2(ids[:, :25]).logits[0], atol=1e-4)
    # With an L of 0 it divides by the query's position from the first one on.
    for name, number in fire.scheme.named_parameters():
        if name.endswith("multiplier"):
            torch.nn.init.zeros_(number)
    moved = gpt2(batch, **batched).logits[1, 15:]
    assert not torch.allclose(moved, gpt2(ids[:, :25]).logits[0], atol=1e-4)

# The same of ALiBi, and of counting.
# Holds: "ALiBi looks at distances alone, so it does not matter that the text"
assert mask[1, :15].sum() == 0 and torch.allclose(together, alone, atol=1e-5)
assert torch.allclose(own_count.logits[1, 15:], unpadded, atol=1e-5)
assert not torch.allclose(no_count.logits[1, 15:], unpadded, atol=1e-2)
assert torch.equal(longer, expected)

# Holds in A position scheme in your model: "GPT-2 and BERT add a learned {term}`position table` to their"
assert len(posembed.load_table(gpt2)) == 16 and len(posembed.load_table(bert))
try:
    posembed.load_table(small_llama)
except posembed.PosembedError as error:
    assert "rotary" in str(error)
else:
    raise AssertionError("a rotary model has a table")

# %% What to remember
# Holds: "`use_scheme(model, scheme)` puts a scheme into GPT-2, BERT, Llama and"
for model in (gpt2, bert, small_llama):
    weights = {name: w.clone() for name, w in model.state_dict().items()}
    for name in posembed.schemes():
        if name == "forgetting" or (model is bert and name in ("xpos", "fire", "cope", "scaled_logits")):
            continue  # it wants tokens, which are not handed on; not defined for a model that looks both ways
        with use_scheme(model, name):
            model(short)
    assert weights.keys() == model.state_dict().keys()
    assert all(torch.equal(w, model.state_dict()[k]) for k, w in weights.items())
try:
    use_scheme(torch.nn.Linear(2, 2), "rope")
except posembed.PosembedError as error:
    assert all(kind in str(error) for kind in ("gpt2", "bert", "llama"))
else:
    raise AssertionError("a linear layer has taken a scheme")
# Holds: "The weights stay; how much of what they have learned is left with"
assert all(cosine < 0.9 for cosine in left.values())
