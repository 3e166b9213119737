# %% The row where texts were cut
norms, nearest = table.norms, table.nearest
assert norms[127] > norms[120:127].max() and norms[127] > norms[128:135].max()
assert nearest[127] < nearest[64:127].min()

# Holds in What shapes a position table?: "Norm and nearest cosine of each row of the encoder's table."
# Holds: "The other rows that stand out are row 0, which always has the same token"
# Holds in What shapes a position table?: "Rows 0, 127, 510 and 511 stand out in both."
far = sorted(norms.topk(4).indices.tolist())
lone = sorted(nearest.topk(4, largest=False).indices.tolist())
assert far == lone == [0, 127, 510, 511] and not table.untrained_rows
found = [nearest.median(), *nearest[far]]
assert [round(float(each), 1) for each in found] == [0.9, 0.3, 0.6, 0.7, 0.5]

from posembed.pretrained import installed_folder

# Holds: "By the model card, the last training cut its texts at 128 tokens."
if folder := installed_folder():  # the card comes with the encoder
    assert "limited to 128 tokens" in (folder / "README.md").read_text()
# Holds: "A text that was cut ends with `[SEP]` at position 127"
# Holds in What shapes a position table?: "Row 127 is where texts that are cut at 128 tokens end."
cut = tokenizer("the " * 300, truncation=True, max_length=128).input_ids
assert len(cut) == 128 and cut[127] == tokenizer.sep_token_id
# By definition: "Rows from 128 on that nothing has trained."
# By definition: "A change at row 128."

# %% Short texts leave a tail
settings = {name: [run.config for run in its] for name, its in study.by_arm.items()}
DIFFER = "seed objective masking_rate study"
DIFFER = DIFFER.split()
alike = [each.to_dict() for configs in settings.values() for each in configs]
assert len({str({**a, **dict.fromkeys(DIFFER)}) for a in alike}) == 1

for name, configs in settings.items():
    # Holds: "So we trained small models that differ in one thing at a time: two layers, width 64"
    # By definition in And reading from left to right?: "To have five seeds of five models."
    assert len({c.seed for c in configs}) == 5 == len(configs) == len(settings)
    for c in configs:
        assert (c.n_layers, c.d_model, c.steps) == (2, 64, 5000)
        # Holds: "Weights, words and rows are drawn with 0.02: start C of"
        assert (c.weight_std, c.scale_embeddings, c.scheme_options) == (0.02, False, {})  # a table's own is 0.02 too
        # Holds in What this does not show: "each step has 32 texts, so with short ones a model"
        assert c.batch_size == 32 and round((0.9 * 32 + 0.1 * 128) / 128, 1) == 0.3
        # Holds: "*Long* models see pieces of 128 characters; *short* ones see"
        assert (c.length, c.scheme) == (128, "learned")
        short = (32, 0.9) if "short" in name else (None, None)
        assert (c.study.get("short_length"), c.study.get("short_share")) == short
        # Holds: "*Causal* models guess the next character, *masked* ones a hidden 15 %."
        assert c.masking_rate == (0.15 if "masked" in name else None)
        # Holds in And reading from left to right?: "A fifth kind was trained, *causal, few guesses*"
        assert c.study.get("guessed_share") == (0.15 if "few" in name else None)

# The tables and the picture, checked.
mean = {name: each.mean(axis=0) for name, each in seven.items()}
# Holds: "Error of the probe along the positions 0 to 125"
for name in ("causal, long", "causal, long, few guesses"):
    assert mean[name][1:].max() < 1 < mean[name][0]
ends, middle = mean["masked, long"][[0, -1]], mean["masked, long"][1:-2]
assert middle.min() > 10 and middle.max() < 31 and ends.min() > 35
for name in ("masked, short", "causal, short"):
    assert mean[name][5] > 2.5 * mean[name][3]
assert mean["a constant guess"][[0, 9, -1]].tolist() == [60, 3, 59]
# By definition: "A linear probe, a ridge regression with five folds, guesses the position"
found = study.contrasts
assert len(found) == 6 and (found["n"] == 5).all()
assert found["holm"].max() < 0.05
# Holds in What shapes a position table?: "Where nine tenths of the steps had short texts, a linear map guesses"
assert [round(found.loc[f"{kind}, tail: short minus long", "mean"]) for kind in ("causal", "masked")] == [20, 6]
# Holds in What shapes a position table?: "Rows of causal models were guessed better by 21 places"
# Holds in What shapes a position table?: "**Training mostly on short texts does; the direction of reading may.**"
assert round(found.loc["masked minus causal", "mean"]) == 21
# Holds in What shapes a position table?: "**How sure:** five seeds each, small models, the masked ones not trained"
assert len(found) == 6 and (found["n"] == 5).all() and found["holm"].max() < 0.05
# The same of the caption.
# Holds: "From a few rows in, up to row 125, causal rows with long texts"
for name in ("causal, long", "causal, long, few guesses"):
    assert mean[name][1:].max() < 1
for name in ("masked, short", "causal, short"):
    assert mean[name][5] > 2.5 * mean[name][3]  # 35 to 41, and 21 to 27
# Holds: "In the last 500 steps a short model sees long texts, which reach its late rows."
assert all(c.steps * (1 - c.study["short_share"]) - 500 < 1e-6 for c in settings["causal, short"])
# Holds: "The error climbs at row 32, where the short texts end: such late rows are called a *tail* here."
for name in ("masked, short", "causal, short"):
    assert mean[name][5] > 2.5 * mean[name][3]
# Holds: "In the causal models the rows beyond are off by 20.4 positions; with long texts they are off by 0.2"
beyond = {name: round(float(each[:, 32:].mean()), 1) for name, each in by_arm.items()}
assert (beyond["causal, short"], beyond["causal, long"]) == (20.4, 0.2)
# Holds: "In the masked models short texts add 6 positions, up to 25.6: they are near the ceiling."
of_tail = by_arm["masked, short"][:, 32:].mean(), guessing[0, 32:].mean()
assert [round(float(each), 1) for each in of_tail] == [25.6, 26.4]

# %% Do these rows look untrained?
from posembed.stored import stored_studies

# Holds: "GPT-2's last row, number 1,023, looks as if no text had reached it"
assert stored_studies()["gpt2"].untrained_rows == (1023,)
# By definition: "Perhaps 500 steps were too few, and the late rows are still the random numbers of their start."
# By definition: "`untrained_rows` looks for rows that resemble no other row more than random vectors resemble each"
# Holds: "In the masked models 93 or 94 of these 95 rows do."
unlike = [sum(32 <= row < 127 for row in load_table(P).untrained_rows) for P in trained["masked, short"]]
assert sorted(set(unlike)) == [93, 94]
# Holds: "In the causal ones one or two do: the others have moved, and are read badly all the same."
few_unlike = [sum(32 <= row < 127 for row in load_table(P).untrained_rows) for P in trained["causal, short"]]
assert sorted(set(few_unlike)) == [1, 2]
# Holds in The row where texts were cut: "though rows that were trained so little may look as they were drawn."
for weight in trained["masked, short"]:
    untrained = load_table(weight).untrained_rows
    assert min(untrained) >= 32 and len(untrained) > (127 - 32) / 2

# %% And reading from left to right?
# Holds: "The tail is the rows behind 31, where short texts end."
# By definition: "Above, the tail after short texts, compared with long ones."
# By definition: "Below, all rows of masked models, compared with causal ones."
assert shown == [
    "masked, tail: short minus long",
    "causal, tail: short minus long",
    "masked minus causal",
    "masked minus causal, as many guesses",
]
# Holds: "Short texts make it worse in both kinds of model."
assert all(found.loc[f"{kind}, tail: short minus long", "low"] > 0 for kind in ("causal", "masked"))
# Holds: "Four differences, all full. Tail, short minus long texts"
assert [round(float(mean), 1) for mean in found.loc[shown, "mean"]] == [6.0, 20.3, 21.1, 20.6]
# Holds: "Here are four of the six differences that were planned before the runs."
assert len(shown) == 4 and all("head" in name for name in found.index if name not in shown)
# Holds: "A causal model is also trained on more than six times"
assert 127 / (0.15 * 128) > 6
few, every = "causal, long, few guesses", "causal, long"
# Holds: "Yet of the masked models with long texts the one that had come furthest is read worst."
reads, losses_of = by_arm["masked, long"].mean(axis=1), [r.metrics["loss"] for r in study.by_arm["masked, long"]]
assert np.argmax(reads) == np.argmin(losses_of)
# Holds: "The lower two rows hardly differ: the number of guesses explains half a position."
from posembed.stats import difference

less = difference(by_arm[few].mean(axis=1), by_arm[every].mean(axis=1))
assert round(less.mean, 1) == 0.5 and less.excludes_zero

# Holds: "With long texts alone, masked rows are read some twenty positions worse than causal ones"
direct, fair = (found.loc[f"masked minus causal{words}"] for words in ("", ", as many guesses"))
assert abs(direct["mean"] - 20) < 2 and abs(fair["mean"] - direct["mean"]) < 2
curve = np.array([r.metrics["curve"] for r in study.by_arm["masked, long"]])
causal = [r.metrics["curve"] for r in study.by_arm["causal, long"]]
assert curve[:, 9].min() > 2.9 > 1.7 > np.array(causal)[:, 9].max()
# Holds: "The masked models learned late: with short texts all five are still at 2.6"
assert {round(r.metrics["loss"], 1) for r in study.by_arm["masked, short"]} == {2.6} and round(by_frequency, 1) == 3.0
late = [r.metrics["loss"] for r in study.by_arm["masked, long"]]
assert sum(each > by_frequency - 0.3 for each in late) == 1

# %% What this does not show
# Holds: "From small weights masked models leave the loss by frequency late"
assert curve[:, 9].min() > 2.9
# Holds: "The notes found them so beyond position 400 of 512; our short texts"
assert settings["masked, short"][0].study["short_length"] / 128 == 1 / 4

# Holds: "Anything that needs masked models trained to their end, or other rates: all arms have 0.003"
assert {run.config.learning_rate for runs in load_study("trained-tables").by_arm.values() for run in runs} == {0.003}

# %% Exercises
# Holds: "The last row, 127."
# Holds: "Of a piece of 128 characters the model reads the first 127"
for own in trained["causal, long"]:
    assert load_table(own).untrained_rows == [127]
# Holds: "In two of the five masked models with long texts other rows"
others = [load_table(own).untrained_rows for own in trained["masked, long"]]
assert sum(map(bool, others)) == 2 and not any(127 in each for each in others)
# By definition: "If GPT-2 was trained in pieces of 1,024 tokens"

# Holds: "Expect errors below four positions, and differences far smaller"
assert max(map(max, alone.values())) < 4
# Holds: "The masked models' interval holds zero."
assert not gaps["masked"].excludes_zero
# Holds: "In whole tables the head, rows 0 to 31, of the masked models was"
masked, causal = (found.loc[f"{kind}, head: short minus long"] for kind in ("masked", "causal"))
assert [round(float(each["mean"]), 1) for each in (masked, causal)] == [-12.6, 7.4]
# Holds: "The causal models' rows are read better with short texts"
better = np.array(alone["causal, long"]) - alone["causal, short"]
assert round(better.mean(), 2) == 0.68 and better.min() > 0
low, high = gaps["causal"].low, gaps["causal"].high
assert (round(-high, 2), round(-low, 2)) == (0.26, 1.09)
# Holds: "So most of what the whole tables showed is what one map"
assert max(-gaps["masked"].low, gaps["masked"].high) < 2

# %% What to remember
# Holds: "Rows show how they were trained: GPT-2's last one"
assert stored_studies()["gpt2"].untrained_rows == (1023,) and 127 in lone
# Holds: "An explanation is tested by varying what it names"
for kind in ("masked", "causal"):
    assert found.loc[f"{kind}, tail: short minus long", "low"] > 0
# Holds: "That reading from left to right makes rows easier to read"
assert found.loc["masked minus causal", "low"] > 0
done = [r.metrics["loss"] for r in study.by_arm["causal, long"]]
assert max(done) < 1.3 < 1.6 < min(late) and max(late) > by_frequency - 0.3
