"""A report is written whole or not at all, and a path that cannot be written is refused before the work."""

from pathlib import Path

import pytest

from posembed import sinusoidal
from posembed.errors import ReportError
from posembed.report import make_report, n_steps, write_report

PAGE = "<!DOCTYPE html>" + " Größe" * 100


@pytest.fixture
def no_work(monkeypatch):
    """Fail where anything is computed."""

    def work(*_, **__):
        pytest.fail("the work began")

    monkeypatch.setattr("posembed.report.write.gather", work)


@pytest.fixture
def ready(monkeypatch, findings):
    """Findings and a page without the work."""
    monkeypatch.setattr("posembed.report.write.gather", lambda sources, **options: [findings])
    monkeypatch.setattr("posembed.report.page.render", lambda entries, made, tell: PAGE)


def test_the_file_holds_the_page(tmp_path, monkeypatch, findings, page, made):
    monkeypatch.setattr("posembed.report.write.gather", lambda sources, **options: [findings])
    written = write_report(["waves"], tmp_path / "report.html", made=made)
    assert written.path.read_text(encoding="utf-8") == page
    assert written.n_bytes == len(page.encode())
    assert list(tmp_path.iterdir()) == [tmp_path / "report.html"]


def test_steps_are_counted():
    told = []
    make_report([sinusoidal(20, 8), Path("nowhere")], tell=told.append)
    # The second source ends at its first step.
    assert len(told) == n_steps(1) + 1


def test_what_is_missing_is_told(monkeypatch, tmp_path, ready, findings, broken):
    monkeypatch.setattr("posembed.report.write.gather", lambda sources, **options: [findings, broken])
    written = write_report([], tmp_path / "report.html")
    assert written.refusals and all(line.startswith("broken: ") for line in written.refusals)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", r"is a folder; name a file in it, such as .*report.html"),
        ("missing/report.html", "there is no folder"),
        ("file.txt/report.html", "there is no folder"),
        ("n" * 300 + ".html", "cannot be written: File name too long"),
        ("protected.html", "is protected"),
    ],
)
def test_a_path_that_cannot_be_written_is_refused_before_the_work(tmp_path, no_work, monkeypatch, name, why):
    (tmp_path / "file.txt").touch()
    (tmp_path / "protected.html").write_text("precious")
    before = sorted(tmp_path.iterdir())
    # The administrator, who runs these tests in a container, may write anywhere.
    monkeypatch.setattr("os.access", lambda path, mode: Path(path).name != "protected.html")
    with pytest.raises(ReportError, match=why) as caught:
        write_report(["waves"], tmp_path / name)
    assert "\n" not in str(caught.value)
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "protected.html").read_text() == "precious"


@pytest.mark.bad_input
def test_a_folder_without_the_right_to_write_is_refused_before_the_work(tmp_path, no_work, monkeypatch):
    def refuse(path, content):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(ReportError, match="cannot be written: Permission denied; name another file"):
        write_report(["waves"], tmp_path / "report.html")


def test_an_older_report_stays_until_the_new_one_is_whole(tmp_path, monkeypatch, ready):
    target = tmp_path / "report.html"
    target.write_text("older")
    with monkeypatch.context() as patch:
        patch.setattr("posembed.report.page.render", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write_report(["waves"], target)
    whole = Path.write_bytes

    def full(path, content):
        whole(path, content[:100])
        if len(content) > 100:
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(ReportError, match="No space left on device"):
            write_report(["waves"], target)
    assert target.read_text() == "older"
    assert list(tmp_path.iterdir()) == [target]
    write_report(["waves"], target)
    assert target.read_text(encoding="utf-8") == PAGE


def test_a_link_stays_a_link(tmp_path, ready):
    (tmp_path / "kept").mkdir()
    link = tmp_path / "report.html"
    link.symlink_to(tmp_path / "kept" / "page.html")
    write_report(["waves"], link)
    assert link.is_symlink() and (tmp_path / "kept" / "page.html").read_text(encoding="utf-8") == PAGE
