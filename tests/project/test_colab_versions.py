"""Colab's package list becomes the constraints of the weekly job."""

import subprocess
import sys
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tool import TOOLS, load

# The forms that pip freeze has, as Colab publishes them.
FREEZE = """# Do not modify this file directly; it is generated
absl-py==1.4.0
anywidget==0.9.21
en-core-web-sm @ https://example.org/en_core_web_sm-3.8.0-py3-none-any.whl#sha256=00
google-colab @ file:///colabtools/dist/google_colab-1.0.0.tar.gz
huggingface_hub==1.5.0
ipykernel==6.17.1
ipython==7.34.0
ipython-genutils==0.2.0
ipywidgets==7.7.1
jupyter_client==7.4.9
matplotlib==3.10.0
matplotlib-inline==0.1.7
numpy==2.1.3
-e git+https://example.org/thing@0a1b#egg=thing

safetensors==0.8.0
scikit-learn==1.6.1
scipy==1.16.3
tokenizers==0.22.2
torch==2.11.0+cu128
torchvision==0.26.0+cu128
traitlets==5.7.1
transformers==5.15.0
"""
EXPECTED = """anywidget==0.9.21
huggingface-hub==1.5.0
ipykernel==6.17.1
ipython==7.34.0
ipywidgets==7.7.1
jupyter-client==7.4.9
matplotlib==3.10.0
numpy==2.1.3
safetensors==0.8.0
scikit-learn==1.6.1
scipy==1.16.3
tokenizers==0.22.2
torch==2.11.0
traitlets==5.7.1
transformers==5.15.0
"""


def run(*arguments, text=""):
    command = [sys.executable, TOOLS / "colab_versions.py", *arguments]
    return subprocess.run(command, input=text, check=False, capture_output=True, text=True)


def test_the_kept_packages_are_pinned_and_no_other(tmp_path):
    (tmp_path / "pip-freeze.txt").write_text(FREEZE)
    for result in (run(text=FREEZE), run(tmp_path / "pip-freeze.txt")):
        assert (result.returncode, result.stdout, result.stderr) == (0, EXPECTED, "")
    # A wheel's address has its version in the file's name.
    wheel = "torch @ https://example.org/whl/cu128/torch-2.11.0%2Bcu128-cp313-cp313-linux_x86_64.whl#sha256=0a-1b-2c"
    assert run(text=FREEZE.replace("torch==2.11.0+cu128", wheel)).stdout == EXPECTED


def test_every_runtime_dependency_is_kept():
    tool = load("colab_versions")
    project = tomllib.loads((TOOLS.parent / "pyproject.toml").read_text())["project"]
    assert {canonicalize_name(Requirement(text).name) for text in project["dependencies"]} <= set(tool.KEPT)
    assert set(tool.NEEDED) <= set(tool.KEPT)


def test_what_is_not_the_list_is_refused_in_one_line(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    refused = {
        "no version of numpy;": run(text=FREEZE.replace("numpy==2.1.3", "")),
        "is it Colab's pip-freeze.txt?": run(text="<html>404: Not Found</html>"),
        "cannot read": run(tmp_path / "absent.txt"),
        "binary": run(tmp_path / "binary"),
    }
    for words, result in refused.items():
        assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1)
        assert words in result.stderr
