"""The page of questions: each number on it is computed here, from the stored runs or from what a paper prints."""

import functools
import math
import re
from copy import deepcopy

import pytest
import torch
from prose import BOOK
from small_models import IDS, build

from posembed import load_study, sinusoidal
from posembed.data import frequency_loss
from posembed.stats import interval
from studies import length_law

PAGE = (BOOK / "what-we-can-say.md").read_text(encoding="utf-8").replace("**", "")
ABSOLUTE = ["sinusoidal", "learned", "learnable_sinusoidal"]
# Perplexities without positions and with a learned table, Haviv et al. 2022, on the Pile: by size, then by length.
PILE = [(22.15, 22.04), (16.87, 16.84), (14.29, 14.21), (13.10, 13.05), (14.98, 14.94), (13.82, 13.77), (12.87, 12.72)]


def says(sentence):
    assert sentence in PAGE


@functools.cache
def losses(study):
    return load_study(study).runs.pivot(index="seed", columns="arm", values="loss").loc[1:5]


def test_sines_and_a_table():
    gaps = load_study("own-rates").contrasts["mean"].filter(like="learned minus sinusoidal, start")
    says(f"the table is ahead by {-gaps['learned minus sinusoidal, start B']:.3f} nats from one start, and")
    says("from another the sines, by 0.021 over thirteen seeds: five had the two level, and eight later ones")
    assert abs(gaps["learned minus sinusoidal, start A"]) < 0.002
    of = load_study("own-rates").runs.pivot(index="seed", columns="arm", values="loss")
    by_seed = [
        (of[f"learned, {arm}"] - of[f"sinusoidal, {arm}"]).dropna() for arm in ("start A", "start A, later seeds")
    ]
    found = interval([*by_seed[0], *by_seed[1]])
    assert (round(found.mean, 3), found.n) == (0.021, 13) and found.low > 0
    assert (len(by_seed[1]), round(by_seed[1].mean(), 3)) == (8, 0.034)


@pytest.mark.parametrize("study", ["one-start", "encodings"])
def test_sines_fail_past_the_trained_length(study):
    says("within thirty positions the loss is, in the mean, above that of guessing by the letters' frequencies")
    by_place = torch.tensor([run.metrics["loss_by_position"] for run in load_study(study).by_arm["sinusoidal"]])
    # Groups of 16 positions, trained up to 64: the sixth begins at 80 and ends before 96.
    assert by_place[:, 5].mean() > frequency_loss()


def test_products_of_sinusoidal_rows():
    says(
        "they fall at each whole offset up to 43 and rise first at 44; "
        "between whole offsets they rise for a moment before each multiple of 2π, first near 6"
    )
    table = sinusoidal(60, 768, dtype=torch.float64)
    steps = (table @ table[0]).diff()
    assert int((steps > 0).nonzero()[0]) + 1 == 44
    speeds = 10000.0 ** (-torch.arange(0, 768, 2).double() / 768)
    fine = torch.arange(0.01, 43, 0.01).double()
    rising = fine[-(speeds * (fine[:, None] * speeds).sin()).sum(1) > 1e-9]
    turn = 2 * torch.pi
    assert 6 < rising[0] < 6.3 and all((rising - k * turn).abs().min() < 0.5 for k in range(1, 7))
    assert ((rising / turn).round() * turn >= rising).all()


def test_relative_schemes():
    says("Shaw, T5 and RoPE were, from one start, in every seed; ALiBi is level with a table.")
    of = losses("own-rates").filter(like=", start B").rename(columns=lambda arm: arm.removesuffix(", start B"))
    assert (of[["shaw", "t5", "rope"]].max(axis=1) < of[ABSOLUTE].min(axis=1)).all()
    level = interval(of["alibi"] - of["learned"], level=0.9)
    assert -0.02 < level.low < level.high < 0.02
    says("RoPE's lead on a table shrinks: at 0.4 million parameters three seeds cannot tell the two apart.")
    leads = [losses("ladder")[f"learned, width {w}"] - losses("ladder")[f"rope, width {w}"] for w in (32, 48, 64, 88)]
    assert sorted((each.mean() for each in leads), reverse=True) == [each.mean() for each in leads]
    assert not interval(leads[-1]).excludes_zero and len(leads[-1]) == 3


def test_without_positions():
    contrasts = load_study("nopos").contrasts["mean"]
    behind_a_table = -load_study("own-rates").contrasts["mean"]["learned minus nopos, start B"]
    percent = round(100 * (math.exp(behind_a_table) - 1))
    says(f"in one set-up of ours {percent} % of perplexity a character beside a learned table, in others more or less;")
    says("the loss of ours rises by a nat on average up to four times the length, and by more up to eight.")
    assert round(contrasts["past the trained length: nopos"], 1) == 1.0
    assert load_study("one-start").contrasts.loc["nopos, past the trained length", "mean"] > 1.3
    tested = [
        load_study(name).by_arm[arm][0].config for name, arm in (("nopos", "causal, nopos"), ("one-start", "nopos"))
    ]
    assert [config.test_length / config.length for config in tested] == [4, 8]


def test_the_papers_gap():
    losses_of = [100 * (without / learned - 1) for without, learned in PILE]
    says(f"lose {min(losses_of):.1f} to {max(losses_of):.1f} % a word piece to a table on the Pile.")


def test_once_is_enough_and_images():
    says(
        "In our models adding the same rows again lowered no mean loss: with four layers the two are equal within 0.01"
    )
    again = load_study("once-or-again").contrasts
    rows = [again.loc[f"{n} layers: table again minus table once"] for n in (4, 12)]
    assert round(rows[1]["mean"], 3) == 0.022 and min(each["holm"] for each in rows) > 0.05
    says("In all layers RoPE is ahead by 0.066 nats with four layers and by 0.044 with twelve. In the first alone no")
    ahead = [again.loc[f"{n} layers: table once minus RoPE"] for n in (4, 12)]
    assert [round(each["mean"], 3) for each in ahead] == [0.066, 0.044] and max(each["holm"] for each in ahead) < 0.05
    first = [again.loc[f"{n} layers: RoPE first minus table once"] for n in (4, 12)]
    assert first[0]["holm"] > 0.05 > first[1]["holm"] and first[1]["mean"] > 0
    of = losses("once-or-again")
    says("with twelve that arm loses even to no positions.")
    assert min(of["12 layers, RoPE first"].dropna()) > max(of["12 layers, none"].dropna())
    within = interval(of["4 layers, table again"] - of["4 layers, table once"], level=0.9)
    assert -0.01 < within.low < within.high < 0.01
    depth = load_study("depth").runs.groupby("arm")["loss"].mean()
    for layers in (4, 12):
        assert depth[f"{layers} layers, every layer"] > depth[f"{layers} layers, input"]
    says("0.42 was left after the first of four layers in ours, 0.83 after the first of twelve, and 0.71 in a masked")
    for arm, left in {"4 layers, input": 0.42, "12 layers, input": 0.83, "masked, 4 layers, input": 0.71}.items():
        runs = load_study("depth").by_arm[arm]
        each_left = [run.metrics["depth"]["trained"]["left, coefficient"][1] for run in runs]
        assert round(sum(each_left) / len(each_left), 2) == left
    says("With learned rows, which were drawn large, they did in ours; with RoPE they did not, and with sines")
    found = load_study("depth").contrasts["mean"]
    early = {arm: found[f"images, {arm}: early, place minus contents"] for arm in
             ("learned", "sinusoidal, 2-D", "rope, 1-D", "rope, 2-D")}  # fmt: skip
    assert early.pop("learned") > 0 and max(early.values()) < 0
    corrected = load_study("depth").contrasts["holm"]
    assert corrected["images, sinusoidal, 2-D: early, place minus contents"] > 0.05


def test_adding_rows_against_putting_them_beside():
    says("A single linear layer that can be inverted loses nothing by it, where rows are trained")
    x, p, w_x, w_p = torch.randn(4, 8, 8, dtype=torch.float64, generator=torch.manual_seed(0))
    beside = torch.cat([x, p], dim=1) @ torch.cat([w_x, w_p], dim=1).T
    added = x + p @ w_p.T @ torch.linalg.inv(w_x).T
    assert torch.allclose(beside, added @ w_x.T)


def test_a_text_longer_than_the_table_and_dropout_on_the_sum():
    says("It has more tokens than the position table has rows.")
    with pytest.raises(IndexError, match="index out of range"):
        torch.nn.Embedding(8, 2)(torch.arange(9))
    says("in BERT and GPT-2 it falls on the sum of word and position")
    for model in (build("bert", hidden_dropout_prob=0.5), build("gpt2", embd_pdrop=0.5)):
        kept, dropped = (
            each(IDS, output_hidden_states=True).hidden_states[0] for each in (model, deepcopy(model).train())
        )
        stays = dropped != 0
        assert 0.2 < stays.float().mean() < 0.8
        # One mask for the sum: what stays of it stays whole, and is scaled.
        assert torch.allclose(dropped[stays], 2 * kept[stays], atol=1e-5)


@pytest.mark.parametrize("n_layers", [1, 3])
def test_a_convolution_sees_its_border(n_layers):
    says("near the border, half a kernel further with each layer")
    x, shift = torch.randn(1, 1, 20, generator=torch.manual_seed(0)), 5
    kernel = torch.rand(1, 1, 3, generator=torch.manual_seed(1))

    def convolve(x, mode):
        for _ in range(n_layers):
            x = torch.nn.functional.conv1d(torch.nn.functional.pad(x, (1, 1), mode=mode), kernel).tanh()
        return x[0, 0]

    ring = convolve(x.roll(shift, -1), "circular").roll(-shift) - convolve(x, "circular")
    assert ring.abs().max() < 1e-6
    # The same everywhere inside, and other numbers within so many places of each border.
    even = convolve(torch.ones(1, 1, 20), "constant")
    differ = ((even - even[10]).abs() > 1e-6).nonzero().flatten().tolist()
    assert differ == [*range(n_layers), *range(20 - n_layers, 20)]


def test_each_question_leads_to_a_chapter_that_is_there():
    chapters = "".join(path.read_text(encoding="utf-8") for path in BOOK.glob("*/*.ipynb"))
    labels = re.findall(r"\]\(([\w-]+)\)", PAGE)
    assert len(labels) > 15 and all(f"({label})=" in chapters for label in labels)


def test_positions_in_some_layers_and_taken_out():
    says("with RoPE in three layers of four the loss is less than 0.01 nats higher in each of three seeds")
    study, of = load_study("nopos"), losses("nopos")
    found = interval((of["causal, rope in three layers of four"] - of["causal, rope"]).dropna())
    assert found.n == 3 and not found.excludes_zero
    assert (of["causal, rope in three layers of four"] - of["causal, rope"]).dropna().between(0, 0.01).all()
    says("they are in the mean no better than guessing by frequency")
    for name in ("learned", "sinusoidal", "alibi", "rope"):
        runs = study.by_arm[f"causal, {name}"]
        assert len(runs) == 5 and sum(run.metrics["dropped"]["loss"] for run in runs) / 5 > frequency_loss()


def test_the_end_alone():
    says(
        "given the last 63 characters alone, ours with RoPE lose nothing, and are 0.06 nats ahead of ALiBi, which reads"
    )
    found = load_study("past-length").contrasts
    assert round(found.loc["alibi, as it is, minus rope, last 63", "mean"], 2) == 0.06
    level = found.loc["xpos, blocks, minus rope, last 63"]
    assert max(abs(level["low"]), abs(level["high"])) < 0.02


def test_a_mark_at_the_beginning():
    says("a probe finds positions to within one in the mean, and the loss of characters with 16 and more before")
    late = {arm: [run.metrics["heads"]["late"] for run in runs] for arm, runs in load_study("beginning").by_arm.items()}
    mean = {arm: sum(each) / len(each) for arm, each in late.items()}
    gained = mean["nopos"] - mean["nopos, mark"]
    assert round(gained, 3) == 0.044
    probes = [run.metrics["heads"]["probe"] for run in load_study("beginning").by_arm["nopos, mark"]]
    assert all(min(each[1:]) < 1 for each in probes)


def test_who_reads_further_back_than_it_was_trained():
    says("models with Shaw, ALiBi, FIRE or forgetting gates find 0.99 of the needles or more, far and near.")
    says("RoPE finds few that are far from the question; T5, no positions and a table few that are near it; far from")
    far = {
        (arm, which): sum(run.metrics["asked"][which]["256"]["needle"] for run in runs) / len(runs)
        for arm, runs in load_study("far-questions").by_arm.items()
        for which in ("far", "plain")
    }
    assert min(far[arm, which] for arm in ("shaw", "alibi", "fire", "forgetting") for which in ("far", "plain")) > 0.99
    assert far["rope", "far"] < 0.08
    # Nearly half of the 512 needles stand so far back; of the others these find less than two thirds.
    assert all(2 * far[arm, "plain"] - far[arm, "far"] < 0.3 for arm in ("t5", "nopos", "learned"))


def test_what_fails_past_the_trained_length():
    """The chapter's checks hold the onsets; this the costs of keys, and that the formula is behind the guess."""
    says("Four times the keys, at given positions, cost 14 of them less than 0.1 nats, where most hardly look back;")
    says("a guess by the most similar scheme came nearer to the size of the rise.")
    study = load_study("length")
    stack = study.contrasts["mean"].filter(like="stack minus the last 64")
    plain = study.contrasts["mean"].filter(like="plain minus the last 64")
    dear = stack[stack > 0.1]
    assert len(stack) == 16 and [each.split(":")[0] for each in dear.index] == ["nopos", "cope"]
    assert all(cost > 0.9 * plain[name.replace("stack", "plain")] for name, cost in dear.items())
    says("Of 16 kinds of models ten lose by new positions alone, and it depends on which:")
    moved = {arm: sum(r.metrics["longer"]["gap"]["128"] - r.metrics["longer"]["plain"]["64"] for r in its) / 5
             for arm, its in study.by_arm.items()}  # fmt: skip
    assert sum(each > 0.1 for each in moved.values()) == 10
    says("half of a text moved 64 places costs RoPE as much as a text of twice the length, moved 192 nothing.")
    asked = [run.metrics["longer"] for run in study.by_arm["rope"]]
    cost = {
        (way, n): sum(each[way][n] - each["plain"]["64"] for each in asked) / 5
        for way, n in (("gap", "128"), ("plain", "128"), ("gap", "256"))
    }
    assert abs(cost["gap", "128"] / cost["plain", "128"] - 1) < 0.05 and abs(cost["gap", "256"]) < 0.02
    assert study.contrasts["mean"]["asked: law minus name"] < 0
    assert {len(runs) for runs in study.by_arm.values()} == {5}


def test_which_scaling_holds_and_which_base_was_foretold():
    study = load_study("length-doses")

    def lost(arm, how, near, far):
        return (
            sum(run.metrics["stretched"][how][far] - run.metrics["stretched"][how][near] for run in study.by_arm[arm])
            / 5
        )

    says("trained on 256 characters ours lost 0.08 nats with it and 2.7 with none, trained on 64 0.18 and 2.6.")
    assert [round(lost("rope, long", how, "256", "1024"), n) for how, n in (("yarn", 2), ("none", 1))] == [0.08, 2.7]
    assert [round(lost("rope, base 10000", how, "64", "256"), n) for how, n in (("yarn", 2), ("none", 1))] == [
        0.18,
        2.6,
    ]
    says("RoPE with a base of 100,000 loses more than with 10,000 at twice the length was written before, and came;")
    says("that a million loses as much was not shown.")
    assert "at 128 the base of 100000, whose third pair has a wave of 112, loses more than 10000" in " ".join(
        study.about.split()
    )
    holm = study.contrasts["holm"]
    assert (
        holm["rope, base 100000 minus 10000: rise at 128"]
        < 0.001
        < 0.1
        < holm["rope, base 1000000 minus 10000: rise at 128"]
    )
    says("at 1.5 times by 0.04 nats and RoPE's not at all, at four times by 0.7 and RoPE's by 2.6.")
    rises = {}
    for arm in ("pope", "rope, base 10000"):
        plain = [run.metrics["longer"]["plain"] for run in study.by_arm[arm]]
        rises[arm] = [sum(its[n] - its["64"] for its in plain) / 5 for n in ("96", "256", "512")]
    assert [[round(each, 1) for each in its[1:]] for its in rises.values()] == [[0.7, 1.4], [2.6, 2.6]]
    assert round(rises["pope"][0], 2) == 0.04 and rises["rope, base 10000"][0] < 0.005
    assert holm["pope minus rope: rise at 256"] < 0.01
    says("For PoPE, not planned, the formula gives 0.6 nats at four times the length, where 0.7 came, and 0.9 at eight")
    said = [length_law.predicted(run, "law") for run in study.by_arm["pope"]]
    assert [round(sum(its[length_law.LENGTHS.index(n)] for its in said) / 5, 1) for n in (256, 512)] == [0.6, 0.9]
    says("NoPos more than half of it by the beginnings that come with the keys.")
    veils = [run.metrics["beginnings"] for run in study.by_arm["nopos"]]
    assert all(its["all"] - its["first"] > 0.5 * (its["all"] - its["none"]) for its in veils)


def test_the_price_of_no_positions_falls_along_the_ladder():
    says(
        "from 0.06 to 0.4 million parameters, against a table from 27 to 8 % of perplexity, "
        "and against RoPE from 54 to 9 %."
    )
    says("Most of the fall may be of training: the smallest, trained more than five times as long in another study")
    study = load_study("ladder")
    gaps = {
        (other, width): study.contrasts["mean"][f"width {width}: nopos minus {other}"]
        for other in ("learned", "rope")
        for width in (32, 88)
    }
    assert [round(100 * (math.exp(gap) - 1)) for gap in gaps.values()] == [27, 8, 54, 9]
    ends = [study.by_arm[f"learned, width {width}"][0].metrics["parameters"] for width in (32, 88)]
    assert [round(each / 1e6, n) for each, n in zip(ends, (2, 1), strict=True)] == [0.06, 0.4]
