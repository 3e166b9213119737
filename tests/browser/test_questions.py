"""Quick questions: choose, see the verdict and the reason, the score of the chapter, remembered and forgotten."""

import pytest
from playwright.sync_api import expect

from .axe import violations
from .built import BOOK, HTML, chapters, soup
from .chromium import Record, into_view, outside, printed, styles, visit, wait_until_still
from .colours import LIGHT_AND_DARK, VISIBLE, contrast, ink_and_paper

CHAPTER = "encodings/sinusoidal-and-learned"
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

    def option(self, n):
        return self.box.locator("details").nth(n)

    def choose(self, n):
        self.option(n).locator("summary").click()

    def shows(self, n, text, sign):
        """Whether an option shows this verdict, as a word, a sign and a colour, and what it is called."""
        summary = self.option(n).locator("summary")
        verdict = summary.locator(".verdict")
        expect(verdict).to_be_visible()
        expect(verdict).to_have_text(text)
        assert sign in summary.evaluate("(node) => getComputedStyle(node, '::before').content")
        ring = summary.evaluate("(node) => getComputedStyle(node, '::before').backgroundColor")
        assert styles(verdict, "color") == [ring]
        assert contrast(ring, ink_and_paper(summary)[1]) >= VISIBLE

    def is_open(self, n):
        return self.option(n).get_attribute("open") is not None


@pytest.fixture
def chapter(open_address, site):
    return open_address(f"{site}/{CHAPTER}.html")


def total(page):
    return page.locator(".chapter-score-total").text_content()


def spoken(page):
    return page.locator("main > [role=status]").inner_text()


def after_reload(page):
    page.reload()
    wait_until_still(page)
    return page


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


def test_a_question_waits_for_a_choice(chapter):
    assert chapter.locator(".verdict:visible, .question-score:visible").count() == 0
    assert total(chapter) == "Quick questions: none of 7 answered yet."
    assert chapter.get_by_role("button", name="Forget my answers").count() == 0


def test_a_right_choice(chapter):
    question = Question(chapter, 0)
    question.choose(question.right)
    question.shows(question.right, "Right", "✓")
    assert question.is_open(question.right)
    expect(question.score).to_have_text("1 of 7 questions answered, 1 right at the first choice.")
    assert spoken(chapter) == "Right. 1 of 7 questions answered, 1 right at the first choice."
    assert total(chapter) == "Quick questions: 1 of 7 answered, 1 right at the first choice."


def test_a_wrong_choice_counts_and_the_others_open_to_their_reasons(chapter):
    question = Question(chapter, 1)
    question.choose(question.wrong)
    question.shows(question.wrong, "Not quite", "✗")
    assert question.is_open(question.wrong)
    score = "1 of 7 questions answered, 0 right at the first choice."
    assert spoken(chapter) == f"Not quite. {score}"
    assert question.box.locator(".verdict:visible").count() == 1
    question.choose(question.right)
    question.shows(question.right, "Right", "✓")
    assert question.is_open(question.right) and question.is_open(question.wrong)
    expect(question.score).to_have_text(score)
    assert spoken(chapter) == "Right."
    question.choose(question.right)
    assert not question.is_open(question.right)
    question.shows(question.right, "Right", "✓")


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_by_keyboard(chapter, key):
    question = Question(chapter, 2)
    first = question.option(0).locator("summary")
    first.focus()
    for _ in range(question.right):
        chapter.keyboard.press("Tab")
    expect(question.option(question.right).locator("summary")).to_be_focused()
    chapter.keyboard.press(key)
    question.shows(question.right, "Right", "✓")
    expect(question.option(question.right).locator("summary")).to_be_focused()
    chapter.keyboard.press("Shift+Tab")
    assert styles(chapter.locator(":focus"), "outlineStyle") == ["solid"]
    chapter.keyboard.press(key)
    question.shows(question.right - 1, "Not quite", "✗")
    assert total(chapter).endswith("1 of 7 answered, 1 right at the first choice.")


def test_by_touch(open_address, site):
    page = open_address(f"{site}/{CHAPTER}.html", width=390, has_touch=True, is_mobile=True)
    question = Question(page, 0)
    for n in (question.wrong, question.right):
        summary = question.option(n).locator("summary")
        assert summary.bounding_box()["height"] >= 24
        summary.tap()
    question.shows(question.wrong, "Not quite", "✗")
    question.shows(question.right, "Right", "✓")
    expect(question.score).to_have_text("1 of 7 questions answered, 0 right at the first choice.")


def test_what_a_search_in_the_page_opens_is_no_choice(chapter):
    question = Question(chapter, 0)
    question.option(question.wrong).evaluate("(node) => (node.open = true)")
    assert total(chapter).startswith("Quick questions: none")
    question.choose(question.wrong)
    question.shows(question.wrong, "Not quite", "✗")
    assert question.is_open(question.wrong)


def test_remembered_and_forgotten(chapter):
    first, second = Question(chapter, 0), Question(chapter, 3)
    first.choose(first.right)
    second.choose(second.wrong)
    after_reload(chapter)
    score = "2 of 7 questions answered, 1 right at the first choice."
    for question, n, verdict, sign in ((first, first.right, "Right", "✓"), (second, second.wrong, "Not quite", "✗")):
        question.shows(n, verdict, sign)
        expect(question.score).to_have_text(score)
    assert chapter.locator(".verdict:visible").count() == 2
    second.choose(second.right)
    expect(second.score).to_have_text(score)
    marks = chapter.locator(".chapter-score-marks a")
    assert [mark.get_attribute("aria-label") for mark in marks.all()][:4] == [
        "Question 1: right",
        "Question 2: not answered",
        "Question 3: not answered",
        "Question 4: not quite",
    ]
    marks.nth(3).click()
    expect(second.box).to_be_in_viewport()
    chapter.get_by_role("button", name="Forget my answers").click()
    expect(chapter.locator(".chapter-score-total")).to_be_focused()
    assert spoken(chapter) == "Your answers are forgotten."
    for page in (chapter, after_reload(chapter)):
        assert page.locator(".verdict:visible, .question-score:visible").count() == 0
        assert total(page) == "Quick questions: none of 7 answered yet."
        assert page.locator(".quick-question details[open]").count() == 0
    assert chapter.evaluate(f"localStorage.getItem('posembed:questions:{CHAPTER}')") is None
    second.choose(second.right)
    assert total(chapter) == "Quick questions: 1 of 7 answered, 1 right at the first choice."


def test_a_question_that_has_changed_is_forgotten(chapter):
    for number in (0, 1):
        question = Question(chapter, number)
        question.choose(question.right)
    text = (HTML / f"{CHAPTER}.html").read_text(encoding="utf-8")
    changed = text.replace("Does the table confuse the two positions?", "Are both rows one?")
    assert changed != text
    chapter.route(f"**/{CHAPTER}.html", lambda route: route.fulfill(body=changed, content_type="text/html"))
    after_reload(chapter)
    assert total(chapter) == "Quick questions: 1 of 7 answered, 1 right at the first choice."
    Question(chapter, 1).shows(Question(chapter, 1).right, "Right", "✓")


@pytest.mark.parametrize("kept", ["{", "null", "[]", "7", '{"-1": 0}'])
def test_a_memory_that_makes_no_sense_is_none(chapter, kept):
    chapter.evaluate("([place, kept]) => localStorage.setItem(place, kept)", [f"posembed:questions:{CHAPTER}", kept])
    after_reload(chapter)
    assert total(chapter).startswith("Quick questions: none")
    question = Question(chapter, 0)
    question.choose(question.right)
    assert total(after_reload(chapter)).startswith("Quick questions: 1 of 7")


def test_where_nothing_can_be_remembered(open_address, browser, site):
    page = open_address("about:blank")
    page.add_init_script(REFUSES)
    visit(page, f"{site}/{CHAPTER}.html")
    question = Question(page, 0)
    question.choose(question.right)
    question.shows(question.right, "Right", "✓")
    assert page.locator(".chapter-score-note").text_content() == "Your answers are kept until you leave this page."
    page.get_by_role("button", name="Forget my answers").click()
    assert total(page).startswith("Quick questions: none")


def test_from_a_file(browser, built):
    page = browser.new_page()
    record = Record(page)
    visit(page, (built / f"{CHAPTER}.html").as_uri())
    question = Question(page, 0)
    question.choose(question.wrong)
    question.shows(question.wrong, "Not quite", "✗")
    assert record.errors == []
    page.close()


def test_chapters_keep_their_answers_apart(chapter, site):
    question = Question(chapter, 0)
    question.choose(question.right)
    other = next(name for name in QUESTIONED if name != CHAPTER)
    visit(chapter, f"{site}/{other}.html")
    assert total(chapter).startswith("Quick questions: none")
    visit(chapter, f"{site}/{CHAPTER}.html")
    assert total(chapter).startswith("Quick questions: 1 of 7")


def test_printed_as_if_nothing_were_answered(chapter):
    for number in (0, 1):
        question = Question(chapter, number)
        question.choose(question.wrong)
    with printed(chapter):
        assert chapter.locator(f":is({ADDED}):visible").count() == 0
        assert chapter.locator(".quick-question button:visible").count() == 0
        for summary in chapter.locator(".quick-question summary").all():
            assert summary.is_visible()
            assert summary.evaluate("(node) => getComputedStyle(node, '::before').content") == "none"
        for explanation in chapter.locator(".quick-question details > :not(summary)").all():
            assert explanation.evaluate("(node) => node.checkVisibility({ visibilityProperty: true })")


def test_without_a_script_every_option_opens_to_its_reason(open_address, site):
    page = open_address(f"{site}/{CHAPTER}.html", java_script_enabled=False)
    assert page.locator(f":is({ADDED}, .is-asked)").count() == 0
    for box in page.locator(".quick-question").all():
        for option in box.locator("details").all():
            reason = option.locator("> :not(summary)").first
            assert not reason.is_visible()
            option.locator("summary").click()
            assert reason.is_visible()


@pytest.mark.parametrize("colours", LIGHT_AND_DARK)
@pytest.mark.parametrize("width", [360, 390, 1280])
def test_accessible_and_fits(open_address, site, width, colours):
    """Answered rightly, answered wrongly, with others opened, and not answered."""
    page = open_address(f"{site}/{CHAPTER}.html", width=width, color_scheme=colours)
    for number in (0, 1, 2):
        question = Question(page, number)
        question.choose(question.wrong if number else question.right)
    question.choose(question.right)
    wait_until_still(page)
    assert violations(page, ".quick-question, .chapter-score") == []
    assert outside(page, ".quick-question") + outside(page, ".chapter-score") == []
    for mark in page.locator(".chapter-score :is(a, button)").all():
        box = mark.bounding_box()
        assert min(box["width"], box["height"]) >= 24


@pytest.mark.parametrize("name", [CHAPTER, "schemes/rope", "practice/many-runs"])
def test_a_page_is_read_when_its_last_section_was_seen(open_address, site, name):
    page = open_address(f"{site}/{name}.html", height=700)
    read = f"localStorage.getItem('posembed:read:{name}')"
    into_view(page.locator("main section > h2").nth(1))
    wait_until_still(page)
    assert page.evaluate(read) is None
    into_view(page.locator("main section > h2").last)
    page.wait_for_function(f"() => {read} === 'yes'")
