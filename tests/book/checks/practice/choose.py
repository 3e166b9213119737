# %% Which positions should I use?
losses = runs.groupby("arm")["loss"].agg(list)
rises = past.groupby(runs["arm"]).agg(list)
mean = {arm: sum(values) / 5 for arm, values in losses.items()}
rise = {arm: sum(values) / 5 for arm, values in rises.items()}
# Holds: "Two panels of eight schemes, five seeds each."
# Holds: "Shaw leads above, at a product more for each query; below it is Shaw or ALiBi."
assert sorted(mean, key=mean.get)[:3] == ["shaw", "t5", "rope"] and max(mean, key=mean.get) == "nopos"
assert abs(mean["shaw"] - 1.24) < 0.006 and abs(mean["rope"] - 1.25) < 0.006 and abs(mean["nopos"] - 1.43) < 0.006
assert abs(rise["shaw"]) < 0.006 and abs(rise["alibi"]) < 0.006
assert abs(rise["nopos"] - 1.4) < 0.05 and abs(rise["t5"] - 1.8) < 0.05
assert all(2 < rise[arm] < 4 for arm in ("learned", "sinusoidal", "learnable_sinusoidal", "rope"))
contrasts = load_study("own-rates").contrasts
assert contrasts.loc["shaw, past the trained length", "holm"] > 0.05
assert len(runs) == 40 and runs["seed"].nunique() == 5
# The table: RoPE beside all but Shaw's, the scalings, the images.
for row in runs.pivot(index="seed", columns="arm", values="loss").itertuples():
    assert max(row.shaw, row.t5) < row.rope < min(row.alibi, row.learned, row.sinusoidal)
scaled = [run.metrics["loss_by_position_scaled"] for run in load_study("own-rates").by_arm["rope, start B"]]
for found in scaled:
    assert all(sum(found[name][4:]) / 28 > 1.25 + 0.3 for name in ("linear", "ntk", "yarn", "llama3"))
for arm, near, far in (("rope, long", "256", "1024"), ("rope, base 10000", "64", "256")):
    held = [its.metrics["stretched"]["yarn"] for its in load_study("length-doses").by_arm[arm]]
    assert len(held) == 5 and sum(its[far] - its[near] for its in held) / 5 < 0.2
distant = load_study("far-questions").by_arm
found = {
    arm: sum(its.metrics["asked"]["far"]["256"]["needle"] for its in distant[arm]) / 5 for arm in ("alibi", "rope")
}
assert found["alibi"] > 0.985 and round(found["rope"], 2) == 0.07
of_masked = load_study("nopos").runs.groupby("arm")["loss"].mean()
of_masked = of_masked.filter(like="masked, ")
assert [round(of_masked[f"masked, {name}"], 2) for name in ("rope", "learned")] == [1.07, 1.62]
assert of_masked.drop("masked, rope").min() > of_masked["masked, rope"]
of_a = load_study("encodings").runs.groupby("arm")["loss"].mean()
assert round(of_a["rope"] - of_a["shaw"], 2) >= 0.01 and round(of_a["rope"] - of_a["t5"], 2) <= 0.02
images = load_study("depth").contrasts
for better in ("sinusoidal, 2-D", "rope, 2-D"):
    assert images.loc[f"images: {better} minus learned", "holm"] > 0.05
assert images.loc["images twice as long: learned, interpolated, minus rope, 2-D", "mean"] > 0
assert images.loc["images twice as long: rope, 2-D, interpolated minus as it is", "mean"] > 0.5
at_twice = {
    arm: [run.metrics["patches"]["sizes"]["24"]["interpolated"] for run in load_study("depth").by_arm[f"images, {arm}"]]
    for arm in ("rope, 2-D", "learned")
}
assert [round(sum(its) / 5, 2) for its in at_twice.values()] == [0.80, 0.63]
# Third of eight from both starts; Shaw, ALiBi and KERPLE stay where they were.
for its in (runs, load_study("encodings").runs):
    order = its.groupby("arm")["loss"].mean().sort_values().index
    assert order.get_loc("rope") == 2 and len(order) == 8
of_twelve = load_study("nopos").contrasts["mean"]
assert all(abs(of_twelve[f"past the trained length: {arm}"]) < 0.03 for arm in ("shaw", "alibi", "kerple"))
# By definition: "*In our runs* means small models, three to five seeds, and a chapter"

import importlib

# Holds: "And what others do is read off the code of transformers"
turning = {"gpt_neox", "llama", "mistral", "qwen2", "gemma", "modernbert"}
for name in turning | {"bloom", "mpt", "bert", "gpt2", "opt", "vit"}:
    module = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
    assert hasattr(module, "apply_rotary_pos_emb") == (name in turning), name
    assert any("alibi" in attribute for attribute in vars(module)) == (name in {"bloom", "mpt"}), name
# Holds: "Above at the trained length of 64 characters, below by how much the loss"
configs = [run.config for run in load_study("own-rates").by_arm["rope, start B"]]
assert {(config.length, config.test_length) for config in configs} == {(64, 512)}

# %% What decides
# By definition: "If no text is longer than those of the training, ignore the last column"
# By definition in What to remember: "What is measured here is small."
# Holds: "a scheme that "has a position for any text" may still fail there, as sines do"
assert rise["sinusoidal"] > 2
# Holds: "Without one it cannot."
masked = load_study("nopos").contrasts
assert masked.loc["masked: learned minus nopos", "mean"] < -1
# By definition in What to remember: "Past the trained length nothing is free"
# Holds in What to remember: "Longer than trained without more training: the end of the text alone"
# Holds in Which positions should I use?: "Longer texts than it was trained on, without more training:"
assert abs(rise["alibi"]) < 0.006

# %% Exercises
# Holds: "For two more groups nothing happens, which is half a trained text."
assert all(abs(rises[group]) < 0.1 for group in (4, 5)) and rises[6] > 0.1
ranks = {
    start: list(its.groupby("arm")["loss"].mean().sort_values().index)
    for start, its in {"B": runs, "A": load_study("encodings").runs}.items()
}
# Holds: "T5 moves from the second place to the first, the learned table falls behind"
assert (ranks["B"].index("t5"), ranks["A"].index("t5")) == (1, 0)
assert ranks["B"].index("learned") < ranks["B"].index("sinusoidal")
assert ranks["A"].index("learned") > ranks["A"].index("sinusoidal")
assert ranks["B"][-1] == ranks["A"][-1] == "nopos"
# Holds: "But from A one run chose each rate; at that which whole runs choose the table is nearer to the sines."
level = contrasts.loc["learned minus sinusoidal, start A"]
assert abs(level["mean"]) < 0.002 and load_study("encodings").by_arm["learned"][0].config.learning_rate == 0.03
# By definition: "So a difference of 0.03 can be a matter of the start, or of a rate"
