"""Quick questions: choose, see the verdict and the reason, the score of the chapter, remembered and forgotten."""

import pytest
from playwright.sync_api import expect

from .axe import violations
from .built import BOOK, HTML, chapters, soup
from .chromium import Record, into_view, outside, printed, styles, wait_until_still
from .colours import LIGHT_AND_DARK, VISIBLE, contrast, ink_and_paper

CHAPTER = "nopos/no-positions"
QUESTIONED = [name for name in chapters() if "quick-question" in (BOOK / f"{name}.ipynb").read_text(encoding="utf-8")]
ADDED = ".verdict, .question-score, .chapter-score"
# A browser that refuses the page's memory. The theme's own script is not made for that.
REFUSES = """for (const name of ["getItem", "setItem", "removeItem"]) {
  const act = Storage.prototype[name];
  Storage.prototype[name] = function (key, ...rest) {
    if (key.startsWith("posembed:")) throw new DOMException("denied", "SecurityError");
    return act.call(this, key, ...rest);
  };
}"""


def rights(number):
    """Which options of a question are right."""
    options = soup(f"{CHAPTER}.html").select(".quick-question")[number].select("details")
    return [option.find_all(recursive=False)[1].get_text().startswith("Right") for option in options]


class Question:
    """One question of an open page, counted from 0."""

    def __init__(self, page, number):
        self.box = page.locator(".quick-question").nth(number)
        self.right = rights(number).index(True)
        self.wrong = rights(number).index(False)
        self.score = self.box.locator(".question-score")

    def summary(self, n):
        return self.box.locator("details").nth(n).locator("summary")

    def choose(self, n):
        self.summary(n).click()

    def shows(self, n, text, sign):
        """Whether an option shows this verdict, as a word, a sign and a colour, and is open to its reason or not."""
        summary = self.summary(n)
        verdict = summary.locator(".verdict")
        expect(verdict).to_be_visible()
        expect(verdict).to_have_text(text)
        assert sign in summary.evaluate("(node) => getComputedStyle(node, '::before').content")
        ring = summary.evaluate("(node) => getComputedStyle(node, '::before').backgroundColor")
        assert styles(verdict, "color") == [ring]
        assert contrast(ring, ink_and_paper(summary)[1]) >= VISIBLE
        return self.box.locator("details").nth(n).get_attribute("open") is not None

    def shows_right(self):
        return self.shows(self.right, "Right", "✓")

    def shows_wrong(self):
        return self.shows(self.wrong, "Not quite", "✗")


@pytest.fixture
def chapter(open_address, site):
    return open_address(f"{site}/{CHAPTER}.html")


def total(page):
    return page.locator(".chapter-score-total").text_content().removeprefix("Quick questions: ")


def spoken(page):
    return page.locator("main > [role=status]").inner_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONED)
def test_one_option_of_each_question_is_right(open_address, site, name):
    page = open_address(f"{site}/{name}.html")
    boxes = page.locator(".quick-question").all()
    assert [box.get_attribute("id") for box in boxes] == [f"question-{n + 1}" for n in range(len(boxes))]
    for box in boxes:
        options = box.locator("details").count()
        assert box.locator("details.is-right").count() == 1
        assert box.locator("details.is-wrong").count() == options - 1 > 0
    assert page.locator("#what-to-remember .chapter-score-marks a").count() == len(boxes)


def test_choices(chapter):
    """A right one, a wrong one that counts, and what a search in the page opens, which is none."""
    assert chapter.locator(".verdict:visible, .question-score:visible").count() == 0
    assert total(chapter) == "none of 4 answered yet."
    assert chapter.get_by_role("button", name="Forget my answers").count() == 0
    first, second, third = (Question(chapter, number) for number in range(3))
    third.summary(third.wrong).locator("xpath=..").evaluate("(node) => (node.open = true)")
    assert total(chapter) == "none of 4 answered yet."
    first.choose(first.right)
    assert first.shows_right()
    score = "1 of 4 questions answered, 1 right at the first choice."
    expect(first.score).to_have_text(score)
    assert spoken(chapter) == f"Right. {score}"
    assert total(chapter) == "1 of 4 answered, 1 right at the first choice."
    second.choose(second.wrong)
    assert second.shows_wrong()
    score = "2 of 4 questions answered, 1 right at the first choice."
    assert spoken(chapter) == f"Not quite. {score}"
    assert second.box.locator(".verdict:visible").count() == 1
    # The others open to their reasons, and close again.
    second.choose(second.right)
    assert second.shows_right() and second.shows_wrong()
    expect(second.score).to_have_text(score)
    assert spoken(chapter) == "Right."
    second.choose(second.right)
    assert not second.shows_right()
    third.choose(third.wrong)
    assert third.shows_wrong()


def test_by_keyboard(chapter):
    for number, key in ((2, "Enter"), (3, "Space")):
        question = Question(chapter, number)
        question.summary(0).focus()
        for _ in range(question.right):
            chapter.keyboard.press("Tab")
        expect(question.summary(question.right)).to_be_focused()
        chapter.keyboard.press(key)
        assert question.shows_right()
        expect(question.summary(question.right)).to_be_focused()
        assert styles(chapter.locator(":focus"), "outlineStyle") == ["solid"]
    assert total(chapter).endswith("2 of 4 answered, 2 right at the first choice.")


def test_remembered_and_forgotten(chapter, site):
    first, fourth = Question(chapter, 0), Question(chapter, 3)
    first.choose(first.right)
    fourth.choose(fourth.wrong)
    # Chapters keep their answers apart.
    chapter.goto(f"{site}/{next(name for name in QUESTIONED if name != CHAPTER)}.html")
    assert total(chapter).startswith("none")
    chapter.goto(f"{site}/{CHAPTER}.html")
    assert not first.shows_right() and not fourth.shows_wrong()  # remembered, and closed
    for question in (first, fourth):
        expect(question.score).to_have_text("2 of 4 questions answered, 1 right at the first choice.")
    assert chapter.locator(".verdict:visible").count() == 2
    marks = chapter.locator(".chapter-score-marks a")
    assert [mark.get_attribute("aria-label") for mark in marks.all()][:4] == [
        "Question 1: right",
        "Question 2: not answered",
        "Question 3: not answered",
        "Question 4: not quite",
    ]
    marks.nth(3).click()
    expect(fourth.box).to_be_in_viewport()
    chapter.get_by_role("button", name="Forget my answers").click()
    expect(chapter.locator(".chapter-score-total")).to_be_focused()
    assert spoken(chapter) == "Your answers are forgotten."
    for reload in (False, True):
        if reload:
            chapter.reload()
        assert chapter.locator(".verdict:visible, .question-score:visible").count() == 0
        assert total(chapter) == "none of 4 answered yet."
        assert chapter.locator(".quick-question details[open]").count() == 0
    assert chapter.evaluate(f"localStorage.getItem('posembed:questions:{CHAPTER}')") is None


def test_a_question_that_has_changed_is_forgotten(chapter):
    for number in (0, 1):
        question = Question(chapter, number)
        question.choose(question.right)
    text = (HTML / f"{CHAPTER}.html").read_text(encoding="utf-8")
    changed = text.replace("Which part of the model could tell the two texts apart?", "Which part could?")
    assert changed != text
    chapter.route(f"**/{CHAPTER}.html", lambda route: route.fulfill(body=changed, content_type="text/html"))
    chapter.reload()
    assert total(chapter) == "1 of 4 answered, 1 right at the first choice."
    assert not Question(chapter, 1).shows_right()  # remembered, and closed


def test_a_memory_that_makes_no_sense_is_none(chapter):
    for kept in ("{", "null", "[]", "7", '{"-1": 0}'):
        place = f"posembed:questions:{CHAPTER}"
        chapter.evaluate("([place, kept]) => localStorage.setItem(place, kept)", [place, kept])
        chapter.reload()
        assert total(chapter).startswith("none"), kept
        question = Question(chapter, 0)
        question.choose(question.right)
        assert total(chapter).startswith("1 of 4"), kept


def test_where_nothing_can_be_remembered(open_address, site):
    page = open_address("about:blank")
    page.add_init_script(REFUSES)
    page.goto(f"{site}/{CHAPTER}.html")
    question = Question(page, 0)
    question.choose(question.right)
    assert question.shows_right()
    assert page.locator(".chapter-score-note").text_content() == "Your answers are kept until you leave this page."
    page.get_by_role("button", name="Forget my answers").click()
    assert total(page).startswith("none")


def test_from_a_file(browser, built):
    page = browser.new_page()
    record = Record(page)
    page.goto((built / f"{CHAPTER}.html").as_uri())
    question = Question(page, 0)
    question.choose(question.wrong)
    assert question.shows_wrong()
    assert record.errors == []
    page.close()


def test_printed_as_if_nothing_were_answered(chapter):
    question = Question(chapter, 0)
    question.choose(question.wrong)
    with printed(chapter):
        assert chapter.locator(f":is({ADDED}, .quick-question button):visible").count() == 0
        for summary in chapter.locator(".quick-question summary").all():
            assert summary.is_visible()
            assert summary.evaluate("(node) => getComputedStyle(node, '::before').content") == "none"


def test_without_a_script_every_option_opens_to_its_reason(open_address, site):
    page = open_address(f"{site}/{CHAPTER}.html", java_script_enabled=False)
    assert page.locator(f":is({ADDED}, .is-asked)").count() == 0
    for option in page.locator(".quick-question details").all():
        reason = option.locator("> :not(summary)").first
        assert not reason.is_visible()
        option.locator("summary").click()
        assert reason.is_visible()


def test_accessible_and_fits_by_touch(open_address, site):
    """Answered rightly, answered wrongly, with others opened, and not answered."""
    page = open_address(f"{site}/{CHAPTER}.html", width=390, has_touch=True, is_mobile=True)
    for number in (0, 1, 2):
        question = Question(page, number)
        question.summary(question.wrong if number else question.right).tap()
    question.summary(question.right).tap()
    expect(question.score).to_have_text("3 of 4 questions answered, 1 right at the first choice.")
    touched = page.locator(".chapter-score :is(a, button), .quick-question summary").all()
    for width in (360, 390, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        assert outside(page, ".quick-question") + outside(page, ".chapter-score") == [], width
        for box in (each.bounding_box() for each in touched):
            assert min(box["width"], box["height"]) >= 24, width
    for colours in LIGHT_AND_DARK:
        page.evaluate("(mode) => Object.assign(document.documentElement.dataset, { mode, theme: mode })", colours)
        wait_until_still(page)
        assert question.shows_right() and question.shows_wrong()
        assert violations(page, ".quick-question, .chapter-score") == [], colours


@pytest.mark.parametrize("name", [CHAPTER, "schemes/rope", "practice/many-runs"])
def test_a_page_is_read_when_its_last_section_was_seen(open_address, site, name):
    page = open_address(f"{site}/{name}.html", height=700)
    read = f"localStorage.getItem('posembed:read:{name}')"
    into_view(page.locator("main section > h2").nth(1))
    wait_until_still(page)
    assert page.evaluate(read) is None
    into_view(page.locator("main section > h2").last)
    page.wait_for_function(f"() => {read} === 'yes'")
