"""The workflows of GitHub Actions: their order, their permissions, and that they call what exists."""

import re
import subprocess
import tomllib

import pytest
import yaml
from tool import ROOT

PATHS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in PATHS}
# What hands something to readers (the site's files, the site, the package), and the job that may do it.
PUBLISHING = {
    "actions/upload-pages-artifact": ("publish-book", "build"),
    "actions/deploy-pages": ("publish-book", "deploy"),
    "pypa/gh-action-pypi-publish": ("release", "publish"),
}
# The only steps that may stand before the check, because it needs them.
PREPARING = ("actions/checkout@", "actions/setup-python@")

each_workflow = pytest.mark.parametrize("name", WORKFLOWS)


def triggers(workflow):
    return workflow[True]  # YAML 1.1 reads the key `on` as true


def all_steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job.get("steps", [])]


def test_every_supported_python_is_tested_and_builds_the_book():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    prefix = "Programming Language :: Python :: 3."
    supported = {text[len(prefix) - 2 :] for text in project["classifiers"] if text.startswith(prefix)}
    workflow = WORKFLOWS["test"]
    assert {"push", "pull_request"} <= set(triggers(workflow))
    job = workflow["jobs"]["test"]
    assert set(job["strategy"]["matrix"]["python"]) == supported == {"3.11", "3.12", "3.13"}
    always = [step.get("run") for step in job["steps"] if "if" not in step]
    assert {"make book TORCH=cpu", "make test TORCH=cpu"} <= set(always)


def test_nothing_is_published_but_behind_the_check_of_the_address():
    found = {
        step["uses"].split("@")[0]: (name, job_name)
        for name, workflow in WORKFLOWS.items()
        for job_name, job in workflow["jobs"].items()
        for step in job.get("steps", [])
        if step.get("uses", "").startswith(tuple(PUBLISHING))
    }
    assert found == PUBLISHING
    for name, job_name in set(PUBLISHING.values()):
        jobs = WORKFLOWS[name]["jobs"]
        first = next(step for step in jobs["build"]["steps"] if not step.get("uses", "").startswith(PREPARING))
        assert first["run"] == "make check-repository TORCH=cpu"
        assert not {"if", "continue-on-error"} & (set(first) | set(jobs["build"]) - {"if"})
        if job_name != "build":
            # `if: always()` and its like would run a job after one it needs has failed.
            assert "build" in jobs[job_name]["needs"] and "if" not in jobs[job_name]


def test_the_book_is_published_only_from_a_tested_push_to_main_and_with_the_hub():
    workflow = WORKFLOWS["publish-book"]
    assert triggers(workflow)["workflow_run"] == {"workflows": ["test"], "types": ["completed"], "branches": ["main"]}
    assert WORKFLOWS["test"]["name"] == "test"
    condition = workflow["jobs"]["build"]["if"]
    assert "github.event.workflow_run.event == 'push'" in condition
    assert "github.event.workflow_run.conclusion == 'success'" in condition
    assert "github.event_name == 'workflow_dispatch' && github.ref == 'refs/heads/main'" in condition
    assert "make book TORCH=cpu HUB=yes" in [step.get("run") for step in all_steps(workflow)]


def test_a_release_waits_for_the_tests_and_uses_trusted_publishing():
    workflow = WORKFLOWS["release"]
    assert triggers(workflow) == {"push": {"tags": ["v*"]}}
    assert workflow["jobs"]["test"]["uses"] == "./.github/workflows/test.yml"
    assert "workflow_call" in triggers(WORKFLOWS["test"])
    publish = workflow["jobs"]["publish"]
    assert set(publish["needs"]) == {"test", "build"} and publish["environment"]["name"] == "pypi"
    assert not any("password" in step.get("with", {}) for step in publish["steps"])


@each_workflow
def test_permissions_and_time_are_the_least_that_will_do_and_actions_are_pinned(name):
    workflow = WORKFLOWS[name]
    assert workflow["permissions"] == {"contents": "read"}
    for job_name, job in workflow["jobs"].items():
        assert "uses" in job or job["timeout-minutes"] <= 60, job_name
        granted = job.get("permissions", workflow["permissions"])
        writes = {scope for scope, access in granted.items() if access != "read"}
        allowed = {
            "deploy": {"pages", "id-token"},
            "publish": {"id-token"},
            "propose": {"contents", "pull-requests"},
        }.get(job_name, set())
        assert writes == allowed, f"{name}/{job_name}"
    for step in (step for step in all_steps(workflow) if "uses" in step):
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@(release/)?v\d+", step["uses"])
        if step["uses"].startswith("actions/checkout@"):
            assert (step["with"]["fetch-depth"], step["with"]["persist-credentials"]) == (0, False)


@each_workflow
def test_scripts_are_bash_take_nothing_from_the_event_and_call_what_exists(name):
    """What a stranger can write, such as a branch's name, must not become part of a script."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    script = "\n".join(step.get("run", "") for step in all_steps(WORKFLOWS[name]))
    assert "${{" not in script
    assert subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True).stderr == ""
    assert set(re.findall(r"\bmake ([\w-]+)", script)) <= set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    assert all((ROOT / tool).is_file() for tool in re.findall(r"\btools/\w+\.py", script))
