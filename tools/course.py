"""Make the course: what students get, and what grades them, from one master for each assignment.

Usage: python tools/course.py [--seed WORDS] [--out FOLDER]

A master is a notebook as otter-grader reads it, kept as Markdown. Into _build/course come

    students/NAME/   the notebook, its checks and its data: for JupyterHub, nbgitpuller, or one by one
    graders/NAME/    the key, all tests, what `make grade` reads, and a zip for Gradescope

The seed decides what differs from course to course. It is in nothing that students get. Without one, the seed of the
course that was made before is used, or else a new one at random; it is kept in graders/seed.txt.

What stands in course/ is public, the answers too. A file in course-private/NAME, which git leaves out, stands in for
the one of course/NAME: there an instructor keeps a master with other numbers, functions and faults.
"""

import argparse
import base64
import contextlib
import hashlib
import importlib.util
import io
import itertools
import json
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import jupytext
import nbformat
import yaml

ROOT = Path(__file__).resolve().parent.parent
COURSE = ROOT / "course"
GRADING = COURSE / "grading"
PRIVATE = ROOT / "course-private"
# What grades, and so goes into the zip for Gradescope.
GRADERS = ("by_hand", "checking", "gradescope", "house", "judge", "no_fork", "sandbox", "submission", "watch", "wire")
OUT = ROOT / "_build" / "course"
REPOSITORY = "OWNER/posembed"
# The day that stands in archives: the same sources give the same bytes.
DAY = (2026, 1, 1, 0, 0, 0)
FIRST_CELL = """\
# Run this cell first. In Colab it installs what is needed; everywhere it puts the checks beside the notebook.
import base64, io, sys, zipfile
from importlib.util import find_spec

REPOSITORY = "{repository}"
if "google.colab" in sys.modules and find_spec("otter") is None:
    assert not REPOSITORY.startswith("OWNER/"), "the repository is not set yet"
    # A later otter would replace Colab's ipywidgets.
    %pip install -q "otter-grader>=5.7,<6" "posembed @ git+https://github.com/{{REPOSITORY}}"
FILES = "{files}"
zipfile.ZipFile(io.BytesIO(base64.b64decode(FILES))).extractall()

import otter

grader = otter.Notebook()"""


def assignments():
    """The folders of all assignments, in the order of the course."""
    return sorted((path.parent for path in COURSE.glob("*/master.md")), key=lambda folder: title_of(folder))


def source_of(folder, name):
    """A file of an assignment: the instructor's own, where there is one."""
    own = PRIVATE / folder.name / name
    return own if own.exists() else folder / name


def title_of(folder):
    text = source_of(folder, "master.md").read_text(encoding="utf-8")
    return re.search(r"^# (\d+\. .+)$", text, re.MULTILINE)[1]


def questions_of(folder):
    """Of each question its name, its points, who grades it, what it forbids, and the rubric where a person grades."""
    questions = []
    for cell in jupytext.read(source_of(folder, "master.md")).cells:
        if cell.cell_type == "raw" and "# BEGIN QUESTION" in cell.source:
            told = yaml.safe_load(cell.source.split("# BEGIN QUESTION")[1])
            about = {"name": told["name"], "points": told["points"], "manual": bool(told.get("manual"))}
            questions.append(about | {"number": int(told["name"][1:]), "without": told.get("without", [])})
        elif cell.cell_type == "raw":
            solution = "# BEGIN SOLUTION" in cell.source
        elif cell.cell_type == "markdown" and questions and questions[-1]["manual"] and solution:
            questions[-1]["rubric"] = f"{questions[-1].get('rubric', '')}\n\n{cell.source}".strip()
    return questions


def data_of(folder, seed):
    """The files that an assignment's own data.py makes of the seed: for students, and for graders alone."""
    path = source_of(folder, "data.py")
    if not path.exists():
        return {}, {}
    spec = importlib.util.spec_from_file_location(f"data_{folder.name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # Whoever tries seeds until the data fits shall need long for each.
    key = hashlib.scrypt(seed.encode(), salt=folder.name.encode(), n=2**14, r=8, p=1, dklen=8)
    return module.make(int.from_bytes(key))


def make(folder, out, seed):
    """Make one assignment."""
    name, master = folder.name, jupytext.read(source_of(folder, "master.md"))
    for_students, for_graders = data_of(folder, seed)
    student, grader = out / "students" / name, out / "graders" / name
    with tempfile.TemporaryDirectory() as desk:
        assign(master, name, Path(desk))
        made = Path(desk, "out")
        write_tests(folder, made / "student" / "tests", student / "tests")
        write_tests(folder, made / "autograder" / "tests", grader / "tests")
        key = nbformat.read(made / "autograder" / f"{name}.ipynb", as_version=4)
        notebook = nbformat.read(made / "student" / f"{name}.ipynb", as_version=4)
        archive = next((made / "autograder").glob("*.zip")).read_bytes()
    # What the inputs of hidden tests are drawn from, together with each submission.
    for_graders |= {"secret.txt": hashlib.sha256(f"{seed} {name} inputs".encode()).hexdigest().encode()}
    for files, folders in ((for_students, (student, grader)), (for_graders, (grader / "tests",))):
        for file, content in files.items():
            for each in folders:
                (each / file).write_bytes(content)
    files = {path.relative_to(student).as_posix(): path.read_bytes() for path in student.rglob("*") if path.is_file()}
    course = hashlib.sha256(zipped(files)).hexdigest()[:12]
    for each, target in ((notebook, student), (key, grader)):
        write_notebook(each, target / f"{name}.ipynb", {"assignment": name, "course": course}, zipped(files))
    about = {"title": title_of(folder), "course": course, "questions": questions_of(folder)}
    about["given"] = sorted({load("by_hand").digest(cell.source) for cell in notebook.cells})
    (grader / "assignment.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    (grader / "gradescope.zip").write_bytes(zipped(for_gradescope(_unzipped(archive), grader)))


def write_tests(folder, source, target):
    """Copy tests, each behind what those of all assignments share, and what those of this one do."""
    target.mkdir(parents=True)
    parts = [GRADING / "checking.py", source_of(folder, "shared.py")]
    shared = "\n\n".join(path.read_text(encoding="utf-8") for path in parts if path.exists())
    for path in source.glob("*.py"):
        (target / path.name).write_text(f"{shared}\n\n{path.read_text(encoding='utf-8')}", encoding="utf-8")


def load(name):
    """A module of the graders."""
    spec = importlib.util.spec_from_file_location(name, GRADING / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def for_gradescope(files, grader):
    """The files of the zip: otter's own, which install and begin, and our graders in place of otter's."""
    kept = ("environment.yml", "otter_config.json", "run_autograder", "run_otter.py", "setup.sh")
    files = {name: files[name] for name in kept}
    files["otter_config.json"] = json.dumps({"lang": "python", "plugins": ["gradescope.Grader"]}).encode()
    # A user who is not root runs the notebooks, and Python lies in root's folder.
    files["setup.sh"] += b"\nchmod 711 /root\n"
    files["tests/none.txt"] = b"The tests are in ../graders, which otter does not copy to where notebooks lie.\n"
    files |= {f"{name}.py": (GRADING / f"{name}.py").read_bytes() for name in GRADERS}
    kept = [grader / "assignment.json", *(grader / "tests").iterdir()]
    return files | {f"graders/{path.relative_to(grader.parent).as_posix()}": path.read_bytes() for path in kept}


def assign(master, name, desk):
    """Run otter on a master; its output goes to desk/out."""
    requirements = desk / "requirements.txt"
    requirements.write_text(f"torch\npsutil\nposembed @ git+https://github.com/{REPOSITORY}\n")
    for cell in master.cells:
        if cell.cell_type == "raw":
            cell.source = re.sub(r"(?m)^without:.*\n?", "", cell.source)
    config = master.cells[0]
    config.source += f"\ngenerate: true\nrequirements: {requirements}"
    nbformat.write(master, desk / f"{name}.ipynb")
    command = [Path(sys.executable).with_name("otter"), "assign", f"{name}.ipynb", "out"]
    done = subprocess.run(command, cwd=desk, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"course: otter cannot read course/{name}/master.md:\n{done.stdout}{done.stderr}")


def write_notebook(notebook, path, metadata, files):
    """Write a notebook with our first cell in place of otter's, and ids that do not change."""
    cells = [cell for cell in notebook.cells if not cell.source.startswith(("%pip install", "# Initialize Otter"))]
    source = FIRST_CELL.format(repository=REPOSITORY, files=base64.b64encode(files).decode())
    first = nbformat.v4.new_code_cell(source, metadata={"tags": ["hide-input"], "jupyter": {"source_hidden": True}})
    notebook.cells = [first, *cells]
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    of_otter = {"OK_FORMAT": False, "assignment_name": metadata["assignment"], "tests": {}}
    notebook.metadata = nbformat.from_dict({"kernelspec": kernel, "otter": of_otter, "posembed": metadata})
    nbformat.write(notebook, path)


def zipped(files):
    """An archive whose bytes depend on its files alone."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as into:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, DAY)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            into.writestr(info, files[name])
    return archive.getvalue()


def _unzipped(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def seed_of(given, out):
    """The seed that is given, that of the course made before, or a new one."""
    kept = out / "graders" / "seed.txt"
    if given is None and kept.exists():
        return kept.read_text(encoding="utf-8").strip()
    return given or secrets.token_hex(16)


def make_room(out, seed):
    """Take away the course made before, where it has the same seed; keep it beside the new one where it has another."""
    if not out.exists():
        return
    if seed_of(None, out) == seed:
        shutil.rmtree(out)
        return
    kept = next(path for n in itertools.count(1) if not (path := out.with_name(f"{out.name}.{n}")).exists())
    out.rename(kept)
    print(f"course: the course of another seed is kept in {kept}", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Make the assignments.")
    parser.add_argument("--seed", help="any words; students of two courses with other seeds get other tables")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    if options.out.exists() and not (options.out / "graders" / "seed.txt").exists():
        sys.exit(f"course: {options.out} is there and holds no course; name another folder: --out FOLDER")
    seed = seed_of(options.seed, options.out)
    new = options.out.with_name(f".{options.out.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    try:
        for number, folder in enumerate(assignments(), 1):
            make(folder, new, seed)
            own = " (yours)" if source_of(folder, "master.md").is_relative_to(PRIVATE) else ""
            print(f"course: {number}/{len(assignments())} {title_of(folder)}{own}", flush=True)
        (new / "graders").mkdir(parents=True, exist_ok=True)
        (new / "graders" / "seed.txt").write_text(seed + "\n", encoding="utf-8")
        make_room(options.out, seed)
        new.replace(options.out)
    except OSError as error:
        with contextlib.suppress(OSError):
            shutil.rmtree(new)
        sys.exit(f"course: cannot write to {options.out} ({error.strerror}); name another folder: --out FOLDER")
    if REPOSITORY.startswith("OWNER/"):
        print(
            f"course: the address of the repository is still a placeholder ({REPOSITORY}): notebooks cannot install "
            "posembed in Colab, nor the zip on Gradescope; run `make set-repository REPOSITORY=you/posembed`, then this"
        )
    print(
        f"course: students' files in {options.out / 'students'}, graders' in {options.out / 'graders'}; keep the seed"
    )


if __name__ == "__main__":
    main()
