"""What is said of each study on its page of evidence, of which `tools/evidence.py` makes the pages.

A study is one entry of `STUDIES`, in the order of the contents. Nothing that was measured is typed in what came of it:
a place in braces names contrasts by a regular expression, of their names or of "family/name", and says what has to be
true of all of them, or no page is made.

    {+name}      significant, above zero: stands for the mean, of several for the lowest and the highest
    {-name}      significant, below zero: stands for the size
    {above name} {below name} {open name}      stand for nothing: the same two, and none of them significant
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

# What stands below a picture.
LOSS, RISE = "difference, nats a character", "nats, past the trained length"
ANSWERS, PLACES = "difference, share of answers", "difference, positions"


@dataclass(frozen=True)
class Chart:
    """A forest plot: a row for each contrast that an expression names, called by what its groups hold.

    Charts of one unit have one scale on a page.
    """

    caption: str
    rows: str
    unit: str = LOSS


@dataclass(frozen=True)
class Page:
    """What a page says beside what is stored."""

    title: str
    # Those that rest on the study.
    chapters: tuple[str, ...]
    said: str
    charts: tuple[Chart, ...]
    # What was expected and did not come, what could not be answered after all, or what was planned and is no contrast.
    failed: str = ""
    heading: str = "What was not as expected"
    # Rows that have other words than their contrasts.
    rows: Mapping[str, str] = field(default_factory=dict)


EIGHT = {
    "learnable_sinusoidal minus sinusoidal": "learnable minus sinusoidal",
    "learnable_sinusoidal minus nopos": "learnable minus NoPos",
    **{"ntk": "NTK", "yarn": "YaRN", "llama3": "Llama 3"},
}
STARTS = {
    "small, scaled": "start A",
    "large": "start B",
    "small": "start C",
    "large, scaled": "start D",
    "wider": "B, wider",
    "longer": "B, longer",
}

STUDIES = {
    "beginning": Page(
        title="a mark at the beginning",
        chapters=("nopos/how-it-knows",),
        said="""\
With a mark before each text a model without positions loses {-mark minus none, loss} nats less on late characters, and
a probe reads its positions better, before training too{below mark minus none, probe.*}. Without a mark the model
depends on its first token: made like another, it raises the loss by
{+nopos: loss, first token alike minus as it is} nats.""",
        charts=(
            Chart("The loss, and what changes it", r"(.*, loss|.*: swap.*|.*: loss.*)"),
            Chart("The lowest error of a probe of positions", r"(.*probe.*)", PLACES),
            Chart("Attention of a head", r"(.*most attention.*|.*second layer.*)", "difference, attention"),
        ),
        rows={
            "mark minus none, loss": "with a mark minus without",
            "nopos: swap, without the pair minus with all": "swap, NoPos: without two heads",
            "nopos, mark: swap, without the pair minus with all": "swap, with a mark: the same",
            "learned: swap, without the pair minus with all": "swap, learned: the same",
            "nopos: loss, first token alike minus as it is": "NoPos: first token like another",
            "nopos, mark: loss, first token alike minus as it is": "with a mark: the same",
            "mark minus none, probe": "with a mark minus without",
            "mark minus none, probe untrained": "the same, untrained",
            "mark, one character: probe minus the middle": "one character minus a guess",
            "nopos: most attention to the token before": "NoPos: to the token before",
            "learned: most attention to the token before": "learned: the same",
            "nopos minus learned, most attention to the token before": "NoPos minus learned",
            "nopos: second layer, first token minus evenly": "NoPos: to the first minus even",
            "nopos, mark: second layer, first token minus evenly": "with a mark: the same",
        },
        failed="""\
Of what was expected, the mark lowered the loss by more, 0.044 and not less than 0.02, and texts of one character were
read to within ten positions, not four. Without its pair of heads a model with a table kept two thirds of what order
costs, more than the half that was expected, and as much as one without positions. With the mark the second layer looks
at the first token a little less than evenly, where more was expected.""",
    ),
    "encodings": Page(
        title="eight schemes from start A",
        chapters=("encodings/sinusoidal-and-learned", "encodings/relative-positions"),
        said="""\
From start A, at rates that one run each chose, each scheme loses less than a model without positions, by
{-\\w+ minus nopos} nats a character. Past the trained length
RoPE loses {+rope, past the trained length} nats more than within it; of Shaw and ALiBi no such rise is
significant{open (shaw|alibi), past the trained length}.""",
        charts=(
            Chart("Loss at the trained length", r"(\w+ minus (?:nopos|sinusoidal))"),
            Chart("Past the trained length, minus just before its end", r"(\w+), past the trained length", RISE),
            Chart("RoPE past the trained length: scaled minus unscaled", r"rope, (\w+) minus unscaled", RISE),
        ),
        rows=EIGHT,
    ),
    "one-start": Page(
        title="eight schemes from start B",
        chapters=("encodings/sinusoidal-and-learned", "encodings/relative-positions"),
        said="""\
From this start too each scheme loses less than a model without positions{below \\w+ minus nopos}, which itself loses
{-nopos, start B minus A} nats less than from start A. A table is {-learned minus sinusoidal} ahead of sinusoids, a
change of {-learned minus sinusoidal, start B minus A}. Short runs chose these rates; {doc}`own-rates` asks again.""",
        charts=(
            Chart("Loss at the trained length, from start B", r"(\w+ minus (?:nopos|sinusoidal))"),
            Chart("The loss of each scheme: start B minus start A", r"(\w+), start B minus A"),
            Chart("What lies between two schemes: start B minus start A", r"(\w+ minus \w+), start B minus A"),
            Chart("Past the trained length, minus just before its end", r"(\w+), past the trained length", RISE),
            Chart("RoPE past the trained length: scaled minus unscaled", r"rope, (\w+) minus unscaled", RISE),
        ),
        rows=EIGHT,
        failed="""\
RoPE was expected to be best from both starts; T5 has the lowest loss from start A, and Shaw from start B.

Its rates were chosen in a third of the steps. With those that whole runs choose ({doc}`own-rates`) the table, the sines
and T5 lose less from start B, by 0.035 to 0.050, and the five others chose the same rate.""",
    ),
    "own-rates": Page(
        title="each scheme at a rate of its own",
        chapters=("encodings/sinusoidal-and-learned", "encodings/relative-positions", "nopos/no-positions"),
        said="""\
From start B, at rates that whole runs chose, Shaw, T5 and RoPE are ahead of each absolute scheme, by
{-(shaw|t5|rope) minus (learned|\\w*sinusoidal), start B} nats a character; ALiBi and a table are not told
apart{open alibi minus learned, start B}, and a table is ahead of
sinusoids{below learned minus sinusoidal, start B}; from start A it is behind by
{+learned minus sinusoidal, start A, later seeds} in eight later seeds, which the first five did not
show{open learned minus sinusoidal, start A}.""",
        charts=(
            Chart("Loss from start B, minus that of a learned table", r"(shaw|t5|alibi|rope) minus learned, start B"),
            Chart("The same, minus that of sinusoids", r"(shaw|t5|alibi|rope) minus sinusoidal, start B"),
            Chart("Minus that of learnable sinusoids", r"(shaw|t5|alibi|rope) minus learnable_sinusoidal, start B"),
            Chart("Learned and learnable, minus sinusoids", r"(learn\w+) minus sinusoidal(, start .*)"),
            Chart("Past the trained length, minus just before its end", r"(\w+), past the trained length", RISE),
        ),
        rows={f"learnable_sinusoidal, start {start}": f"learnable, start {start}" for start in ("A", "B", "B minus A")},
        failed="""\
All rates are 0.01, as was expected. From start A the table and the sines are equal in the first five seeds, as was
expected from both starts, and in the eight later ones the sines are ahead by 0.034; from B the table is, by 0.020.
Trained frequencies were to lose no less than fixed ones, and lose 0.038 less from A and 0.010 more from B. ALiBi was
to be ahead of each absolute scheme by less than 0.02: it is 0.001 behind the table and 0.019 and 0.029 ahead of the
others. Both differences of differences were to lie within 0.02, and are -0.021 and 0.048, neither of them significant.
Past the trained length all came as was expected.""",
    ),
    "past-length": Page(
        title="past the trained length, fairly",
        chapters=("longer/past-the-trained-length",),
        said="""\
Past the trained length no scheme of this study is ahead of RoPE with the end of the text
alone{above (none|rope|alibi|fire, 512), as it is, minus rope, last 63}. With the whole text ALiBi is behind it by
{+alibi, as it is, minus rope, last 63} nats and RoPE itself by {+rope, as it is, minus rope, last 63}; from xPos in
blocks it is not told apart{open xpos, blocks, minus rope, last 63}.""",
        charts=(
            Chart("With the whole text, minus RoPE with the end alone", r"(.*), minus rope, last 63"),
            Chart("The same, minus a model without positions with the end alone", r"(.*), minus none, last 63"),
            Chart("In blocks, and from where FIRE's threshold starts", r"(.*: in blocks .*|fire: .*)"),
        ),
        rows={
            **{f"{each}, as it is": each for each in ("none", "rope", "alibi", "fire, 512")},
            "xpos: in blocks minus as it is": "xPos: in blocks minus not",
            "rope: in blocks minus as it is": "RoPE: in blocks minus not",
            "fire: rise, from 32 minus from 512": "FIRE: from 32 minus from 512",
        },
        failed="""\
Of what was expected, blocks took more than the rise from xPos and RoPE; RoPE with the last 63 was to be no worse than
ALiBi, and is ahead of it by 0.063, and of all others as they are; xPos in blocks is equal to it. None gains 0.89 nats
by the end alone, where a nat was expected. From 32 FIRE rises by 0.046 more than from 512: that its start makes no
difference, as was expected, is not shown and not refuted.

The models have the seeds of `length`, whose runs, whole before these, gave RoPE with the last 64 a lead of 0.065 on
ALiBi with all: the sign of that contrast was known. Not planned: in blocks FIRE loses as much as with all that stands
before, and none loses 0.65 more. Nobody gains from what stands more than 32 back, so a cut costs nothing here.""",
    ),
    "starts": Page(
        title="how the weights start",
        chapters=("nopos/no-positions",),
        said="""\
How the weights start sets much of what a model without positions loses beside one with a
table{above gap, small, scaled minus large}: {+small, scaled: nopos minus learned} nats a character from start A and
{+large: nopos minus learned} from start B, at rates of short runs, the table's in B too high. It loses
something in each start and at each size{above .*: nopos minus learned}; whether width and steps count is open.""",
        charts=(
            Chart("No positions minus a table", r"(.*): nopos minus learned"),
            Chart("Differences of that gap", r"gap, (.*)"),
            Chart("The loss: start A minus start B", r"(nopos|learned|rope), small, scaled minus large"),
        ),
        rows=STARTS
        | {
            "small, scaled minus large": "start A minus B",
            "wider minus large": "wider minus B",
            "longer minus large": "longer minus B",
        },
        failed="""\
f. Over the four starts the order of the untrained errors is that of the losses of none, with a tie: B, D, C and A have
lowest errors of 8.7, 9.4, 9.6 and 18.6 in the mean, and losses of 1.432, 1.432, 1.529 and 1.786.""",
        heading="What is no contrast",
    ),
    "ladder": Page(
        title="a ladder of sizes",
        chapters=("nopos/no-positions",),
        said="""\
The price of having no positions falls as models, texts and training grow, and is still there in the largest: beside a
table it is {+width 32: nopos minus learned} nats a character in the smallest and
{+width 88: nopos minus learned} in the largest, {-nopos minus learned: slope a doubling}
less with each doubling on average, with three seeds. Beside RoPE it falls too{below nopos minus rope: slope a
doubling}{above width .*: nopos minus rope}.""",
        charts=(
            Chart("No positions minus a table", r"(width \d+): nopos minus learned|nopos minus learned: (.*)"),
            Chart("No positions minus RoPE", r"(width \d+): nopos minus rope|nopos minus rope: (.*)"),
        ),
        failed="""\
The gap to a table did not close and its slope is negative, as was expected. The gap to RoPE was to stay above 0.1, and
falls below it on the last rung, where RoPE is hardly ahead of the table. The rule that carries rates up would have
foretold rates at width 48 from those at 32 of 0.013 for none and 0.027 for the two others; trials chose 0.01 for all
three. So the wider rungs have what follows from width 48, and for the two others not what would follow from 32.""",
    ),
    "trained-tables": Page(
        title="what shapes a position table?",
        chapters=("probing/trained-tables",),
        said="""\
A probe reads tables of models that read from left to right better than those of masked ones, by
{+masked minus causal} positions, and with as many guesses too{above masked minus causal, as many guesses}; how far the
trainings had come differs as well. Training that is mostly on short texts leaves the rows beyond them worse, by
{+(masked|causal), tail: short minus long} positions; it also reads fewer characters.""",
        charts=(Chart("The error of the probe", r"(.*)", PLACES),),
        rows={"masked minus causal, as many guesses": "the same, as many guesses"},
    ),
    "tasks": Page(
        title="one property at a time, by a dose",
        chapters=("probing/which-positions",),
        said="""\
In long runs the largest dose against translation invariance costs
{-doses, longer/distance: translation_invariance.*} of the right answers about distances and
{-doses, longer/lookup: translation_invariance.*} of those of lookup. The one against monotonicity costs
{-doses, longer/order: monotonicity.*} of those about order, which may be a cost of directions. What nine schemes do on
real tasks decides nothing.""",
        charts=(
            Chart("The largest dose minus none, in long runs", r"doses, longer/(.*), largest dose minus none", ANSWERS),
            Chart("The same in runs of a third of the steps", r"doses/(.*), largest dose minus none", ANSWERS),
        ),
        rows={
            f"{task}: translation_invariance": f"{task}: invariance"
            for task in ("majority", "order", "distance", "lookup")
        },
        failed="""\
The second part, of nine schemes, says nothing of the published ranking, in either direction: its preconditions failed.

- The models were not equally far when they began the tasks. The three absolute arms ended their pre-training at losses
  of 2.8 to 2.9, the six others at 1.7 to 2.1.
- SST-2 was hardly learned: all nine have between 0.58 and 0.62 of the answers right, where a constant guess has 0.50.
- Real spans were not learned: on XQuAD with moved questions the two arms have an F1 of 0.41 and 0.45, and to say that
  there is no answer has 0.47.

The planned correlations came out with both signs. Translation invariance of the attention goes with the score on SST-2
(+0.77) and against it on moved words (−0.87): it tells the schemes with relative vectors from those without, and
whatever else these differ in goes along. Symmetry on TREC (−0.88) is the only one of twelve left after a correction.

Of the first part: no dose violates monotonicity nearer than a distance of 16, and under the largest rise *order* stands
at the mirror ceiling, so a cost there may be of directions.""",
        heading="What failed",
    ),
    "causes": Page(
        title="two forms of each property",
        chapters=("probing/which-positions",),
        said="""\
No property has two forms that cost or help significantly: what is found is about single
forms{open .*: (far rise|near ripple|drift|one side|curve) minus undosed}. A wave of the steps costs
{-distance: wave minus undosed} of the right answers about distances, and a peak near by
{-lookup: near peak minus undosed} of those of lookup and {-majority: near peak minus undosed} of those of majority.""",
        charts=tuple(
            Chart(f"{task.capitalize()}: each form minus none", rf"{task}: (.*) minus undosed", ANSWERS)
            for task in ("majority", "order", "distance", "lookup")
        ),
        failed="""\
No property has what the plan asks of a finding about one, two of its forms with a corrected p below 0.05 and one sign.
Three costs stand by themselves: the wave's on distance, and the near peak's on lookup and on majority. What was
expected did not come: a near peak cost distance nothing, both forms without symmetry gained order and lookup nothing
that is significant, and without a form order stands at 0.99, far above the mirror ceiling of 0.5. A near peak on one
side cost lookup 0.41, where less than half of what the one side gains was expected.""",
    ),
    "depth": Page(
        title="is once enough?",
        chapters=("probing/once-enough", "probing/once-enough-images"),
        said="""\
Adding a table again in every layer, or a new one, showed no gain over
once{open .* layers: (every layer|layers anew) minus input}; RoPE loses {-.* layers: rope minus input} nats less, all at
rates that short runs chose. On images a table names {+images: learned minus none} more of the digits than no positions,
and neither sinusoids nor RoPE of two axes is told from it{open images: .*, 2-D minus learned}.""",
        charts=(
            Chart("The loss with four layers", r"4 layers: (.*)"),
            Chart("The loss with twelve", r"12 layers: (.*)"),
            Chart("Digits in images", r"images: (.*(?:none|learned|sinusoidal, 2-D|rope, 1-D))", ANSWERS),
            Chart(
                "How often a probe reads the position: early minus late",
                r"(.*layers, .*): position read, early minus late",
                "difference, share read",
            ),
        ),
        rows={
            "input minus none": "once minus none",
            "every layer minus input": "in every layer minus once",
            "layers anew minus input": "anew minus once",
            "rope minus input": "RoPE minus once",
            "rope, 2-D minus sinusoidal, 2-D": "RoPE minus sinusoidal, 2-D",
            "rope, 2-D minus rope, 1-D": "RoPE, 2-D minus 1-D",
        },
        failed="""\
On images twice as long nothing was halved for RoPE by the running number, whose positions have one axis: what is called
interpolated of it is the same as it is, and the difference of the two RoPEs, interpolated, compares halved positions
with others that are not.""",
        heading="What a contrast does not say",
    ),
    "once-or-again": Page(
        title="once or again, four layers and twelve",
        chapters=("probing/once-enough",),
        said="""\
Adding a table again in every layer showed no gain over once, with four layers or
twelve{open .* layers: table again minus table once}. RoPE in all layers is ahead of a table by
{+.* layers: table once minus RoPE} nats a character; in the first layer alone it is not, and behind RoPE in
all{above .* layers: RoPE first minus RoPE}{open 4 layers: RoPE first minus table once}.""",
        charts=(
            Chart("The loss with four layers", r"4 layers: (.*)"),
            Chart("The loss with twelve", r"12 layers: (.*)"),
            Chart("Twelve layers minus four", r"(.*): 12 layers minus 4"),
        ),
        failed="""\
The precondition for sentences on depth is met: with a table once twelve layers lose 0.100 less than four. RoPE in the
first layer alone was to lie between the table and RoPE, nearer to RoPE: with four layers it is not told from the table,
and with twelve behind it and behind no positions. In the last layer alone it is behind both, as was expected, and at
both depths behind no positions. To add the table again was to change less than 0.01 with four layers, and does: the
90 % interval is -0.005 to 0.009. With twelve it is 0.022 behind, which the correction leaves open. That RoPE in the
first layer alone loses more beside RoPE in all with twelve layers came in the mean, 0.037, and is not significant.

The rate of RoPE in the first of twelve layers, 0.03, was ahead of 0.01 by 0.001 in its one trial.""",
    ),
    "length": Page(
        title="longer than it was trained",
        chapters=("longer/longer-than-trained",),
        said="""\
At four times the trained length new offsets alone cost a table {+learned: gap minus the last 64} nats a character, and
a stack, which adds keys and beginnings, a model without any {+nopos: stack minus the last 64}. RoPE loses
{+rope: plain minus the last 64}; neither the gap, with the largest new offsets, nor more keys cost it anything
significant{open rope: (gap|stack) .*}. The formula did not hold: copying the most similar scheme is
better{below asked: law minus name}.""",
        charts=(
            Chart("Read plainly, minus the end alone", r"(.*): plain minus the last 64"),
            Chart("New offsets alone, a gap, minus the end alone", r"(.*): gap minus the last 64"),
            Chart("More keys alone, a stack, minus the end alone", r"(.*): stack minus the last 64"),
            Chart("The law minus each rival, asked arms", r"asked: law minus (.*)", "difference, R²"),
        ),
        failed="""\
Of what was expected, p-RoPE with a quarter of its pairs was to lose a tenth of what RoPE does, and loses as much;
CoPE was to lose as little in a stack as those with positions, and loses there all that it loses; sharper logits were
to take a tenth of what a model without positions loses, and take nothing at four times the length; and a copy within
64 was to give each scheme 0.1 nats, and gives none 0.02. The law was to have an R2 above 0.5 in the asked arms and
above that of its draft, and "name" is better than both: by its own rule it did not hold. A gap at 256 was to cost
learned, both sinusoidal ones, T5, RoPE and xPos more than half of what the longer text costs; it cost RoPE and xPos
nothing and T5 a third. The whole was to be its two parts within 0.2 where less than 2 nats are lost; T5 and xPos lose
more than a nat beyond them. Sharper logits were to help no scheme with positions by more than 0.1, and helped CoPE by
0.4. The forgetting Transformer did what was expected of it.

The onset is the first of nine lengths at which the loss has risen by 0.1 nats, or none. Of the ten kinds that the
formula was not fitted to it names the onset or the length beside it for eight, and "name" for seven.""",
    ),
    "length-doses": Page(
        title="one knob at a time",
        chapters=("longer/longer-than-trained",),
        said="""\
Buckets of T5 that end well within the trained length take {-t5, max_distance 32 minus .*} nats of what four times
that length costs, and a base of RoPE foretold to fail loses {+rope, base 100000 .* at 128} more at twice. With YaRN
RoPE loses {-yarn minus none, trained on 256.*} less at four times{below yarn minus none, trained on 64.*}. PoPE's
loss rises less than RoPE's{below pope minus rope: rise.*}, which we had not expected.""",
        charts=(
            Chart(
                "T5's buckets and FIRE's threshold: the rise at 256, minus the usual",
                r"((?:t5|fire), \w+ \d+) minus \d+: .*",
            ),
            Chart("RoPE's base minus 10,000: the rise at 128", r"rope, (base \d+) minus 10000: rise at 128"),
            Chart("RoPE's base minus 10,000: the rise at 256", r"rope, (base \d+) minus 10000: rise at 256"),
            Chart("Scaled logits and drawn positions, minus not", r"(\w+, (?:scaled|drawn)) minus not(: .*)"),
            Chart("RoPE trained on 256, scalings", r"(\w+ minus \w+), trained on 256(: .*)"),
            Chart("A stack without some of its added tokens", r"nopos, added blocks: (.*)"),
            Chart("RoPE trained on 64, scalings", r"(\w+ minus (?:none|ntk)), trained on 64(: .*)"),
            Chart("PoPE minus RoPE", r"pope minus rope: (.*)"),
            Chart("The law minus as usual, over doses", r"(.*): law minus as usual", "difference, R²"),
        ),
        failed="""\
By its own rule the law held in part over all ten doses: its R2 is 0.48, and above that of "as usual". But that is T5;
for the bases of RoPE and for FIRE's threshold "as usual" is better. The law says the right side for eight of ten
doses; FIRE's two are wrong; only three of the ten differences can be told, and these are right. Drawn positions were
to leave less than 0.1 nats of the rise at 256, and leave 0.80 of a table's and 0.28 of RoPE's. NTK was to be better
than no scaling at 1024, and the difference is not significant. A million as RoPE's base was to lose as much as 10,000
at 128: it loses 0.15 more, not significantly, and nothing says that the two are equal. A base of 100 loses 0.50 less
than 10,000 at 256, which was known. In the stack all came as expected; hiding tokens from the middle of the
added blocks costs 0.09, significantly. PoPE was to lose more than half a nat at 128, and loses 0.26; of its losses at
nine lengths the formula, with its coefficients of before, explains 0.79 (R2, the mean of five seeds; not planned as a
comparison).""",
        rows={
            "without first tokens minus all of them": "no first tokens minus all",
            "without middle tokens minus all of them": "no middle tokens minus all",
            "first tokens alone minus none of them": "first tokens alone minus none",
            "without first tokens minus none of them": "no first tokens minus none",
            **{f"t5, max_distance {end}": f"T5, buckets to {end}" for end in (32, 64, 256, 512)},
            **{
                f"{one} minus {other}: loss at {n}": f"{EIGHT.get(one, one)} minus {EIGHT.get(other, other)}, at {n}"
                for one in ("linear", "ntk", "yarn")
                for other in ("none", "ntk")
                for n in (128, 256, 512, 1024)
            },
        },
    ),
    "far-questions": Page(
        title="asked about what stands far back",
        chapters=("longer/longer-than-trained",),
        said="""\
In texts four times as long as those of the training Shaw, ALiBi, FIRE and the forgetting Transformer find what stands
far back: with it they answer {+(shaw|alibi|fire|forgetting), needle: more than 120 back.*} more of the needles. A table
answers {+learned, needle: more than 120 back.*} more; what RoPE answers more is not
significant{open rope, \\w+: more than 120 back.*}.""",
        charts=(
            Chart("A needle far back: the whole text minus its end", r"(\w+), needle: more than .*", ANSWERS),
            Chart("Induction far back: the whole text minus its end", r"(\w+), induction: more than .*", ANSWERS),
            Chart("A needle: with a gap minus without", r"(\w+), needle: gap minus none", ANSWERS),
            Chart("Induction: with a gap minus without", r"(\w+), induction: gap minus none", ANSWERS),
        ),
        failed="""\
Of what was expected, Shaw, ALiBi and forgetting gained at least half, and RoPE less than 0.2. FIRE was to lie between
and gains as much as Shaw; learned and T5 were to gain less than 0.2 and gain 0.4 and 0.9. A gap was to cost learned, T5
and RoPE more than 0.25: it costs T5 nothing, and of the others no difference is significant; it costs ALiBi 0.03 of
induction, where nothing was expected. Nor are all others as good as RoPE at 64: none never learns induction, and ALiBi,
the table and forgetting answer fewer of its questions. At 256 Shaw and forgetting still count right in three of five
texts, where nobody was to keep counting.

Those more than 120 back are not the whole: of all needles at 256 T5 finds 0.61 where it found all at 64. At one length
what is far from the question is near the beginning, and texts of 512 tell the two apart: there T5 finds 0.46 of those
more than 120 back, none 0.25 and a table 0.18, where they find 0.96, 0.65 and 0.49 at 256. So distance
alone does not say what these three find. RoPE finds half of those that stand nearer than 120 at 256.""",
    ),
    "nopos": Page(
        title="with and without positions",
        chapters=(
            *("nopos/no-positions", "nopos/how-it-knows", "nopos/masked-models", "nopos/after-nopos"),
            "longer/past-the-trained-length",
        ),
        said="""\
Causal models do without positions at a small price, masked ones at a large: a table lowers the loss by
{-causal: learned minus nopos} nats in the one, at short runs' rate, and {-masked: learned minus nopos} in the other,
not yet at its end. In larger causal models no difference to a table is
significant{open larger.*: learned minus nopos}. Past the trained length none loses
{+past the trained length: nopos} more.""",
        charts=(
            Chart("Reading from left to right", r"causal: (.*)|(larger.*:.*minus nopos)"),
            Chart("Masked: learned minus none", r"(masked.*): learned minus nopos"),
            Chart("Past the trained length, minus just before its end", r"past the trained length: (.*)", RISE),
        ),
        rows={
            "larger, length 32: learned minus nopos": "length 32: learned minus NoPos",
            "larger, length 256: learned minus nopos": "length 256: learned minus NoPos",
            "masked": "15% hidden",
            **{f"masked, {share} hidden": f"{share} hidden" for share in ("5%", "40%", "60%")},
        },
    ),
    "nopos-large": Page(
        title="twenty-five million parameters",
        chapters=("nopos/no-positions",),
        said="""\
After one character for each parameter a model without positions loses {+nopos minus learned} nats more
than one with a table, which had three times its rate, and {+nopos minus alibi} more than one with ALiBi. It begins
late; what it pays in the end was not measured.""",
        charts=(Chart("The loss", r"(.*)"),),
    ),
}
