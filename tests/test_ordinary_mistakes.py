"""What a user mixes up on an ordinary day, all over the package: a named error in one line that says what to do."""

import numpy as np
import pandas
import pytest
import torch
from refusals import refused
from small_models import build

import posembed.figures as figures
from posembed import (
    PositionScheme,
    RunConfig,
    Transformer,
    TransformerConfig,
    load_table,
    probe_table,
    scheme,
    sinusoidal,
    train,
    with_position_table,
)
from posembed.data import (
    Characters,
    ClassedText,
    Question,
    Subwords,
    class_task,
    classed_rows,
    enlarged,
    load_corpus,
    masked,
    moved_questions,
    perplexities,
    question_rows,
    random_windows,
    read_classes,
    read_questions,
    span_task,
    windows_in_order,
    word_questions,
)
from posembed.encodings import (
    ALiBi,
    RoPE,
    Sinusoidal,
)
from posembed.errors import (
    CorpusError,
    EncodingInputError,
    FigureInputError,
    PositionTableError,
    RunError,
    TaskError,
)
from posembed.models import (
    use_scheme,
)
from posembed.tables import PositionTable
from posembed.training import (
    learning_rate_factor,
    load_results,
    load_tables,
    make_model,
    missing,
    read_model,
    read_results,
    read_studies,
    read_tables,
    run_and_store,
    run_grid,
    table_studies,
    torch_threads,
    write_model,
    write_result,
    write_table,
)
from posembed.widgets import BiasFigure, DepthFigure, DoseFigure

CONFIG = TransformerConfig(vocab_size=9, n_layers=2, d_model=8, n_heads=2)
X, IDS = torch.randn(2, 5, 8), torch.arange(10).view(2, 5) % 9


AT = torch.arange(-2, 1)


def small():
    return Transformer(CONFIG)


RUNS = [
    (lambda: run_and_store(RunConfig(), None), "None is no path; give the folder of the results"),
    (lambda: run_grid([], out="x" * 300), "is no path (File name too long); give the folder of"),
    (lambda: read_model(RunConfig(), "x" * 300), "is no path (File name too long); give the folder of the results"),
    (lambda: load_results(""), "'' is no path; give a folder, or the name of a study"),
    (lambda: load_results("x" * 300), "is no path (File name too long); give a folder, or the name of a study"),
    (lambda: train(RunConfig(), checkpoint="a\0b"), "give the path of a file, such as 'run.checkpoint'"),
    (lambda: load_tables("x" * 300), "choose among trained-tables"),
    (lambda: table_studies("gpt2"), "sources is 'gpt2'; give a list of names"),
    (lambda: make_model(None, load_corpus()), "config is None; give a RunConfig, before the corpus"),
    (lambda: learning_rate_factor(1, None), "config is None; give a RunConfig"),
    (lambda: RunConfig(cls="tied"), "cls is 'tied', which is for subwords and objective='masked'; leave it out"),
    (lambda: RunConfig(cls="first"), "cls is 'first'; choose among tied, untied, moved"),
    (lambda: train(RunConfig(), progress=5), "progress is 5; give a function of the number of steps and the loss"),
    (lambda: train(RunConfig(), checkpoint="."), "checkpoint is '.'; give the path of a file"),
    (lambda: train(RunConfig(), checkpoint=True), "True is no path; give the path of a file"),
    (lambda: run_grid([], out=".", gpus="x"), "gpus is 'x'; it must be a share of a GPU, such as 0.5"),
    (lambda: make_model(RunConfig(), None), "corpus is None; give a corpus, as of load_corpus, or a task"),
    (lambda: write_result(".", RunConfig()), "result is '.'; give a RunResult, before the folder"),
    (lambda: write_table(RunConfig(), torch.eye(2), "."), "weight is a RunConfig; give a table as a tensor"),
    (lambda: write_model(RunConfig(), small(), "."), "model is a RunConfig; give a trained model, then its config and"),
    (lambda: RunConfig.from_dict(None), "values are None; give a mapping, such as to_dict() returns"),
    (lambda: RunConfig.from_dict("rope"), "values are 'rope'; give a mapping, such as to_dict() returns"),
    (lambda: train(RunConfig(), progress=lambda: None), "give a function of the number of steps and the loss, or None"),
    (
        lambda: run_grid([RunConfig()], out="no", progress=5),
        "progress is 5; give a function of a config and its result",
    ),
    (lambda: run_grid([RunConfig()], out="no", save_models="no"), "save_models is 'no'; give True or False"),
    (lambda: missing(RunConfig(), "nowhere"), "configs is a RunConfig; give a list of RunConfig"),
    (lambda: missing([RunConfig()], None), "None is no path; give the folder of the results, as text"),
    (lambda: read_results("no-such"), "there is no folder 'no-such'; give the folder of the results"),
    (lambda: read_results(5), "5 is no path; give the folder of the results, as text"),
    (lambda: read_tables("no-such"), "there is no folder 'no-such'; give the folder of the results"),
    (lambda: read_studies("no-such"), "there is no folder 'no-such'; give the folder of the results"),
    (lambda: read_model("no-such", RunConfig()), "config is 'no-such'; give a RunConfig, before the folder"),
    (lambda: torch_threads(0), "n_threads is 0; it must be a whole number of at least 1"),
    (lambda: missing([1], "nowhere"), "1 among the configs is no RunConfig; give a list of RunConfig"),
]
DATA = [
    (lambda: perplexities("a", n_tokens=3, n_words=1), "the loss is 'a'; it must be a number of nats of at least 0"),
    (lambda: perplexities(1.0, n_tokens="3", n_words=1), "n_tokens is '3'; it must be a whole number of at least 1"),
    (lambda: masked([[1, 2]], 0.5, 1, torch.Generator()), "ids are a list; give a tensor of whole numbers, windows"),
    (lambda: masked(IDS, 0.5, 1.5, torch.Generator()), "mask_id is 1.5; it must be a whole number of at least 0"),
    (lambda: masked(IDS, 0.5, 1, 0), "generator is 0; give a torch.Generator"),
    (lambda: random_windows(torch.arange(99), 8, 2, 0), "generator is 0; give a torch.Generator"),
    (lambda: Subwords(None), "texts is None; give a list of texts"),
    (lambda: Subwords("the dog"), "texts is 'the dog'; give a list of texts"),
    (lambda: Subwords(["a dog", 1]), "texts[1] is 1; give a list of texts"),
    (
        lambda: Subwords(["the dog"], size=10**9),
        "size is 1000000000; a vocabulary of more than 1,000,000 subwords",
    ),
    (lambda: Characters([1, 2]), "characters[0] is 1; give a text"),
    (lambda: load_corpus("a\0b"), "give 'sotu' or the path of a text file"),
    (lambda: windows_in_order([1, 2, 3], 2, 1), "ids are a list; give a tensor of whole numbers on one axis"),
    (lambda: windows_in_order(torch.arange(9) > 4, 2, 1), "ids are torch.bool of (9,); give a tensor of whole numbers"),
    (lambda: windows_in_order(torch.arange(9), 2, 1.5), "n_windows is 1.5; it must be a whole number of at least 1"),
    (lambda: Characters(None), "characters is None; give a text"),
    (lambda: Subwords(["a b"], size=-1), "size is -1; it must be a whole number of at least 1"),
    (lambda: load_corpus(subwords="x"), "subwords is 'x'; it must be a whole number of at least 1"),
    (lambda: masked(IDS, "x", 1, torch.Generator()), "the masking rate is 'x'; it must lie between 0 and 1"),
    (lambda: Characters("abc").encode(5), "text is a int; give a str"),
]
WORDS, ASKED = Subwords(["the dog"]), Question("Who barks?", "The dog.", 4, "dog")
ROWS, PARTS = (
    [{"sentence": "a gem", "label": 1}],
    {part: [ClassedText("a", 0)] for part in ("train", "validation", "test")},
)
TASKS = [
    (lambda: classed_rows(ROWS, "2"), "n_classes is '2'; it must be a whole number of at least 2"),
    (lambda: classed_rows(None, 2), "rows is None; give rows, each a mapping of columns"),
    (lambda: question_rows(None), "rows is None; give rows, each a mapping of columns"),
    (lambda: moved_questions("ab"), "questions is 'ab'; give a list of Question"),
    (lambda: span_task("m", [ASKED], "words", length=64), "words is 'words'; give the Subwords"),
    (lambda: span_task("m", [ASKED], WORDS, length="64"), "length is '64'; it must be a whole number of at least 8"),
    (lambda: class_task("m", PARTS, -1, WORDS, length=9), "n_classes is -1; it must be a whole number of at least 2"),
    (lambda: class_task("m", PARTS, 2, WORDS, length=0), "length is 0; it must be a whole number of at least 2"),
    (
        lambda: class_task("m", {"train": PARTS["train"]}, 2, WORDS, length=9),
        "there is no text in the part 'validation'",
    ),
    (lambda: class_task("m", PARTS | {"test": [("a", 0)]}, 2, WORDS, length=9), "parts['test'][0] is ('a', 0); give a"),
    (lambda: enlarged(np.zeros((2, 4, 4)), 8), "pixels is a ndarray; give a tensor of images"),
]
FIGURES = [
    (lambda: BiasFigure("nopos"), "runs is 'nopos'; give a list of results, as load_runs returns"),
    (lambda: DepthFigure(None), "runs is None; give a list of results, as load_runs returns"),
    (lambda: DoseFigure("tasks"), "runs is 'tasks'; give a list of results, as load_runs returns"),
    (lambda: figures.bias_curves(ALiBi(2), offsets=AT, heads=("1",), alt="x"), "heads[0] is '1'; give a list of heads"),
    (
        lambda: figures.damping_curves(RoPE(8), distances=None, pairs=(0,), alt="x"),
        "a NoneType cannot be drawn here; give",
    ),
    (lambda: figures.table_heat(sinusoidal(4, 4), alt=None), "a figure needs an alt text: one sentence"),
    (lambda: figures.bias_curves([ALiBi(2)], offsets=AT, alt="x"), "cannot be drawn; give one scheme, or several by"),
    (lambda: figures.bias_curves("alibi", offsets=AT, alt="x"), "'alibi' cannot be drawn; give one scheme, or several"),
    (lambda: figures.bias_curves(ALiBi(2), offsets=[1, 2], alt="x"), "offsets are a list; give a tensor of integers"),
    (lambda: figures.curves([1, 2], alt="x"), "[1, 2] cannot be drawn; give numbers by label, as a dictionary"),
    (lambda: figures.curves({"a": [1, 2]}, ylim=3, alt="x"), "ylim is 3; give both ends of the axis, such as (0, 1)"),
    (lambda: figures.curves({"a": [1, 2]}, size=3, alt="x"), "size is 3; give width and height in inches"),
    (
        lambda: figures.curves({"a": [1, 2]}, x=5, alt="x"),
        "a int cannot be drawn; give real numbers in an array, with 1",
    ),
    (lambda: figures.curves({"a": [1, 2]}, log_x="yes", alt="x"), "log_x is 'yes'; give True or False"),
    (lambda: figures.bias_curves(ALiBi(2), offsets=AT, heads=5, alt="x"), "heads is 5; give a list of"),
    (
        lambda: figures.damping_curves(RoPE(8), distances=AT, pairs=5, alt="x"),
        "pairs is 5; give a list of pairs",
    ),
    (lambda: figures.weight_maps(ALiBi(1), n_positions=-1, alt="x"), "n_positions is -1; it must be a whole number of"),
    (
        lambda: figures.logit_maps({"a": RoPE(4)}, n_positions=3, q=5, alt="x"),
        "a int cannot be drawn here; give vectors",
    ),
    (lambda: figures.token_differences(None, {"a": [1.0]}, alt="x"), "a NoneType cannot be drawn here; give a list of"),
    (lambda: figures.new_figure("x", 0), "n_columns is 0; it must be a whole number of at least 1"),
    (lambda: figures.probe_scatter(None, alt="x"), "a NoneType cannot be drawn here; give what probe_table returns"),
    (lambda: figures.number_table(pandas.DataFrame({"a": [1.5]}), digits="x"), "digits is 'x'; it must be a whole"),
    (lambda: figures.row_health(torch.eye(3), alt="x"), "a Tensor cannot be drawn here; give a PositionTable"),
    (lambda: figures.helix_portrait(None, alt="x"), "a NoneType cannot be drawn here; give what posembed.probing.spec"),
    (lambda: figures.explained_variance([1], alt="x"), "[1] cannot be drawn; give spectra by label, as a dictionary"),
    (lambda: figures.similarity_maps(torch.eye(2), alt="x"), "cannot be drawn; give tables by label, as a dictionary"),
    (lambda: figures.weight_maps("alibi", n_positions=3, alt="x"), "a str cannot be drawn here; give a scheme that is"),
    (lambda: figures.counted_map(ALiBi(2), ["a"], [True], alt="x"), "a ALiBi cannot be drawn here; give a CoPE scheme"),
    (lambda: figures.logit_maps({"a": "rope"}, n_positions=3, alt="x"), "a str cannot be drawn here; give schemes"),
]
CASES = [
    *((RunError, *case) for case in RUNS),
    *((CorpusError, *case) for case in DATA),
    *((TaskError, *case) for case in TASKS),
    *((FigureInputError if "offsets are" not in case[1] else EncodingInputError, *case) for case in FIGURES),
]


@pytest.mark.bad_input
@pytest.mark.parametrize(("error", "call", "message"), CASES, ids=[message[:40] for *_, message in CASES])
def test_an_ordinary_mistake_gets_one_line_that_says_what_to_do(error, call, message):
    said = refused(error, call)
    assert message in said and len(said) < 400


@pytest.mark.bad_input
def test_a_part_is_named_by_a_text():
    with pytest.raises(PositionTableError, match="part is 1; give a name, such as 'encoder'"):
        with_position_table(build("gpt2"), "zeroed", part=1).__enter__()
    with pytest.raises(PositionTableError, match="name is 5; give a name, such as 'pe'"):
        with_position_table(build("gpt2"), "zeroed", name=5).__enter__()


@pytest.mark.bad_input
def test_a_grid_of_patches_is_rows_and_columns():
    with pytest.raises(PositionTableError, match="grid is 5; give the rows and columns of the patches, as a tuple"):
        PositionTable(torch.eye(5), name="pe", offset=0, source="a tensor", bytes_read=0, grid=5)


@pytest.mark.bad_input
def test_a_table_has_a_name():
    with pytest.raises(PositionTableError, match="name is None; give a text"):
        PositionTable(torch.eye(5), name=None, offset=0, source="a tensor", bytes_read=0)


@pytest.mark.bad_input
def test_weights_that_are_not_whole_are_no_weights(tmp_path):
    config = RunConfig(n_layers=1, d_model=8, n_heads=2, steps=2, batch_size=2)
    run_grid([config], engine="serial", out=tmp_path, save_models=True)
    (tmp_path / f"{config.key}.safetensors").write_bytes(b"abc")
    said = refused(RunError, run_grid, [config], engine="serial", out=tmp_path, save_models=True)
    assert "has no whole weights beside it; move it away, and it is trained again" in said


@pytest.mark.bad_input
def test_the_folder_of_results_is_no_file(tmp_path):
    file = tmp_path / "table.npy"
    file.touch()
    assert "is a file; give the folder for the results" in refused(RunError, run_grid, [], out=file)


class Beginner(PositionScheme):
    def __init__(self, n_heads):
        self.n_heads = n_heads


class OfTwo(PositionScheme):
    def bias(self, q, k):
        return None


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("error", "made", "message"),
    [
        (
            EncodingInputError,
            lambda: Beginner(2),
            "Beginner.__init__ does not call super().__init__()",
        ),
        (EncodingInputError, OfTwo, "it is given (q, k, positions, key_positions)"),
    ],
)
def test_a_scheme_of_ones_own_that_does_not_fit_is_named_wherever_it_is_used(error, made, message):
    model = build("gpt2")

    def in_gpt2():
        use_scheme(model, made())
        model(IDS)

    assert message in refused(
        error, lambda: Transformer(TransformerConfig(9, d_model=8, n_heads=2, scheme=made()))(IDS)
    )
    assert message in refused(error, in_gpt2)


@pytest.mark.bad_input
def test_a_long_name_that_no_tensor_has_is_cut():
    said = refused(PositionTableError, load_table, build("gpt2"), name="x" * 3000)
    assert len(said) < 420


@pytest.mark.bad_input
def test_questions_are_made_of_a_text():
    assert "text is None; give a text" in refused(TaskError, word_questions, None, 3)
    assert "n is '3'; it must be a whole number" in refused(TaskError, word_questions, "a barking dog", "3")


@pytest.mark.bad_input
def test_files_of_a_task_are_named_by_paths():
    assert "None is no folder" in refused(TaskError, read_classes, "sst2", None)
    assert "5 is no path" in refused(TaskError, read_questions, 5)


@pytest.mark.bad_input
def test_a_seed_is_looked_at_where_nothing_is_drawn():
    with pytest.raises(PositionTableError, match="seed is 'x'; it must be a whole number"):
        with_position_table(build("gpt2"), "zeroed", seed="x").__enter__()


@pytest.mark.bad_input
def test_whole_numbers_of_numpy_are_sizes():
    two = np.int64(2)
    assert scheme("alibi", n_heads=two).n_heads == 2 and torch.equal(ALiBi(two).slopes, ALiBi(2).slopes)
    assert (
        Transformer(TransformerConfig(np.int64(9), n_layers=two, d_model=np.int64(8), n_heads=two))(IDS).shape[2] == 8
    )
    assert sinusoidal(two, np.int64(4)).shape == (2, 4)


def test_rotary_axes_may_be_a_number_of_equal_parts():
    assert RoPE(8, axes=2).axes == RoPE(8, axes=(4, 4)).axes == (4, 4)
    assert Sinusoidal(8, axes=2).axes == (4, 4)
