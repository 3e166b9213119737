"""environment.yml, requirements/ and pyproject.toml are in step."""

import ast
import re
import sys
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from tool import ROOT, load

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
LOCK = (ROOT / "requirements" / "lock.txt").read_text(encoding="utf-8")
ENCODER = (ROOT / "requirements" / "encoder.txt").read_text(encoding="utf-8")
PYTHONS = ("3.11", "3.12", "3.13")
# Where the name that is imported is not that of the distribution.
DISTRIBUTIONS = {"PIL": "pillow", "sklearn": "scikit-learn"}
PLATFORMS = (("linux", "Linux", "x86_64"), ("darwin", "Darwin", "arm64"))


def lines(text):
    """A requirements file without comments and empty lines."""
    return [line for line in (line.split(" #")[0].strip() for line in text.splitlines()) if line and line[0] != "#"]


PINS = [Requirement(line) for line in lines(LOCK)]


def declared():
    """Every requirement that pyproject.toml states, with the place that states it."""
    places = {"dependencies": PYPROJECT["project"]["dependencies"]} | PYPROJECT["project"]["optional-dependencies"]
    places |= PYPROJECT["dependency-groups"]
    # A group that is included is there by its own name.
    return [(place, Requirement(text)) for place, texts in places.items() for text in texts if isinstance(text, str)]


def machine(python, platform):
    """The values that a marker can ask for."""
    names = ("sys_platform", "platform_system", "platform_machine")
    found = {"python_version": python, "python_full_version": f"{python}.9", "os_name": "posix"}
    found |= {"platform_python_implementation": "CPython", "implementation_name": "cpython"}
    return found | dict(zip(names, platform, strict=True))


def applies(requirement, values):
    return requirement.marker is None or requirement.marker.evaluate(values)


def test_the_conda_environment_is_the_lock_for_the_cpu_on_a_supported_python():
    assert (ENVIRONMENT["name"], ENVIRONMENT["channels"]) == ("posembed", ["conda-forge"])
    python, *others, pip = ENVIRONMENT["dependencies"]
    assert python in {f"python={each}" for each in PYTHONS} and others == ["pip"]
    cpu = f"--extra-index-url {load('setup').CPU_INDEX}"
    assert pip == {"pip": [cpu, "-r requirements/lock.txt", "-e ."]}


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda platform: platform[0])
@pytest.mark.parametrize("python", PYTHONS)
def test_every_declared_requirement_is_pinned_once_at_a_version_that_satisfies_it(python, platform):
    assert SpecifierSet(PYPROJECT["project"]["requires-python"]).contains(python)
    assert f"Programming Language :: Python :: {python}" in PYPROJECT["project"]["classifiers"]
    values = machine(python, platform)
    pins = [(canonicalize_name(pin.name), version_of(pin)) for pin in PINS if applies(pin, values)]
    assert len(dict(pins)) == len(pins) > 100
    for place, requirement in declared():
        version = dict(pins).get(canonicalize_name(requirement.name), "none")
        fits = version != "none" and requirement.specifier.contains(version, prereleases=True)
        assert fits or not applies(requirement, values), (
            f"{place}: {requirement}, the lock has {version}; run make lock"
        )


def version_of(pin):
    """Of a pin, which is one exact version."""
    (specifier,) = pin.specifier
    assert specifier.operator == "==" and "*" not in specifier.version, str(pin)
    return specifier.version


def test_the_lock_names_no_address_and_asks_for_no_hash_and_the_encoder_has_one():
    # Comments too: an index address there may be somebody's own. One hash would turn hash checking on for the file.
    assert "://" not in LOCK and "--hash" not in LOCK
    assert [line for line in lines(LOCK) if line.startswith("-") or " @ " in line] == []
    (line,) = lines(ENCODER)
    assert re.fullmatch(r"[\w.-]+==[\w.]+ --hash=sha256:[0-9a-f]{64}", line)


def imported(path):
    """The distributions that a file of the package imports, wherever in the file."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    found = {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"posembed"}
    return {DISTRIBUTIONS.get(name, canonicalize_name(name)) for name in found}


@pytest.mark.parametrize("path", sorted((ROOT / "posembed").rglob("*.py")), ids=lambda path: path.stem)
def test_what_the_package_imports_is_declared_where_a_reader_gets_it(path):
    extra = "cli" if "cli" in path.parts else "ray"
    wanted = {"dependencies", extra}
    assert imported(path) <= {canonicalize_name(each.name) for place, each in declared() if place in wanted}


def test_runtime_dependencies_are_lower_bounds_only():
    """A reader's torch, and Colab's, must never be replaced by an older one."""
    for text in PYPROJECT["project"]["dependencies"]:
        assert [specifier.operator for specifier in Requirement(text).specifier] == [">="], text
