# %% After NoPos
import numpy as np

# Holds: "Leaving RoPE out of that layer cost nothing that three seeds could show"
# Holds: "**Our last layer of four did without RoPE, and our finished models could not do without the positions they"
# The table of the first screen.
dropped = {
    name: np.mean([run.metrics["dropped"]["loss_by_position"][4:] for run in study.by_arm[f"causal, {name}"]])
    for name in ("learned", "sinusoidal", "alibi", "rope")
}
assert [round(float(f(dropped.values())), 1) for f in (min, max)] == [3.4, 3.8]
costs = study.contrasts["mean"]
assert round(-costs["causal: rope minus nopos"], 2) == 0.18
assert (
    round(costs["past the trained length: rope"], 1) == 1.7 and round(costs["past the trained length: nopos"], 1) == 1.0
)
behind_by = (loss[three] - loss[all_four]).dropna()
assert len(behind_by) == 3 and not interval(behind_by).excludes_zero
# Holds: "**How sure:** three to five seeds at 0.2 million parameters; of the layers only"
assert {run.config.layers_with_positions for run in study.by_arm[three]} == {(0, 1, 2)}
assert {round(run.metrics["parameters"] / 1e6, 1) for run in study.by_arm[all_four]} == {0.2}
# Holds: "RoPE in all four layers and trained with RoPE in three: both at 1.25."
# Holds: "Trained with no positions: 1.43. RoPE taken out when trained: 3.4 to 3.6, right of a line at 3.03."
# By definition: "The line is what guessing by frequency gives."
# Holds: "A model that was trained without positions does well; one from which they are taken afterwards is worse"
at = [loss[arm].mean() for arm in (all_four, three, "causal, nopos")]
assert [round(each, 2) for each in at] in ([1.25, 1.25, 1.43], [1.25, 1.26, 1.43])
assert [round(each, 1) for each in (min(taken_out), max(taken_out))] == [3.4, 3.6]
assert round(frequency_loss(), 2) == 3.03 < min(taken_out)

# %% Positions in some layers
# Holds: "No difference that three seeds could show, up to the trained length or past it; up to it the model with"
assert not at_63.excludes_zero and not past_63.excludes_zero
assert (behind_by > 0).all() and (behind_by < 0.01).all()
assert str(at_63).startswith("0.004 (-0.001 to 0.010") and past_63.low > -0.03
# Holds: "We compare the loss up to the trained length of 64 characters, and at positions 64 to 255."
config = study.by_arm[three][0].config
assert (config.length, config.test_length) == (64, 256)
# Holds: "In our study RoPE acts in three layers of four, and the last has none."
assert config.n_layers == 4 and config.layers_with_positions == (0, 1, 2)
# By definition: "No offset in them is ever larger than the window"
# By definition: "It makes the rotations cheaper."

# %% Taking positions away
# Holds in After NoPos: "With table, sines, biases or rotations taken out afterwards, each of our four kinds"
# Holds: "In the mean over the seeds none of them is better than guessing"
of_dropped = without
assert all(its.mean > frequency_loss() for its in of_dropped.values())
# Holds: "In our own try the rate was wrong, also for the models that *kept* their positions"
for name in ("learned", "rope"):
    kept, dropped = (loss[f"causal, {name}, further{more}"].dropna() for more in ("", " without"))
    assert interval((kept - loss[f"causal, {name}"]).dropna()).low > 0
    assert interval((dropped - kept).dropna()).low > 0.2
# Holds: "Without RoPE in its last layer alone this model loses 0.3 nats; without it in the third a little less, and in"
# Holds: "So the last layer can do without RoPE, and its finished weights cannot"
each_costs = [loss_without([k]) - loss_without([]) for k in range(4)]
assert round(each_costs[3], 2) == 0.29 and 0.2 < each_costs[2] < each_costs[3] < min(each_costs[:2])
# Holds: "Without RoPE in its second layer the finished model loses 0.8 nats, more than without it in any other."
# Holds: "This one does, with the weights that it has."
assert round(each_costs[1], 2) == 0.82 == round(max(each_costs), 2)
# By definition: "What a finished model loses shows what it relies on, not what a new one would need."

# %% What the models of today do
# Holds: "though for four of these eight one must know their code"
read_off = [name for name, its in configs.items() if hasattr(its, "no_rope_layers") or hasattr(its, "layer_rope_theta")]
assert len(configs) == 8 and len(read_off) == 4
# Holds: "In SmolLM3 these layers differ from the others in nothing else."
assert set(configs["SmolLM3"].layer_types) == {"full_attention"}
# Holds: "In the six that stand below Mistral Large 4 in the picture they are also the only ones that see the whole"
assert [*configs][:2] == ["SmolLM3", "Mistral Large 4"] and configs["EXAONE 4"].sliding_window
for name in [*configs][2:]:
    whole = [k for k, kind in enumerate(configs[name].layer_types) if "full" in kind]
    assert whole == layers_without(configs[name]), name
# Holds: "An option named `no_rope_layers`, whose 1 means"
assert configs["Llama 4"].no_rope_layers[:4] == [1, 1, 1, 0]
assert configs["Llama 4"].attn_temperature_tuning
# By definition: "It reads tokens one after the other"
# By definition: "It has its own position table."
# Holds: "In each every fourth layer goes without."
# Holds: "Seven leave RoPE out of every fourth layer, counted from the fourth, and Muse Spark of every fourth, counted"
# Holds: "Every fourth is a dot: counted from the fourth in seven models, and from the second in Muse Spark"
# Holds in What to remember: "Eight of today's large models have RoPE in some layers"
for name, its in configs.items():
    start = 1 if name == "Muse Spark" else 3
    assert layers_without(its) == [*range(start, its.num_hidden_layers, 4)], name
    assert 32 <= its.num_hidden_layers <= 72
assert configs["Muse Spark"].num_hidden_layers - 1 in layers_without(configs["Muse Spark"])

# The same of two whose configuration does not say it: which layers turn.
import numpy as np
from transformers import Cohere2Config, Exaone4Config
from transformers.models.cohere2 import modeling_cohere2 as cohere
from transformers.models.exaone4 import modeling_exaone4 as exaone


def turning(code, model, called):
    turn, calls = code.apply_rotary_pos_emb, []
    code.apply_rotary_pos_emb = lambda *of: calls.append(1) or turn(*of)
    for layer in model.eval().layers:
        layer.register_forward_hook(lambda *_: called.append(len(calls)))
    model(torch.arange(3, 9)[None])
    code.apply_rotary_pos_emb = turn
    return np.diff([0, *called])


tiny = {"vocab_size": 20, "hidden_size": 16, "intermediate_size": 16}
tiny |= {"num_attention_heads": 2, "num_key_value_heads": 2}
tiny |= {"num_hidden_layers": 8, "pad_token_id": 0}
tiny |= {"bos_token_id": 1, "eos_token_id": 2}
for code, kind, config in (
    (cohere, cohere.Cohere2Model, Cohere2Config(**tiny)),
    (exaone, exaone.Exaone4Model, Exaone4Config(**tiny)),
):
    n_turned = turning(code, kind(config), [])
    assert n_turned.tolist() == [1, 1, 1, 0] * 2
    assert layers_without(config) == [3, 7]

import importlib
import inspect

# Holds: "and so do Jamba and Nemotron-H"
# Holds: "Others of the kind, Bamba and Qwen3-Next, keep RoPE."
for name, kind, turns in (
    ("jamba", "Jamba", False),
    ("nemotron_h", "NemotronH", False),
    ("bamba", "Bamba", True),
    ("qwen3_next", "Qwen3Next", True),
):
    module = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
    attention = inspect.getsource(getattr(module, f"{kind}Attention").forward)
    assert ("apply_rotary_pos_emb" in attention) == turns, name

# Of the other two it is in their code.
for name, where in (
    ("afmoe", "if self.is_local_attention:"),
    ("exaone_moe", "self.sliding_window is None or self.is_"),
):
    module = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
    text = inspect.getsource(module)
    guarded = text[text.index(where, text.index("position_embeddings")) :]
    assert "apply_rotary_pos_emb" in guarded.split("past_key_values")[0], name
# Holds in The first token as a sink: "gpt-oss and the Granite models with windows have a number in each head instead"
for name in ("gpt_oss", "granite_swa", "granitemoe_swa"):
    module = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
    assert "self.sinks = nn.Parameter(torch." in inspect.getsource(module), name
# By definition in The first token as a sink: "causal language models give much of their attention to the first token"

# Holds in What this does not show: "rates of this study come from runs of 500 steps, which took too high ones for the"
from posembed import load_study
from posembed.stored import load_plan

of_whole = load_study("own-rates").by_arm
for arm in load_plan("nopos").arms:
    if arm.name in ("causal, learned", "causal, sinusoidal"):
        assert {trial.steps for trial in arm.trials} == {500}
        its = of_whole[f"{arm.name.removeprefix('causal, ')}, start B"]
        assert study.by_arm[arm.name][0].config.learning_rate > its[0].config.learning_rate

# %% Exercises
# Holds: "The second, the one that is missed most: 2.73 nats."
# Holds: "With the first or the fourth alone the model is a little better than guessing by frequency"
kept_alone = [loss_without({*range(4)} - {k}) for k in range(4)]
assert round(min(kept_alone), 2) == 2.73 == round(kept_alone[1], 2)
assert (
    frequency_loss() - 0.1 < min(kept_alone[0], kept_alone[3]) and max(kept_alone[0], kept_alone[3]) < frequency_loss()
)
assert kept_alone[2] > frequency_loss()
# Holds: "Between 6 and 15 by this rule; with Student's factor in place"
needed = with_student.values()
assert (min(needed), max(needed)) == (9, 17)
# The exercise takes the table's number by either rule.
assert 10 <= with_student["learned"] <= 16
# Holds: "With the three seeds of most schemes here, a difference of a few"
of_schemes = [name for name in study.by_arm if name.startswith("causal, ") and name.count(",") == 1]
few = [name for name in of_schemes if len(study.by_arm[name]) == 3 and " in " not in name and "buckets" not in name]
assert len(few) == 7
half = []
for name in few:
    its = interval((loss[name] - loss["causal, rope"]).dropna())
    half.append((its.high - its.low) / 2)
assert 0 < sum(each < 0.005 for each in half) < len(few) / 2
assert str(at_63) == "0.004 (-0.001 to 0.010, 3 seeds)"

# Holds: "Between 6 and 15 by this rule; with Student's factor in place of the 2, between 9 and 17."
spread = [(loss["causal, nopos"] - loss[f"causal, {name}"]).std() for name in with_student]
by_rule = [round((2 * s / 0.005) ** 2) for s in spread]
assert (min(by_rule), max(by_rule)) == (6, 15)
# Holds in What to remember: "Ours with RoPE in three of four are behind RoPE in all by less than 0.01"
# Holds in What to remember: "Our models rely on the positions that they were given."
# By definition in What to remember: "What a finished model loses with a part says what it relies on."
