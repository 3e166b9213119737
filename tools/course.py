"""Make the course: what students get, and what grades them, from one master for each assignment.

Usage: python tools/course.py [--seed WORDS] [--roster FILE] [--out FOLDER]

A master is a notebook as otter-grader reads it, kept as Markdown. Into _build/course come

    students/NAME/   the notebook, its checks and its data: for JupyterHub, nbgitpuller, or one by one
    graders/NAME/    the key, all tests, what `make grade` reads, and a zip for Gradescope

The seed decides what differs from course to course: numbers, functions and faults. It is in nothing that students get.
Without one, the seed of the course that was made before is used, or else a new one at random; it is kept in
graders/seed.txt. With a roster, as Canvas or Moodle export it, each student has numbers of their own:

    by-student/WHO/NAME/   in place of students/, whose folders hold what no student has

What stands in course/ is public, how answers come from a seed too. A file in course-private/NAME, which git leaves out,
stands in for the one of course/NAME: there an instructor keeps a master with other functions and faults.
"""

import argparse
import base64
import contextlib
import copy
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
GRADERS = (
    "absent",
    "by_hand",
    "checking",
    "gradescope",
    "house",
    "judge",
    "no_fork",
    "roster",
    "sandbox",
    "submission",
)
GRADERS += ("watch", "wire")
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


def drawn_of(folder, seed):
    """What an assignment's data.py makes of the seed: files for students, and what is true, by name."""
    draws = load("draws", COURSE).Draws(folder.name, int.from_bytes(key_of(seed, folder.name)[:8]))
    return load("data", source_of(folder, "data.py").parent).make(draws)


def key_of(seed, name):
    """What a seed gives for one thing: whoever tries seeds, until what students get fits, shall need long for each."""
    return hashlib.scrypt(seed.encode(), salt=name.encode(), n=2**14, r=8, p=1, dklen=64)


def filled(text, truth):
    """A text with what was drawn in the place of each {{name}}."""
    return re.sub(r"\{\{ ?(\w+) ?\}\}", lambda found: str(truth[found[1]]), text)


def make(folder, out, seed, people=()):
    """Make one assignment, for the course and for each student: a code and the name of a folder."""
    name, master = folder.name, jupytext.read(source_of(folder, "master.md"))
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
    secret = key_of(seed, f"{name} inputs").hex()
    (grader / "tests" / "secret.txt").write_text(secret, encoding="utf-8")
    tests = {f"tests/{path.name}": path.read_bytes() for path in (student / "tests").iterdir()}
    files, truth = drawn_of(folder, seed)
    # It stands in the notebook; without the secret it would say whether a student has guessed the truth.
    course = hashlib.sha256(zipped(tests | files) + json.dumps([truth, secret]).encode()).hexdigest()[:12]
    told = {"assignment": name, "course": course}
    for file, content in files.items():
        (grader / file).write_bytes(content)
    write_notebook(key, grader / f"{name}.ipynb", told, tests | files, truth)
    write_for_students(notebook, student, grader / "tests", told, (tests, files, truth))
    for code, who in people:
        files, truth = drawn_of(folder, f"{seed} {code}")
        own, kept = out / "by-student" / who / name, grader / "by-student" / code
        write_for_students(notebook, own, kept, told | {"student": code}, (tests, files, truth))
    about = {"title": title_of(folder), "course": course, "questions": questions_of(folder)}
    (grader / "assignment.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    (grader / "gradescope.zip").write_bytes(zipped(for_gradescope(_unzipped(archive), grader)))


def write_for_students(notebook, student, grader, metadata, made):
    """Write what a student gets into one folder, and what grades it into another."""
    tests, files, truth = made
    for folder, content in ((student, tests | files), (grader, files)):
        for name, data in content.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
    cells = write_notebook(notebook, student / f"{metadata['assignment']}.ipynb", metadata, tests | files, truth)
    grader.mkdir(parents=True, exist_ok=True)
    (grader / "truth.json").write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")
    given = sorted({load("by_hand", GRADING).digest(cell.source) for cell in cells})
    (grader / "given.json").write_text(json.dumps(given), encoding="utf-8")


def write_tests(folder, source, target):
    """Copy tests, each behind what those of all assignments share, and what those of this one do."""
    target.mkdir(parents=True)
    parts = [GRADING / "checking.py", source_of(folder, "shared.py")]
    shared = "\n\n".join(path.read_text(encoding="utf-8") for path in parts if path.exists())
    for path in source.glob("*.py"):
        (target / path.name).write_text(f"{shared}\n\n{path.read_text(encoding='utf-8')}", encoding="utf-8")


def load(name, folder):
    """A module of a folder that is no package."""
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
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
    kept = [grader / "assignment.json"]
    kept += [path for part in ("tests", "by-student") for path in (grader / part).rglob("*") if path.is_file()]
    if (codes := grader.parent / "students.json").exists():
        files["graders/students.json"] = codes.read_bytes()
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


def write_notebook(notebook, path, metadata, files, truth):
    """Write a notebook with our first cell in place of otter's, what was drawn, and ids that do not change."""
    notebook = copy.deepcopy(notebook)
    cells = [cell for cell in notebook.cells if not cell.source.startswith(("%pip install", "# Initialize Otter"))]
    for cell in cells:
        cell.source = filled(cell.source, truth)
    source = FIRST_CELL.format(repository=REPOSITORY, files=base64.b64encode(zipped(files)).decode())
    first = nbformat.v4.new_code_cell(source, metadata={"tags": ["hide-input"], "jupyter": {"source_hidden": True}})
    notebook.cells = [first, *cells]
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    of_otter = {"OK_FORMAT": False, "assignment_name": metadata["assignment"], "tests": {}}
    notebook.metadata = nbformat.from_dict({"kernelspec": kernel, "otter": of_otter, "posembed": metadata})
    nbformat.write(notebook, path)
    return notebook.cells


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


def people_of(file, seed, out):
    """Of each student of a roster a code and a folder's name; all names by which graders know them are written."""
    if file is None:
        return []
    sys.path.insert(0, str(GRADING))
    codes, people, key = {}, [], key_of(seed, "people").hex()
    for names in load("roster", GRADING).Roster(file).people():
        code = hashlib.sha256(f"{key} {names[0]}".encode()).hexdigest()[:12]
        codes |= dict.fromkeys(names, code)
        who = re.sub(r"[^A-Za-z0-9.@-]+", "_", names[-1]).strip(".")
        people.append((code, who if who and who not in dict(people).values() else code))
    (out / "graders").mkdir(parents=True)
    (out / "graders" / "students.json").write_text(json.dumps(codes, indent=1) + "\n", encoding="utf-8")
    return people


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
    parser.add_argument("--roster", type=Path, help="as Canvas or Moodle exports it: numbers of their own for each")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    if options.out.exists() and not (options.out / "graders" / "seed.txt").exists():
        sys.exit(f"course: {options.out} is there and holds no course; name another folder: --out FOLDER")
    seed = seed_of(options.seed, options.out)
    new = options.out.with_name(f".{options.out.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    try:
        people = people_of(options.roster, seed, new)
        for number, folder in enumerate(assignments(), 1):
            make(folder, new, seed, people)
            own = " (yours)" if source_of(folder, "master.md").is_relative_to(PRIVATE) else ""
            print(f"course: {number}/{len(assignments())} {title_of(folder)}{own}", flush=True)
        (new / "graders").mkdir(parents=True, exist_ok=True)
        (new / "graders" / "seed.txt").write_text(seed + "\n", encoding="utf-8")
        make_room(options.out, seed)
        new.replace(options.out)
    except ValueError as error:
        shutil.rmtree(new, ignore_errors=True)
        sys.exit(f"course: {error}")
    except OSError as error:
        with contextlib.suppress(OSError):
            shutil.rmtree(new)
        sys.exit(f"course: cannot write to {options.out} ({error.strerror}); name another folder: --out FOLDER")
    if people:
        print(f"course: {len(people)} students have numbers of their own, in {options.out / 'by-student'}")
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
