"""Real tasks: read from small folders of our own making, and what is wrong with a folder."""

import json
import os
from pathlib import Path

import pytest
import torch
from refusals import refused

from posembed.data import load_corpus
from posembed.errors import CorpusError, TaskError
from studies.training.classes import FORMATS, ClassedText, class_task, read_classes
from studies.training.spans import Question, moved_questions, question_rows, read_questions, span_task, word_questions
from studies.training.subwords import Subwords, subword_corpus

LINES = {
    "sst2": ("a gem\t1", "no gem\t0"),
    "trec": ("5 How far is it ?", "3 Who was she ?"),
    "cola": ("gj04\t1\t\tIt sank.", "gj04\t0\t*\tIt sank it sank."),
}
WORDS = Subwords(["a gem , no gem", "who barks ? the dog number 0 1 2 3 4 5 6 7 8 9 :"], size=120)


def folder_of(name, path, lines=None):
    for part, file in FORMATS[name].files.items():
        its = LINES[name] * (10 if part == "train" else 1) if lines is None or part != "test" else lines
        (path / file).write_text("".join(f"{line}\n" for line in its), encoding=FORMATS[name].encoding)
    return path


@pytest.mark.parametrize("name", FORMATS)
def test_a_folder_is_read_as_its_authors_wrote_it(name, tmp_path):
    parts = read_classes(name, folder_of(name, tmp_path))
    texts = {"sst2": ("a gem", 1), "trec": ("How far is it ?", 5), "cola": ("It sank.", 1)}
    assert parts["test"][0] == ClassedText(*texts[name]) and len(parts["test"]) == 2
    # Where authors give nothing for validation it is taken from the training, every tenth text.
    assert (len(parts["train"]), len(parts["validation"])) == ((18, 2) if name == "trec" else (20, 2))


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        ("sst2", ["a gem\t2"], "sst2_test.tsv, line 1, has the label '2'; labels are whole numbers from 0 to 1"),
        ("sst2", ["a gem\t1", "no gem"], "sst2_test.tsv, line 2, has no text and label as sst2 has them; mend it"),
        ("cola", ["gj04\t1\tIt sank."], "cola_out_of_domain_dev.tsv, line 1, has no text and label as cola has them"),
        ("trec", ["x How ?"], "sent-conv_TREC.test.all, line 1, has the label 'x'; labels are whole numbers from 0 to"),
        ("sst2", [], "sst2_test.tsv of sst2 holds no text; take the file of its authors"),
    ],
)
def test_a_folder_with_a_file_that_is_malformed(name, lines, message, tmp_path):
    assert refused(TaskError, read_classes, name, folder_of(name, tmp_path, lines)).startswith(message)


@pytest.mark.bad_input
def test_a_folder_that_lacks_a_file_and_a_task_that_is_unknown(tmp_path):
    (folder_of("sst2", tmp_path) / "sst2_dev.tsv").write_bytes(b"caf\xe9\t1\n")
    message = refused(TaskError, read_classes, "sst2", tmp_path)
    assert message == "sst2_dev.tsv of sst2 is not utf-8 text; take the file of its authors"
    (tmp_path / "sst2_dev.tsv").unlink()
    assert "cannot read sst2_dev.tsv of sst2 (No such" in refused(TaskError, read_classes, "sst2", tmp_path)
    assert refused(TaskError, read_classes, "glue", tmp_path) == "task is 'glue'; choose among sst2, trec, cola"


@pytest.mark.bad_input
def test_rows_that_are_no_questions():
    assert refused(TaskError, question_rows, []) == "there is no question; give a part that holds some"
    assert refused(TaskError, question_rows, [{"question": "Who?"}]).startswith("row 0 has no question, context and")


def test_texts_with_classes_begin_with_cls_and_are_cut_and_counted():
    parts = {part: [ClassedText("a gem", 1), ClassedText("no " * 9, 0)] for part in ("train", "validation", "test")}
    task = class_task("gems", parts, 2, WORDS, length=6)
    assert task.test.ids[:, 0].tolist() == [WORDS.cls_id] * 2 and task.padding == WORDS.padding_id
    assert task.test.ids[0].tolist() == [WORDS.cls_id, *WORDS.encode("a gem").tolist()] + [WORDS.padding_id] * (
        5 - len(WORDS.encode("a gem"))
    )
    assert task.counted == {"cut": 3, "train": 2, "validation": 2, "test": 2}
    drawn = task.draw(50, torch.Generator().manual_seed(0))
    assert set(drawn.labels.tolist()) == {0, 1} and task.baseline == 0.5


def written(path, questions):
    paragraphs = [
        {"context": context, "qas": [{"question": question, "answers": [{"answer_start": start, "text": answer}]}]}
        for question, context, start, answer in questions
    ]
    path.write_text(json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]}), encoding="utf-8")
    return path


def test_questions_are_read_and_every_second_one_is_moved(tmp_path):
    asked = [(f"Who barks {n} ?", f"Number {n} : the dog {n} .", 11, f"the dog {n}") for n in range(10)]
    questions = read_questions(written(tmp_path / "questions.json", asked))
    assert questions[3] == Question(*asked[3])
    moved = moved_questions(questions)
    assert moved[::2] == questions[::2] and moved == moved_questions(questions)
    for before, after in zip(questions[1::2], moved[1::2], strict=True):
        assert (after.question, after.start, after.answer) == (before.question, None, "")
        assert before.answer not in after.context


def test_the_answer_stands_where_the_labels_say_in_whatever_piece_of_a_text():
    context = " ".join(str(n % 10) for n in range(60))
    asked = [
        Question("who barks ?", f"{n % 10} {context} the dog {context}", 2 + len(context) + 5, "dog") for n in range(10)
    ]
    task = span_task("dogs", asked, WORDS, length=32)
    assert task.counted == {
        "questions": 10,
        "cut": 10,
        "outside": 0,
        "too long": 0,
        "train": 7,
        "validation": 1,
        "test": 2,
    }
    drawn, places = task.draw(200, torch.Generator().manual_seed(0)), set()
    for ids, (first, last) in zip(drawn.ids, drawn.labels.tolist(), strict=True):
        assert ids[first : last + 1].tolist() == WORDS.encode("the dog").tolist()[-(last + 1 - first) :]
        assert last - first < 2
        places.add(first)
    assert len(places) > 3 and drawn.ids[0, 0] == WORDS.cls_id and WORDS.separator_id in drawn.ids[0]


def test_what_cannot_be_asked_is_counted():
    asked = [Question("who ?", f"{n} the dog", 5 + len(str(n)), "dog") for n in range(20)]
    asked[0] = Question("who ?", asked[0].context, 7, "dog")
    asked[1] = Question("who ?", asked[1].context, 90, "dog")
    asked[2] = Question("who ?", " ".join("0" * 40), 0, " ".join("0" * 40))
    asked[3] = Question("who ?", asked[3].context, None)
    task = span_task("dogs", asked, WORDS, length=16)
    assert {name: task.counted[name] for name in ("outside", "too long", "train")} == {
        "outside": 2,
        "too long": 1,
        "train": 11,
    }
    labels = task.draw(200, torch.Generator().manual_seed(0)).labels
    assert (labels == 0).all(1).any() and not (labels == 0).all(1).all()


@pytest.mark.bad_input
@pytest.mark.parametrize("content", ["{", "[]", '{"data": [{"paragraphs": [{"context": "a"}]}]}'])
def test_a_file_that_holds_no_questions(content, tmp_path):
    (tmp_path / "asked.json").write_text(content, encoding="utf-8")
    message = refused(TaskError, read_questions, tmp_path / "asked.json")
    assert message == "asked.json is malformed; give a JSON file as SQuAD's: data, paragraphs, qas"


@pytest.mark.bad_input
def test_too_few_questions_and_an_answer_that_stands_everywhere():
    one = Question("who ?", "the dog", 4, "dog")
    message = refused(TaskError, span_task, "dogs", [one], WORDS, length=16)
    assert message == "no question of dogs is left for the part validation; give more of them"
    message = refused(TaskError, moved_questions, [one, one])
    assert message == "the answer 'dog' stands in every text; give more texts"


# Subwords.


def test_subwords_are_the_same_each_time_and_say_where_they_stand():
    text = "The lower Dog's [MASK] lowest"
    words, again = (Subwords([text] * 3, size=60) for _ in range(2))
    pieces = words.pieces(text)
    assert pieces.ids.tolist() == again.pieces(text).ids.tolist() == words.encode(text).tolist()
    assert "".join(text[begin:end] for begin, end in pieces.ends) == text
    # The name of a special token is a text like any other.
    assert pieces.ids.min() > words.padding_id and len(words) <= 60
    assert words.encode("").tolist() == [] and words.encode("東").tolist() == [words.unknown_id]


@pytest.mark.bad_input
def test_subwords_of_nothing():
    assert "needs at least one character" in refused(CorpusError, Subwords, [""])


def test_a_corpus_of_subwords(tmp_path):
    (tmp_path / "text.txt").write_text("one two three four\n" * 100, encoding="utf-8")
    corpus = subword_corpus(str(tmp_path / "text.txt"), 50)
    assert corpus.vocab_size == len(corpus.vocabulary) <= 50 and len(corpus.train) < 1710
    assert corpus.n_words == load_corpus(tmp_path / "text.txt").n_words


# The real ones.


@pytest.fixture
def real():
    if not Path(os.environ.get("POSEMBED_TASKS", ""), "xquad", "xquad.en.json").is_file():
        pytest.skip("needs the real tasks: folders sst2, trec, cola and xquad in the one that POSEMBED_TASKS names")
    return Path(os.environ["POSEMBED_TASKS"])


def test_the_real_tasks_are_whole(real):
    sizes = {name: [len(part) for part in read_classes(name, real / name).values()] for name in FORMATS}
    assert sizes == {"sst2": [6920, 872, 1821], "trec": [4907, 500, 545], "cola": [8551, 527, 516]}
    questions = read_questions(real / "xquad" / "xquad.en.json")
    assert len(questions) == 1190 and all(each.context[each.start :].startswith(each.answer) for each in questions)
    assert sum(each.start is None for each in moved_questions(questions)) == 595


def test_a_question_of_words_asks_for_one_that_stands_once():
    text = "one two three four, five six seven eight nine ten eleven three " * 40
    asked = word_questions(text, 20, size=40)
    assert len(asked) == 20 and asked == word_questions(text, 20, size=40)
    for each in asked:
        assert each.context[each.start :].startswith(each.answer) and each.context.count(each.question) == 1
        assert len(each.context) <= 40 and len(each.question) >= 4 and each.question.isalpha()
