"""The workflows of GitHub Actions: their order, their permissions, and that they call what exists."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PATHS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in PATHS}
# What hands something to readers: the site's files, the site, the package.
PUBLISHING = ("actions/upload-pages-artifact@", "actions/deploy-pages@", "pypa/gh-action-pypi-publish@")
# The only steps that may stand before the check, because it needs them.
PREPARING = ("actions/checkout@", "actions/setup-python@")
GUARD = "make check-repository"

each_workflow = pytest.mark.parametrize("name", WORKFLOWS)


def triggers(workflow):
    return workflow[True]  # YAML 1.1 reads the key `on` as true


def steps(job):
    return job.get("steps", [])


def all_steps(workflow):
    return [step for job in workflow["jobs"].values() for step in steps(job)]


def needs(job):
    needed = job.get("needs", [])
    return [needed] if isinstance(needed, str) else needed


def uses(step, prefixes):
    return step.get("uses", "").startswith(prefixes)


def is_guard(step):
    """The check counts only if it always runs and its failure ends the job."""
    run = step.get("run", "").strip()
    return bool(re.fullmatch(rf"{GUARD}( TORCH=\w+)?", run)) and not {"if", "continue-on-error"} & set(step)


def is_guarded_before(job, end):
    """Whether the check comes before step number `end`, with nothing but its own preparation in front of it."""
    for step in steps(job)[:end]:
        if is_guard(step):
            return True
        if not uses(step, PREPARING):
            return False
    return False


def is_guarded(workflow, job, end):
    """Whether the check passes before step number `end` of a job: in the job itself or in one it waits for."""
    if job.get("continue-on-error"):
        return False
    if is_guarded_before(job, end):
        return True
    # `if: always()` and its like would run a job after one it needs has failed.
    if re.search(r"always\(|failure\(|cancelled\(", str(job.get("if", ""))):
        return False
    waited_for = [workflow["jobs"][name] for name in needs(job)]
    return any(is_guarded(workflow, other, len(steps(other))) for other in waited_for)


def unguarded(workflow):
    """Name every step that publishes without the check before it."""
    return [
        (name, step["uses"])
        for name, job in workflow["jobs"].items()
        for number, step in enumerate(steps(job))
        if uses(step, PUBLISHING) and not is_guarded(workflow, job, number)
    ]


def publishing(workflow):
    return [step["uses"].split("@")[0] for step in all_steps(workflow) if uses(step, PUBLISHING)]


def test_the_workflows_are_these():
    assert set(WORKFLOWS) == {"publish-book", "release", "test", "weekly"}


def test_the_tests_run_on_every_supported_python():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    prefix = "Programming Language :: Python :: 3."
    supported = {text[len(prefix) - 2 :] for text in project["classifiers"] if text.startswith(prefix)}
    matrix = WORKFLOWS["test"]["jobs"]["test"]["strategy"]["matrix"]
    assert set(matrix["python"]) == supported == {"3.11", "3.12", "3.13"}
    assert matrix["os"] == ["ubuntu-latest"]
    assert {"os": "macos-latest", "python": "3.12"} in matrix["include"]


def test_the_tests_run_on_pushes_and_pull_requests():
    assert {"push", "pull_request"} <= set(triggers(WORKFLOWS["test"]))


@pytest.mark.parametrize("command", ["make test TORCH=cpu", "make book TORCH=cpu"])
def test_every_python_is_tested_and_builds_the_book(command):
    (step,) = [step for step in steps(WORKFLOWS["test"]["jobs"]["test"]) if step.get("run") == command]
    assert "if" not in step


def test_one_job_lints_and_keeps_the_book():
    only = "matrix.os == 'ubuntu-latest' && matrix.python == '3.12'"
    conditional = {step["name"]: step["if"] for step in steps(WORKFLOWS["test"]["jobs"]["test"]) if "if" in step}
    assert conditional["Lint"] == conditional["Keep the built book"] == only


def test_everything_that_publishes_is_behind_the_check():
    assert publishing(WORKFLOWS["publish-book"]) == ["actions/upload-pages-artifact", "actions/deploy-pages"]
    assert publishing(WORKFLOWS["release"]) == ["pypa/gh-action-pypi-publish"]
    for name, workflow in WORKFLOWS.items():
        assert unguarded(workflow) == [], name


def test_only_two_workflows_publish():
    assert [name for name, workflow in WORKFLOWS.items() if publishing(workflow)] == ["publish-book", "release"]


DEPLOY = {"uses": "actions/deploy-pages@v5"}
CHECK = {"run": GUARD}


@pytest.mark.parametrize(
    ("jobs", "found"),
    [
        ({"a": {"steps": [CHECK, DEPLOY]}}, False),
        ({"a": {"steps": [{"uses": "actions/checkout@v6"}, CHECK, {"run": "make book"}, DEPLOY]}}, False),
        ({"a": {"steps": [CHECK]}, "b": {"needs": "a", "steps": [DEPLOY]}}, False),
        ({"a": {"steps": [CHECK]}, "b": {"needs": ["a"]}, "c": {"needs": ["b"], "steps": [DEPLOY]}}, False),
        ({"a": {"steps": [DEPLOY]}}, True),
        ({"a": {"steps": [DEPLOY, CHECK]}}, True),
        ({"a": {"steps": [{"run": "make book"}, CHECK, DEPLOY]}}, True),
        ({"a": {"steps": [{"run": f"echo {GUARD}"}, DEPLOY]}}, True),
        ({"a": {"steps": [{"run": f"{GUARD} || true"}, DEPLOY]}}, True),
        ({"a": {"steps": [CHECK | {"if": "false"}, DEPLOY]}}, True),
        ({"a": {"steps": [CHECK | {"continue-on-error": True}, DEPLOY]}}, True),
        ({"a": {"steps": [CHECK]}, "b": {"steps": [DEPLOY]}}, True),
        ({"a": {"steps": [CHECK]}, "b": {"needs": "a", "if": "always()", "steps": [DEPLOY]}}, True),
        ({"a": {"steps": [CHECK], "continue-on-error": True}, "b": {"needs": "a", "steps": [DEPLOY]}}, True),
    ],
)
def test_the_check_on_the_order_finds_what_is_not_behind_it(jobs, found):
    assert bool(unguarded({"jobs": jobs})) is found


def test_the_book_is_published_only_from_a_tested_push_to_main():
    workflow = WORKFLOWS["publish-book"]
    assert triggers(workflow)["workflow_run"] == {"workflows": ["test"], "types": ["completed"], "branches": ["main"]}
    assert WORKFLOWS["test"]["name"] == "test"
    condition = workflow["jobs"]["build"]["if"]
    assert "github.event.workflow_run.event == 'push'" in condition
    assert "github.event.workflow_run.conclusion == 'success'" in condition
    assert "github.event_name == 'workflow_dispatch' && github.ref == 'refs/heads/main'" in condition


def test_a_release_waits_for_the_tests_and_uses_trusted_publishing():
    workflow = WORKFLOWS["release"]
    assert triggers(workflow) == {"push": {"tags": ["v*"]}}
    assert workflow["jobs"]["test"]["uses"] == "./.github/workflows/test.yml"
    assert "workflow_call" in triggers(WORKFLOWS["test"])
    publish = workflow["jobs"]["publish"]
    assert set(needs(publish)) == {"test", "build"}
    assert publish["environment"]["name"] == "pypi"
    assert not any("password" in step.get("with", {}) for step in steps(publish))


def test_weekly_runs_three_sets_of_versions_and_the_hub():
    jobs = WORKFLOWS["weekly"]["jobs"]
    assert set(jobs) == {"colab", "newest", "oldest", "hub"}
    assert {"schedule", "workflow_dispatch"} <= set(triggers(WORKFLOWS["weekly"]))
    for name in ("colab", "newest", "oldest"):
        assert "python tools/chapters.py check" in steps(jobs[name])[-1]["run"], name
    assert "-m hub" in steps(jobs["hub"])[-1]["run"]


@each_workflow
def test_permissions_are_the_least_that_will_do(name):
    workflow = WORKFLOWS[name]
    assert workflow["permissions"] == {"contents": "read"}
    for job_name, job in workflow["jobs"].items():
        granted = job.get("permissions", workflow["permissions"])
        writes = {scope for scope, access in granted.items() if access != "read"}
        allowed = {"deploy": {"pages", "id-token"}, "publish": {"id-token"}}.get(job_name, set())
        assert writes == allowed, f"{name}/{job_name}"


@each_workflow
def test_actions_are_pinned_to_a_major_version(name):
    named = [step["uses"] for step in all_steps(WORKFLOWS[name]) if "uses" in step]
    assert [use for use in named if not re.fullmatch(r"[\w.-]+/[\w.-]+@(release/)?v\d+", use)] == []


@each_workflow
def test_checkouts_fetch_the_tags_and_keep_no_credentials(name):
    for step in all_steps(WORKFLOWS[name]):
        if uses(step, "actions/checkout@"):
            assert step["with"]["fetch-depth"] == 0
            assert step["with"]["persist-credentials"] is False


@each_workflow
def test_scripts_are_bash_and_take_nothing_from_the_event(name):
    """What a stranger can write, such as a branch's name, must not become part of a script."""
    for step in all_steps(WORKFLOWS[name]):
        script = step.get("run", "")
        assert "${{" not in script
        result = subprocess.run(["bash", "-n"], input=script, check=False, capture_output=True, text=True)
        assert result.stderr == ""


@each_workflow
def test_what_the_scripts_call_exists(name):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    scripts = "\n".join(step.get("run", "") for step in all_steps(WORKFLOWS[name]))
    for target in re.findall(r"\bmake ([\w-]+)", scripts):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for tool in re.findall(r"\btools/\w+\.py", scripts):
        assert (ROOT / tool).is_file(), tool


@each_workflow
def test_every_job_has_a_time_limit(name):
    for job_name, job in WORKFLOWS[name]["jobs"].items():
        assert "uses" in job or job["timeout-minutes"] <= 60, job_name
