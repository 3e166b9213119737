"""Schemes of one's own in runs and grids, by import path; and configs that no file could hold."""

import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from refusals import refused

from posembed import PosembedError, PositionScheme, RunConfig, load_results, run_grid, scheme, train
from posembed.encodings import RoPE
from posembed.errors import EncodingInputError, RunError
from posembed.training import make_model, read_results

TINY = {"n_layers": 2, "d_model": 8, "n_heads": 2, "length": 16, "batch_size": 2, "steps": 2, "warmup": 1}
OWN = """
import torch
from posembed import PositionScheme

class Slopes(PositionScheme):
    def __init__(self, n_heads, *, steepness=1.0):
        super().__init__()
        self.slopes = torch.nn.Parameter(steepness * torch.linspace(0.2, 1.0, n_heads))

    def bias_by_offset(self, offsets):
        return -self.slopes[:, None] * offsets.abs()

class Needy(Slopes):
    def __init__(self, n_heads, steepness):
        super().__init__(n_heads, steepness=steepness)

number = 3
"""


@pytest.fixture
def module(tmp_path, monkeypatch, request):
    """A module of one's own in this folder, under a name that no other test imports."""
    name = f"own_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_a_scheme_of_ones_own_is_trained_and_stored_by_its_import_path(module, tmp_path):
    own = f"{module}:Slopes"
    configs = [
        RunConfig(scheme=own, **TINY),
        RunConfig(scheme=own, scheme_options={own: {"steepness": 3}}, **TINY),
        RunConfig(scheme=f"learned + {own}", **TINY),
    ]
    results = run_grid(configs, out=tmp_path / "out", engine="serial")
    assert results[0].metrics["scheme_parameters"] == 2 and len({each.metrics["loss"] for each in results}) == 3
    assert train(configs[1]).metrics == results[1].metrics
    assert sorted(each.config.key for each in read_results(tmp_path / "out")) == sorted(each.key for each in configs)
    assert set(load_results(tmp_path / "out")["config.scheme"]) == {own, f"learned + {own}"}
    assert type(scheme(own, n_heads=4, n_layers=3)).__name__ == "Slopes"


@pytest.mark.slow
def test_worker_processes_import_it(module, tmp_path):
    lines = [
        "from posembed import RunConfig, run_grid",
        f"configs = [RunConfig(scheme='{module}:Slopes', seed=seed, **{TINY}) for seed in (1, 2)]",
        "if __name__ == '__main__':",
        "    run_grid(configs, out='out', n_workers=2)",
    ]
    (tmp_path / "script.py").write_text("\n".join(lines))
    subprocess.run([sys.executable, "script.py"], check=True, cwd=tmp_path)
    assert sorted(each.config.seed for each in read_results(tmp_path / "out")) == [1, 2]


def test_changed_code_is_another_run_and_never_passes_for_the_earlier_one(module, tmp_path, corpus):
    own, file = f"{module}:Slopes", tmp_path / f"{module}.py"
    config = RunConfig(scheme=own, **TINY)
    (stored,) = run_grid([config], out=tmp_path / "out", engine="serial")
    file.write_text(OWN.replace("0.2", "0.4"))
    said = f"{module}.py has changed since it was imported; start Python anew"
    assert refused(EncodingInputError, RunConfig, scheme=own, **TINY) == said
    assert refused(EncodingInputError, train, config) == said
    another = replace(config, scheme_hash="of other code")
    file.write_text(OWN)
    assert another.key != config.key
    said = f"{own} is not the code that the config was made for; make the config anew"
    assert refused(RunError, make_model, another, corpus) == said
    # What is stored is read where its code is not, and nothing is imported because a file says so.
    told = stored.config.to_dict() | {"scheme": "nowhere:Slopes"}
    assert RunConfig.from_dict(told).scheme_hash == config.scheme_hash
    assert RunConfig.from_dict(told | {"scheme_hash": None}).scheme == "nowhere:Slopes"


def test_results_of_named_schemes_keep_their_keys():
    config = RunConfig.from_dict({"scheme": "rope"})
    assert config.scheme_hash is None and config.told == {"scheme": "rope"}


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            "__main__:Slopes",
            "which no other process can import; write the class into a file, such as mine.py, and give",
        ),
        ("nowhere:Slopes", "'nowhere' cannot be imported (ModuleNotFoundError: No module named 'nowhere'); its file"),
        ("{0}:Slope", "has no PositionScheme 'Slope'; give 'module:Class'"),
        ("{0}:number", "has no PositionScheme 'number'; give 'module:Class'"),
        ("broken:Slopes", "'broken' cannot be imported (SyntaxError: "),
        ("leaving:Slopes", "'leaving' cannot be imported (SystemExit: 3)"),
    ],
    ids=["a notebook's", "no module", "no class", "no scheme", "broken", "one that leaves"],
)
def test_a_path_that_names_no_scheme_is_refused_when_the_config_is_made(module, tmp_path, path, message):
    (tmp_path / "broken.py").write_text("def")
    (tmp_path / "leaving.py").write_text("import sys; sys.exit(3)")
    assert message in refused(EncodingInputError, RunConfig, scheme=path.format(module))


@pytest.mark.bad_input
def test_options_of_ones_own_scheme(module):
    own, needy = f"{module}:Slopes", f"{module}:Needy"
    said = f"{own} has no option 'steep'; it has steepness"
    assert refused(EncodingInputError, scheme, own, n_heads=2, options={own: {"steep": 1}}) == said
    assert refused(EncodingInputError, scheme, own) == f"{own} needs n_heads="
    made = scheme(needy, n_heads=2, options={needy: {"steepness": 2.0}})
    assert torch.allclose(made.slopes, torch.tensor([0.4, 2.0]))


class Here(PositionScheme):
    pass


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"scheme": RoPE(8)},
            "scheme is an object, RoPE, which cannot be stored; give a name of posembed.schemes(), or",
        ),
        ({"scheme": Here}, f"and give its import path, scheme='{__name__}:Here'"),
    ],
)
def test_what_no_file_can_hold_is_refused_when_the_config_is_made(settings, message):
    assert message in refused(PosembedError, RunConfig, **{"scheme": "rope", **settings})


def test_a_config_holds_what_will_be_read_back():
    options = {"t5": {"max_distance": 64}}
    config = RunConfig(scheme="t5", scheme_options=options)
    key = config.key
    options["t5"]["max_distance"] = 32
    assert RunConfig.from_dict(config.to_dict()) == config and config.scheme_options["t5"]["max_distance"] == 64
    assert replace(config).key == key
