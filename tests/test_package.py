import importlib
import inspect
import json
import pkgutil
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import torch
from jaxtyping import TypeCheckError

import posembed
from posembed import errors

HEAVY = ("torch", "transformers", "matplotlib", "sklearn", "anywidget", "numpy", "jaxtyping", "typer", "nbconvert")


@pytest.fixture
def heavy_modules_after(fresh_environment):
    """Which heavy modules a statement imports where nothing is imported yet."""

    def run(statement):
        code = f"import json, sys\n{statement}\nprint(json.dumps([name for name in {HEAVY} if name in sys.modules]))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=fresh_environment)
        assert done.returncode == 0, done.stderr
        return set(json.loads(done.stdout))

    return run


def test_import_posembed_imports_nothing_heavy(heavy_modules_after):
    assert heavy_modules_after("import posembed; posembed.__version__; dir(posembed); import posembed.errors") == set()


def test_the_checks_need_torch_and_no_models_or_figures(heavy_modules_after):
    names = "check_equivariance, one_hot_lookup, with_position_table"
    heavy = heavy_modules_after(f"from posembed import {names}")
    assert "torch" in heavy
    # Nor do the chapters need what draws in a terminal.
    assert heavy.isdisjoint({"transformers", "matplotlib", "sklearn", "anywidget", "typer", "nbconvert"})


def test_public_names():
    assert posembed.__all__ == sorted(posembed.__all__)
    for name in posembed.__all__:
        value = getattr(posembed, name)
        assert inspect.getdoc(value)
        assert getattr(posembed, name) is value
        assert name in dir(posembed)


def test_the_names_for_type_checkers_are_the_public_ones():
    """The stub is never run, so nothing else would notice that it has fallen behind."""
    stub = Path(posembed.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    names = [f"from .{module} import {name} as {name}" for name, module in posembed._HOME.items()]
    assert sorted(filter(None, stub.splitlines())) == sorted([*names, "__version__: str"])


def test_dir_lists_every_public_module_and_what_it_lists_is_there():
    modules = {module.name for module in pkgutil.iter_modules(posembed.__path__) if not module.name.startswith("_")}
    assert modules | {*posembed.__all__, "__version__"} == set(dir(posembed))
    assert all(getattr(posembed, name) is not None for name in dir(posembed))


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(AttributeError) as caught:
        posembed.check_equivarience  # noqa: B018
    assert "'check_equivarience'" in str(caught.value)
    assert all(name in str(caught.value) for name in posembed.__all__)
    with pytest.raises(ImportError, match="check_equivarience"):
        exec("from posembed import check_equivarience")


def test_the_version_is_that_of_the_installed_package():
    assert posembed.__version__ == version("posembed")


ERRORS = [value for _, value in inspect.getmembers(errors, inspect.isclass) if issubclass(value, Exception)]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_every_error_is_ours_and_one_that_python_knows(error):
    """So `except ValueError` in code that does not know posembed catches it too."""
    assert issubclass(error, errors.PosembedError)
    assert inspect.getdoc(error)
    if error is not errors.PosembedError:
        known = [
            base for base in error.__mro__ if base.__module__ == "builtins" and base not in (Exception, BaseException)
        ]
        assert known != [object]


def exported():
    """What the `__all__` of each package names, where it is defined in posembed."""
    for module in pkgutil.walk_packages(posembed.__path__, "posembed."):
        if module.ispkg and not any(part.startswith("_") for part in module.name.split(".")):
            package = importlib.import_module(module.name)
            for name in getattr(package, "__all__", ()):
                value = getattr(package, name)
                # jaxtyping makes classes of shapes; those are no objects of ours.
                ours = getattr(value, "__module__", "").startswith("posembed")
                if ours and (inspect.isclass(value) or inspect.isfunction(value)):
                    yield f"{module.name}.{name}", value


OBJECTS = dict(exported())


def without_example(value):
    """Errors, and the records that a function returns, whose example shows them."""
    return inspect.isclass(value) and (issubclass(value, Exception | tuple) or hasattr(value, "__dataclass_fields__"))


@pytest.mark.parametrize("name", OBJECTS)
def test_every_exported_object_has_a_docstring_with_an_example_that_runs(name):
    # inspect.getdoc would take the base's for a class without one; a dataclass gets its signature for one.
    doc = OBJECTS[name].__doc__
    assert doc and not doc.startswith(f"{OBJECTS[name].__name__}(")
    assert without_example(OBJECTS[name]) or "Example:\n" in inspect.getdoc(OBJECTS[name])


def test_shapes_are_checked_under_pytest():
    """Else the tests would pass with signatures that promise other shapes than they take or return."""
    alibi = posembed.scheme("alibi", n_heads=2)
    with pytest.raises(TypeCheckError, match="offsets"):
        alibi.bias_by_offset(torch.zeros(2, 2).long())
    with pytest.raises(TypeCheckError, match="offsets"):
        alibi.bias_by_offset(torch.zeros(2))


@pytest.mark.bad_input
def test_shapes_are_not_checked_in_tests_of_bad_input():
    with pytest.raises(errors.LookupInputError):
        posembed.one_hot_lookup(torch.ones(3), torch.tensor([0]))
    with pytest.raises(errors.EquivarianceInputError):
        posembed.check_equivariance(torch.relu, 3)


def test_shapes_are_checked_again_after_a_test_of_bad_input():
    test_shapes_are_checked_under_pytest()


def test_the_api_pages_name_every_exported_function_and_class():
    pages = sorted((Path(__file__).parents[1] / "book").glob("api*.md"))
    named = {word.rsplit(".", 1)[-1] for page in pages for word in re.findall(r"[\w.]+", page.read_text("utf-8"))}
    # The commands have pages of their own.
    missing = [name for name in OBJECTS if name.rsplit(".", 1)[-1] not in named and name != "posembed.cli.main"]
    assert missing == []
