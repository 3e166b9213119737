"""The pages of evidence say what the stored studies hold, all of it, and what came of them first."""

import re
from functools import cache
from statistics import fmean
from xml.etree import ElementTree

import pytest
from tool import load

from posembed import load_study as loaded
from posembed.stats import family, interval
from posembed.stored import study_names
from studies import length_doses, length_law
from studies.which_positions import correlation

TOOL = load("evidence")
STUDIES, load_study = TOOL.STUDIES, cache(loaded)
CENSUS = load("census_page")
# What a number of a sentence stands for, and what the sentence says of it beside.
PLACE = r"\{(\+|-|above |below |open )([^{}]+)\}"


def test_the_pages_are_those_that_the_studies_make():
    assert {*STUDIES} == {*study_names()}
    files = TOOL.made()
    assert {*TOOL.PAGES.iterdir()} == {*files, CENSUS.PAGE, CENSUS.PAGE.with_name("bugs.md")}
    stale = [path.name for path, text in files.items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run make results"


@pytest.mark.parametrize("name", study_names())
def test_a_page_has_every_contrast_and_every_arm(name):
    lines, study = (TOOL.PAGES / f"{name}.md").read_text(encoding="utf-8").splitlines(), load_study(name)
    for row in (*study.contrasts.index, *study.by_arm):
        assert any(line.startswith(f"| {row} |") for line in lines), row
    assert sum(line.startswith("| ") for line in lines) == len(study.contrasts) + len(study.by_arm) + 2 * (
        len(study.planned) + 1
    ) + (name == "causes") * (2 + 1 + len(TOOL.FORMS))


@pytest.mark.parametrize("name", study_names())
def test_what_came_of_a_study_is_what_its_contrasts_show(name):
    """No number is typed, each is that of the contrasts it names, and these are as the words around it say."""
    said, found = " ".join(STUDIES[name].said.split()), load_study(name).contrasts
    assert not re.search(r"\b\d", re.sub(PLACE, "", said))
    for kind, names in re.findall(PLACE, said):
        called = [(row, f"{family}/{row}") for row, family in found["family"].items()]
        rows = found[[any(re.fullmatch(names, each) for each in both) for both in called]]
        signs = {(mean > 0) - (mean < 0) for mean in rows["mean"][rows["holm"] < 0.05]}
        assert len(rows) and signs == {"+": {1}, "above ": {1}, "-": {-1}, "below ": {-1}, "open ": set()}[kind], names
        assert (rows["holm"] < 0.05).all() or kind == "open ", names
        sizes = [f"{size:#.2g}".rstrip(".") for size in sorted(rows["mean"].abs())]
        number = " to ".join(dict.fromkeys((sizes[0], sizes[-1]))) if kind in "+-" else ""
        said = said.replace(f"{{{kind}{names}}}", number)
    page = (TOOL.PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert page.split("\n## ")[0].count(f"\n{said}\n") == 1 and f"`{name}`" in page.split("\n## ")[0]
    assert len(said.split()) <= 60 and len(re.findall(r"\b\d[\d.]*", said)) <= 3 and len(said.split(". ")) <= 3
    index = (TOOL.PAGES / "index.md").read_text(encoding="utf-8")
    assert re.split(r"(?<=\.) ", said)[0] in next(line for line in index.splitlines() if f"<{name}>`" in line)


@pytest.mark.parametrize("place", ["{-a}", "{open a}", "{below a}", "{+b}", "{above b}", "{+a|b}", "{+c}"])
def test_words_that_are_not_true_of_a_contrast_are_refused(place):
    found = family({"a": interval([1.0, 1.1, 0.9]), "b": interval([-1.0, 1.0, 0.1])}).assign(family="planned")
    assert TOOL.filled("It costs {+a}{open planned/b}.", found) == "It costs 1.0."
    with pytest.raises(ValueError, match="not true"):
        TOOL.filled(f"It costs {place}.", found)


@pytest.mark.parametrize("name", study_names())
def test_a_picture_has_a_row_for_each_of_its_contrasts_and_says_which_are_significant(name):
    page, study = (TOOL.PAGES / f"{name}.md").read_text(encoding="utf-8"), load_study(name)
    pictures = re.findall(r"```\{image\} (\S+)\n:alt: (.*)\n", page)
    drawn = 0
    for (file, alt), chart in zip(pictures, STUDIES[name].charts, strict=True):
        texts = {each.text for each in ElementTree.parse(TOOL.PAGES / file).iter("{http://www.w3.org/2000/svg}text")}
        rows = TOOL.drawn(study, chart)
        assert len(rows) and rows.index.is_unique and {*rows.index, chart.unit} <= texts
        assert max(map(len, rows.index)) <= 31  # or half of a phone is names
        full = re.findall(r"(?:^Full: |; )(.*?) −?[\d.]+(?=[;.])", alt.partition("Open: ")[0])
        assert full == [*rows.index[rows["holm"] < 0.05]], file
        drawn += len(rows)
    total = f"all {drawn}" if drawn == len(study.contrasts) else f"{drawn} of the {len(study.contrasts)}"
    assert f"Drawn are {total} planned contrasts" in page


def test_what_came_of_the_forms_is_what_the_contrasts_show():
    said, found = " ".join(STUDIES["causes"].failed.split()), load_study("causes").contrasts
    costs = found[(found["holm"] < 0.05) & found.index.str.endswith(" minus undosed")]
    assert {*costs.index} == {
        f"{each} minus undosed" for each in ("distance: wave", "lookup: near peak", "majority: near peak")
    }
    assert (
        "Three costs stand by themselves: the wave's on distance, and the near peak's on lookup and on majority."
        in said
    )
    order = load_study("causes").runs.query("arm == 'order, undosed'")["accuracy"].mean()
    assert round(order, 2) == 0.99 and "order stands at 0.99" in said


def test_the_order_of_untrained_errors_is_what_the_runs_show():
    study, said = load_study("starts"), " ".join(STUDIES["starts"].failed.split())
    arms = [study.by_arm[f"{start}, nopos"] for start in ("large", "large, scaled", "small", "small, scaled")]
    errors = [round(fmean(min(run.metrics["untrained"]["mae"]) for run in its), 1) for its in arms]
    losses = [round(fmean(run.metrics["loss"] for run in its), 3) for its in arms]
    assert errors == sorted(errors) and losses == sorted(losses)
    for numbers in (errors, losses):
        *first, last = numbers
        assert f"{', '.join(map(str, first))} and {last}" in said


def test_what_failed_is_what_the_runs_show():
    """The numbers of the nine schemes: losses, scores, and the planned correlations."""
    study = load_study("tasks")
    said = " ".join(STUDIES["tasks"].failed.split())
    kinds = ("learned", "sinusoidal", "learnable_sinusoidal")
    means = study.runs.groupby("arm")[["loss", "accuracy", "f1", "baseline"]].mean()
    forms = {form: [f"{kind}, {form}" for kind in kinds] for form in ("absolute", "relative", "both")}
    nine = [arm for arms in forms.values() for arm in arms]
    apart = [
        [round(end, 1) for end in (min(losses), max(losses))]
        for losses in (means["loss"][forms["absolute"]], means["loss"][forms["relative"] + forms["both"]])
    ]
    assert apart == [[2.8, 2.9], [1.7, 2.1]] and "losses of 2.8 to 2.9, the six others at 1.7 to 2.1" in said
    on_sst2 = means["accuracy"][[f"sst2, {arm}" for arm in nine]]
    assert (round(on_sst2.min(), 2), round(on_sst2.max(), 2)) == (0.58, 0.62)
    assert "between 0.58 and 0.62" in said
    spans = [round(means["f1"][f"xquad-moved, learned, {form}"], 2) for form in ("absolute", "relative")]
    nowhere = round(means["baseline"]["xquad-moved, learned, absolute"], 2)
    assert (spans, nowhere) == ([0.41, 0.45], 0.47) and "0.41 and 0.45" in said and "0.47" in said
    score = means["f1"].fillna(means["accuracy"])
    found = {
        (task, name): correlation(
            {arm: fmean(run.metrics["positions"]["attention"][name] for run in study.by_arm[arm]) for arm in nine},
            {arm: score[f"{task}, {arm}"] for arm in nine},
        )
        for task in ("sst2", "trec", "word", "word-moved")
        for name in ("monotonicity", "translation_invariance", "symmetry")
    }
    invariance = {task: r for (task, name), (r, _) in found.items() if name == "translation_invariance"}
    assert [f"{invariance[task]:+.2f}" for task in ("sst2", "word-moved")] == ["+0.77", "-0.87"]
    assert "(+0.77)" in said and "(−0.87)" in said
    (first, (r, p)), (_, (_, next_p)) = sorted(found.items(), key=lambda each: each[1][1])[:2]
    assert first == ("trec", "symmetry") and f"{r:.2f}" == "-0.88" and 12 * p < 0.05 < 11 * next_p


def test_the_onsets_of_length_are_what_the_page_says():
    said, study = " ".join(STUDIES["length"].failed.split()), load_study("length")
    assert 'the length beside it for eight, and "name" for seven.' in said and len(length_law.LENGTHS) == 9
    steps, right = [*length_law.LENGTHS, None], []

    def onset(of, arm):
        return steps.index(length_law.onset([fmean(each) for each in zip(*map(of, study.by_arm[arm]), strict=True)]))

    for arm, kin in length_law.KIN.items():
        told = onset(lambda run: length_law.predicted(run, "law"), arm), onset(length_law.rises, kin)
        right.append([abs(each - onset(length_law.rises, arm)) <= 1 for each in told])
    assert len(right) == 10 and [sum(each) for each in zip(*right, strict=True)] == [8, 7]


def sides_at_256(doses):
    """The contrast of each dose at 256."""
    for name in doses:
        yield f"{name} minus {length_doses.DOSES[name.split(',')[0]][2]:.0f}: rise at 256"


def test_what_was_not_expected_of_doses_is_what_the_runs_show():
    said, study = " ".join(STUDIES["length-doses"].failed.split()), load_study("length-doses")
    mean, runs = study.contrasts["mean"], study.by_arm
    assert f"its R2 is {mean['all doses: law']:.2f}" in said and mean["all doses: law minus as usual"] > 0
    assert mean["rope: law minus as usual"] < 0 and mean["fire: law minus as usual"] < 0
    sides = length_doses.right_sides([run for its in runs.values() for run in its])
    assert "for eight of ten doses; FIRE's two are wrong" in said
    assert [name for name, right in sides.items() if not right] == ["fire, threshold 8", "fire, threshold 128"]
    assert len(sides) == 10
    left = {
        arm: sum(run.metrics["drawn"]["drawn"]["256"] - run.metrics["drawn"]["drawn"]["64"] for run in runs[arm]) / 5
        for arm in ("learned, drawn", "rope, drawn")
    }
    assert "leave {:.2f} of a table's and {:.2f} of RoPE's".format(*left.values()) in said
    holm = study.contrasts["holm"]
    assert holm["ntk minus none, trained on 256: loss at 1024"] > 0.05
    million = "rope, base 1000000 minus 10000: rise at 128"
    assert f"loses {mean[million]:.2f} more, not significantly" in said and holm[million] > 0.05
    hundred = "rope, base 100 minus 10000: rise at 256"
    assert f"A base of 100 loses {-mean[hundred]:.2f} less" in said and holm[hundred] < 0.05
    told = holm[[*sides_at_256(sides)]] < 0.05
    assert told.sum() == 3 and all(sides[name.split(" minus")[0]] for name in told[told].index)
    assert "only three of the ten differences can be told, and these are right" in said
    plain = [run.metrics["longer"]["plain"] for run in runs["pope"]]
    assert f"loses {fmean(each['128'] - each['64'] for each in plain):.2f};" in said
    explained = [
        length_law.explained([length_law.predicted(run, "law")], [length_law.rises(run)]) for run in runs["pope"]
    ]
    assert f"explains {fmean(explained):.2f} (R2" in said
    middle = "nopos, added blocks: without middle tokens minus all of them"
    assert f"the added blocks costs {mean[middle]:.2f}, significantly" in said and holm[middle] < 0.05


def test_what_was_not_expected_of_far_questions_is_what_the_runs_show():
    said = " ".join(STUDIES["far-questions"].failed.split())
    asked = {arm: [run.metrics["asked"] for run in its] for arm, its in load_study("far-questions").by_arm.items()}
    far = {
        n: [round(fmean(each["far"][n]["needle"] for each in asked[arm]), 2) for arm in ("t5", "nopos", "learned")]
        for n in ("512", "256")
    }
    assert "T5 finds {:.2f} of those more than 120 back, none {:.2f} and a table {:.2f}".format(*far["512"]) in said
    assert "where they find {:.2f}, {:.2f} and {:.2f} at 256".format(*far["256"]) in said
    of_all = round(fmean(each["plain"]["256"]["needle"] for each in asked["t5"]), 2)
    assert f"of all needles at 256 T5 finds {of_all:.2f}" in said


def test_what_was_not_expected_of_once_or_again_is_what_its_contrasts_and_trials_show():
    study, said = load_study("once-or-again"), " ".join(STUDIES["once-or-again"].failed.split())
    mean = study.contrasts["mean"]
    assert f"twelve layers lose {-mean['table once: 12 layers minus 4']:.3f} less than four" in said
    assert f"With twelve it is {mean['12 layers: table again minus table once']:.3f} behind" in said
    losses = study.runs.pivot(index="seed", columns="arm", values="loss")
    again = interval((losses["4 layers, table again"] - losses["4 layers, table once"]).dropna(), level=0.9)
    assert f"the 90 % interval is {again.low:.3f} to {again.high:.3f}" in said


def test_the_page_of_the_census_is_that_of_its_results():
    assert CENSUS.PAGE.read_text(encoding="utf-8") == CENSUS.page(), "run make results"
    # Whatever is broken was looked at, and nothing else stands in that table.
    of_type = {each["type"]: {check["verdict"] for check in each.get("checks", ())} for each in CENSUS.results()}
    cells = [line.split("|")[1] for line in CENSUS.looked_at().splitlines()[2:]]
    named = {name.split()[0] for cell in cells for name in re.sub(r"\(.*?\)", "", cell).split(",")}
    assert {name for name, verdicts in of_type.items() if "broken" in verdicts} == named
