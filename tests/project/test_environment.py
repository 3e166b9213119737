"""environment.yml, requirements/ and pyproject.toml are in step."""

import ast
import re
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from tool import load

ROOT = Path(__file__).resolve().parents[2]
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


def group(name):
    """The requirements of a dependency group, its included groups resolved."""
    for item in PYPROJECT["dependency-groups"][name]:
        if isinstance(item, dict):
            yield from group(item["include-group"])
        else:
            yield item


def declared():
    """Every requirement that pyproject.toml states, with the place that states it."""
    places = {"dependencies": PYPROJECT["project"]["dependencies"]} | PYPROJECT["project"]["optional-dependencies"]
    places |= {name: group(name) for name in PYPROJECT["dependency-groups"]}
    return [(place, Requirement(text)) for place, texts in places.items() for text in texts]


def machine(python, platform):
    """The values that a marker can ask for."""
    sys_platform, system, processor = platform
    return {
        "python_version": python,
        "python_full_version": f"{python}.9",
        "sys_platform": sys_platform,
        "platform_system": system,
        "platform_machine": processor,
        "os_name": "posix",
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
    }


def pinned(python, platform):
    """What the lock installs on one machine: a list, so that a package pinned twice is seen."""
    values = machine(python, platform)
    return [pin for pin in PINS if pin.marker is None or pin.marker.evaluate(values)]


def test_the_conda_environment_is_the_lock_for_the_cpu_on_a_supported_python():
    assert (ENVIRONMENT["name"], ENVIRONMENT["channels"]) == ("posembed", ["conda-forge"])
    conda, (pip,) = ENVIRONMENT["dependencies"][:-1], ENVIRONMENT["dependencies"][-1].values()
    (python,) = [item.partition("=")[2] for item in conda if item.startswith("python=")]
    assert python in PYTHONS and "pip" in conda
    assert pip == [f"--extra-index-url {load('setup').CPU_INDEX}", "-r requirements/lock.txt", "-e ."]


def test_the_supported_pythons_are_those_of_the_classifiers():
    prefix = "Programming Language :: Python :: "
    classifiers = PYPROJECT["project"]["classifiers"]
    assert tuple(text.removeprefix(prefix) for text in classifiers if text.startswith(prefix)) == PYTHONS
    assert all(SpecifierSet(PYPROJECT["project"]["requires-python"]).contains(python) for python in PYTHONS)


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda platform: platform[0])
@pytest.mark.parametrize("python", PYTHONS)
def test_every_declared_requirement_is_pinned_at_a_version_that_satisfies_it(python, platform):
    versions = {canonicalize_name(pin.name): version_of(pin) for pin in pinned(python, platform)}
    for place, requirement in declared():
        if requirement.marker and not requirement.marker.evaluate(machine(python, platform)):
            continue
        name = canonicalize_name(requirement.name)
        assert name in versions, f"{requirement} ({place}) is not in the lock; run make lock"
        fits = requirement.specifier.contains(versions[name], prereleases=True)
        assert fits, f"the lock has {name} {versions[name]}, {place} asks for {requirement}; run make lock"


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda platform: platform[0])
@pytest.mark.parametrize("python", PYTHONS)
def test_no_package_is_pinned_twice_for_one_machine(python, platform):
    counts = Counter(canonicalize_name(pin.name) for pin in pinned(python, platform))
    assert [name for name, count in counts.items() if count > 1] == []


def version_of(pin):
    (specifier,) = pin.specifier
    return specifier.version


def test_the_lock_is_exact_versions_without_addresses_and_hashes():
    assert len(PINS) > 100
    for pin in PINS:
        assert [specifier.operator for specifier in pin.specifier] == ["=="], str(pin)
        assert "*" not in version_of(pin), str(pin)
    # Comments too: an index address there may be somebody's own. One hash would turn hash checking on for the file.
    assert "://" not in LOCK and "--hash" not in LOCK
    assert [line for line in lines(LOCK) if line.startswith("-") or " @ " in line] == []


def imported(path):
    """The distributions that a file of the package imports, wherever in the file; of its own folder none."""
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    names = {alias.name for node in tree if isinstance(node, ast.Import) for alias in node.names}
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    names |= {node.module for node in tree if isinstance(node, ast.ImportFrom) and not node.level}
    found = {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"posembed"}
    return {DISTRIBUTIONS.get(name, canonicalize_name(name)) for name in found}


@pytest.mark.parametrize("path", sorted((ROOT / "posembed").rglob("*.py")), ids=lambda path: path.stem)
def test_what_the_package_imports_is_declared_where_a_reader_gets_it(path):
    places = {"dependencies": PYPROJECT["project"]["dependencies"]} | PYPROJECT["project"]["optional-dependencies"]
    names = {place: {canonicalize_name(Requirement(text).name) for text in texts} for place, texts in places.items()}
    own = names["dependencies"] | (names["cli"] if "cli" in path.parts else names["ray"])
    assert imported(path) <= own


def test_runtime_dependencies_are_lower_bounds_only():
    """A reader's torch, and Colab's, must never be replaced by an older one."""
    for text in PYPROJECT["project"]["dependencies"]:
        assert [specifier.operator for specifier in Requirement(text).specifier] == [">="], text


def test_the_encoder_is_pinned_with_its_hash():
    (line,) = lines(ENCODER)
    assert re.fullmatch(r"[\w.-]+==[\w.]+ --hash=sha256:[0-9a-f]{64}", line)
