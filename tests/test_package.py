import ast
import importlib
import inspect
import json
import pkgutil
import statistics
import subprocess
import sys
from importlib.metadata import version

import pytest
import torch
from jaxtyping import TypeCheckError

import posembed
from posembed import errors

HEAVY = ("torch", "transformers", "matplotlib", "sklearn", "anywidget", "numpy", "jaxtyping")


@pytest.fixture
def in_a_fresh_interpreter(fresh_environment):
    """What code prints, as JSON, where nothing is imported yet."""

    def run(code):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=fresh_environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def heavy_modules_after(in_a_fresh_interpreter):
    def run(statement):
        code = f"import json, sys\n{statement}\nprint(json.dumps([name for name in {HEAVY} if name in sys.modules]))"
        return set(in_a_fresh_interpreter(code))

    return run


def test_import_posembed_imports_nothing_heavy(heavy_modules_after):
    assert heavy_modules_after("import posembed; posembed.__version__; dir(posembed); import posembed.errors") == set()


@pytest.mark.parametrize(
    "statement",
    [
        "from posembed import check_equivariance",
        "import posembed; posembed.one_hot_lookup; posembed.with_position_table",
    ],
)
def test_the_checks_need_torch_and_no_models_or_figures(heavy_modules_after, statement):
    heavy = heavy_modules_after(statement)
    assert "torch" in heavy
    assert heavy.isdisjoint({"transformers", "matplotlib", "sklearn", "anywidget"})


def test_importing_posembed_takes_less_than_fifty_milliseconds_on_top_of_torch(in_a_fresh_interpreter):
    """About five on an idle machine. The median of five, so that one hiccup of a busy machine does not count."""
    code = """
import json, time, torch
start = time.perf_counter()
import posembed
print(json.dumps(time.perf_counter() - start))
"""
    assert statistics.median(in_a_fresh_interpreter(code) for _ in range(5)) < 0.050


def test_public_names():
    assert posembed.__all__ == sorted(posembed.__all__)
    for name in posembed.__all__:
        value = getattr(posembed, name)
        assert inspect.getdoc(value)
        assert getattr(posembed, name) is value
        assert name in dir(posembed)


def test_a_star_import_gives_the_public_names():
    names = {}
    exec("from posembed import *", names)
    assert set(posembed.__all__) <= set(names)


def test_the_names_for_type_checkers_are_the_public_ones():
    """The block under TYPE_CHECKING is never run, so nothing else would notice that it has fallen behind."""
    tree = ast.parse(inspect.getsource(posembed))
    blocks = [node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)]
    imports = [node for block in blocks for node in block.body]
    home = {alias.name: "." * node.level + node.module for node in imports for alias in node.names}
    assert home == posembed._HOME
    assert sorted(home) == posembed.__all__


@pytest.mark.parametrize("name", dir(posembed))
def test_what_dir_lists_is_there(name):
    assert getattr(posembed, name) is not None


def test_dir_lists_every_public_module():
    modules = {module.name for module in pkgutil.iter_modules(posembed.__path__) if not module.name.startswith("_")}
    assert modules <= set(dir(posembed))


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(AttributeError) as caught:
        posembed.check_equivarience  # noqa: B018
    assert "'check_equivarience'" in str(caught.value)
    assert all(name in str(caught.value) for name in posembed.__all__)
    with pytest.raises(ImportError, match="check_equivarience"):
        exec("from posembed import check_equivarience")


def test_the_version_is_that_of_the_installed_package():
    assert posembed.__version__ == version("posembed")


ERRORS = [value for _, value in inspect.getmembers(errors, inspect.isclass)]


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


def public_modules():
    for module in pkgutil.walk_packages(posembed.__path__, "posembed."):
        if not any(part.startswith("_") for part in module.name.split(".")):
            yield importlib.import_module(module.name)


def public_objects():
    """Functions and classes where they are defined, and the public functions of classes."""
    for module in public_modules():
        for name, value in vars(module).items():
            own = getattr(value, "__module__", None) == module.__name__
            if own and not name.startswith("_") and (inspect.isfunction(value) or inspect.isclass(value)):
                yield f"{module.__name__}.{name}", value


OBJECTS = dict(public_objects())


@pytest.mark.parametrize("module", list(public_modules()), ids=lambda module: module.__name__)
def test_every_module_says_what_it_is_for(module):
    assert module.__doc__


@pytest.mark.parametrize("name", OBJECTS)
def test_every_public_object_has_a_docstring(name):
    # inspect.getdoc would take the base's for a class without one; a dataclass gets its signature for one.
    doc = OBJECTS[name].__doc__
    assert doc
    assert not doc.startswith(f"{OBJECTS[name].__name__}(")


def without_example(name):
    """Errors, and the records that a function returns, whose example shows them."""
    value = OBJECTS[name]
    return inspect.isclass(value) and (issubclass(value, Exception | tuple) or hasattr(value, "__dataclass_fields__"))


@pytest.mark.parametrize("name", [name for name in OBJECTS if not without_example(name)])
def test_every_public_object_has_an_example_that_runs(name):
    assert "Example:\n" in inspect.getdoc(OBJECTS[name])
    assert ">>> " in inspect.getdoc(OBJECTS[name])


def test_shapes_are_checked_under_pytest():
    """Else the tests would pass with signatures that promise other shapes than they take or return."""
    with pytest.raises(TypeCheckError, match="table"):
        posembed.one_hot_lookup(torch.ones(3), torch.tensor([0]))
    with pytest.raises(TypeCheckError, match="ids"):
        posembed.one_hot_lookup(torch.ones(3, 2), torch.tensor([0.0]))


@pytest.mark.bad_input
def test_shapes_are_not_checked_in_tests_of_bad_input():
    with pytest.raises(errors.LookupInputError):
        posembed.one_hot_lookup(torch.ones(3), torch.tensor([0]))
    with pytest.raises(errors.EquivarianceInputError):
        posembed.check_equivariance(torch.relu, 3)


def test_shapes_are_checked_again_after_a_test_of_bad_input():
    test_shapes_are_checked_under_pytest()
