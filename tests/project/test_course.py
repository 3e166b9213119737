"""Where the course is made: what stood there is kept, or made again from the same seed."""

import pytest
from refusals import refused
from tool import load


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """The tool, with nothing to make, which leaves the seed alone."""
    tool = load("course")
    monkeypatch.setattr(tool, "assignments", lambda: [])
    monkeypatch.setattr(tool, "make", None)
    monkeypatch.chdir(tmp_path)
    return tool


def make(tool, monkeypatch, *words):
    monkeypatch.setattr("sys.argv", ["course.py", "--out", "course", *words])
    tool.main()


def test_a_course_is_made_again_from_its_seed_and_that_of_another_is_kept(tool, tmp_path, monkeypatch):
    seed = tmp_path / "course" / "graders" / "seed.txt"
    make(tool, monkeypatch)
    drawn = seed.read_text()
    make(tool, monkeypatch)
    assert seed.read_text() == drawn and len(drawn.strip()) == 32
    make(tool, monkeypatch, "--seed", "mine")
    assert seed.read_text() == "mine\n"
    assert (tmp_path / "course.1" / "graders" / "seed.txt").read_text() == drawn


def test_what_will_not_work_while_there_is_no_address_is_said(tool, monkeypatch, capsys):
    for repository, warned in (("OWNER/posembed", True), ("ada/posembed", False)):
        monkeypatch.setattr(tool, "REPOSITORY", repository)
        make(tool, monkeypatch)
        said = capsys.readouterr().out
        assert ("cannot install posembed in Colab, nor the zip on Gradescope" in said) is warned
        assert ("run `make set-repository REPOSITORY=you/posembed`" in said) is warned


def test_a_code_in_a_students_notebook_takes_long_to_compute_from_a_seed(tool, tmp_path, monkeypatch):
    """Else it would be what words are tried on, in place of the numbers that were drawn."""
    (tmp_path / "roster.csv").write_text("Student,ID\nAda,7\n")
    asked, slow = [], tool.hashlib.scrypt
    monkeypatch.setattr(tool.hashlib, "scrypt", lambda *given, **how: asked.append(how["n"]) or slow(*given, **how))
    ((code, who),) = tool.people_of(tmp_path / "roster.csv", "mine", tmp_path / "course")
    assert asked == [2**14] and len(code) == 12 and who == "Ada"


def test_a_folder_that_holds_something_else_is_left_alone(tool, tmp_path, monkeypatch):
    (tmp_path / "course").mkdir()
    (tmp_path / "course" / "thesis.txt").touch()
    message = "course: course is there and holds no course; name another folder: --out FOLDER"
    assert refused(SystemExit, make, tool, monkeypatch) == message
    assert (tmp_path / "course" / "thesis.txt").exists()


def test_a_file_of_the_instructors_own_stands_in_for_the_public_one(tmp_path, monkeypatch):
    tool = load("course")
    folder = tool.COURSE / "honest-probe"
    monkeypatch.setattr(tool, "PRIVATE", tmp_path)
    public = tool.title_of(folder)
    (tmp_path / folder.name).mkdir()
    (tmp_path / folder.name / "master.md").write_text("# 4. Another table\n")
    assert tool.title_of(folder) == "4. Another table" != public
    assert tool.source_of(folder, "data.py") == folder / "data.py"
    assert "course-private/" in (tool.ROOT / ".gitignore").read_text().splitlines()
