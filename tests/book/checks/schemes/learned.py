# %% In code
# Holds in Learned: "A table with one trained row for each position"
assert part.weight.shape == (16, 32) and part.weight.requires_grad
# Holds in Picture: "The table of a tiny model before and after 150 steps"
assert (config.steps, config.length, config.n_layers) == (150, 32, 1)
# Holds in Picture: "It has 64 rows."
# Holds in Picture: "After training: the first 31 rows are strong"
# Holds in Picture: "The 31 rows that such texts read have grown; from row 31 on the table"
before, after = (m.transformer.position_scheme.weight for m in models.values())
assert before.shape == after.shape == (64, 32)
assert after[:31].norm(dim=1).min() > 2 * before.norm(dim=1).max()
assert torch.equal(before[31:], after[31:])
one_colour = after[:31].mean(dim=0).square().mean()
assert one_colour > 0.5 * after[:31].square().mean()
# Holds in When to use it: "there are no rows, or untrained ones"
assert len(part.weight) < 11 + 6 and torch.equal(before[63], after[63])

# The rest of it.
from transformers import BertConfig, CLIPTextConfig
from transformers.models.opt.modeling_opt import OPTLearnedPositionalEmbedding

from posembed.stored import stored_studies

# Holds in When to use it: "near positions are no more alike than far ones"
drawn = posembed.scheme("learned", d_model=768, n_positions=512).weight
alike = drawn.detach() @ drawn.detach().T / drawn.square().sum(1).mean()
assert abs(alike.diagonal(1).mean() - alike.diagonal(300).mean()) < 0.01
# Holds in When to use it: "It costs 393,216 numbers at BERT's sizes"
bert = BertConfig()
assert bert.max_position_embeddings * bert.hidden_size == 393_216
# Holds in When to use it: "BERT (512 rows), GPT-2, RoBERTa, OPT (its rows start with"
assert OPTLearnedPositionalEmbedding(8, 4).offset == 2
assert CLIPTextConfig().max_position_embeddings == 77
# Holds in When to use it: "may never have been trained; GPT-2's row 1,023 looks so"
assert stored_studies()["gpt2"].untrained_rows == (1023,)

# And of the traps.
# Holds in When to use it: "tables whose first rows are no positions, as in RoBERTa"
from transformers.models.roberta.modeling_roberta import RobertaEmbeddings

ids_of = RobertaEmbeddings.create_position_ids_from_input_ids
text = torch.full((1, 512), 5)
assert torch.equal(ids_of(text, 1)[0], torch.arange(2, 514))
roberta = torch.nn.Embedding(514, 8, padding_idx=1)
assert posembed.load_table(roberta).weight.shape == (512, 8)

# Holds in Formula: "standard deviation of 0.02"
drawn = posembed.scheme("learned", d_model=768, n_positions=512).weight
assert abs(drawn.std().item() - 0.02) < 1e-4
