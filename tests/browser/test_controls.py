"""What is around the text: bars, drawers of a phone, the map of the landing page, pictures, previews, search."""

import re

import pytest
from playwright.sync_api import expect

from .axe import violations
from .built import HTML, chapters, repository, sources
from .chromium import into_view, styles
from .colours import LIGHT_AND_DARK, VISIBLE, contrast, ink_and_paper

CHAPTER = f"{chapters()[0]}.html"
HAS_ADDRESS = not repository().startswith("OWNER/")
BUTTONS = [".primary-toggle", ".dropdown-download-buttons > button"]
if HAS_ADDRESS:
    BUTTONS.append(".dropdown-launch-buttons > button")
DRAWERS = [
    (".primary-toggle", ".bd-sidebar-primary", "a.current[href='#']"),
    (".secondary-toggle", ".bd-sidebar-secondary", "a[href^='#']"),
]
OUT_OF_SIGHT = """(drawer) => {
  const box = document.querySelector(drawer).getBoundingClientRect();
  return box.width === 0 || box.right <= 0 || box.left >= innerWidth;
}"""
IN_SIGHT = """() => {
  const box = [...document.querySelectorAll(".bd-sidebar-primary a.current")].at(-1).getBoundingClientRect();
  return box.left >= 0 && box.top > 0 && box.bottom < innerHeight;
}"""
# For each picture of a map's cells, whether it is shown where it is one of a mode.
MAPS = """(mode) => [...document.querySelectorAll(".plot image")].map((node) =>
  node.classList.contains(`on-${mode}`) === (getComputedStyle(node).display !== "none"))"""
# Whether each picture is there, and as large as its place.
SIZES = """(images) => Promise.all(images.map(async (image) => {
  image.loading = "eager";
  await image.decode();
  const written = ["width", "height"].map((name) => Number(image.getAttribute(name)));
  return written.join() === [image.naturalWidth, image.naturalHeight].join();
}))"""


def dress(page, mode):
    """What the theme's switch does."""
    page.evaluate("(mode) => Object.assign(document.documentElement.dataset, { mode, theme: mode })", mode)


def test_the_focus_is_seen(open_address, site):
    page = open_address(f"{site}/{CHAPTER}")
    for mode in LIGHT_AND_DARK:
        dress(page, mode)
        for button in BUTTONS:
            page.keyboard.press("Tab")
            place = page.locator(button)
            place.focus()
            assert styles(place, "outlineStyle") == ["solid"]
            assert float(styles(place, "outlineWidth")[0].removesuffix("px")) >= 2
            assert contrast(styles(place, "outlineColor")[0], ink_and_paper(place)[1]) >= VISIBLE


def test_colours_are_switched_by_click_and_by_key_and_kept(open_address, site):
    page = open_address(f"{site}/{CHAPTER}")
    switch = page.locator(".theme-switch-button").first
    assert switch.get_attribute("aria-label")
    modes = []
    for change in (switch.click, switch.click, switch.click, lambda: switch.press("Enter")):
        change()
        modes.append(page.evaluate("() => document.documentElement.dataset.mode"))
    assert sorted(modes[:3]) == ["auto", "dark", "light"]
    assert modes[3] == modes[0]
    page.reload()
    assert page.evaluate("() => document.documentElement.dataset.mode") == modes[0]


def test_drawers_open_where_the_reader_is_and_close_behind_a_link_and_by_a_key(open_address, site):
    page = open_address(f"{site}/nopos/masked-models.html", width=390, height=844)
    for button, drawer, link in DRAWERS:
        # Until it is opened nobody waits for its layout.
        assert page.locator(drawer).bounding_box() is None
        page.locator(button).click()
        followed = page.locator(f"{drawer} {link}").first
        if drawer == ".bd-sidebar-primary":
            page.wait_for_function(IN_SIGHT)
        followed.click()
        page.wait_for_function(OUT_OF_SIGHT, arg=drawer)
        page.locator(button).click()
        followed.wait_for()
        expect(page.locator(f"{drawer} :focus")).to_have_count(1)
        page.keyboard.press("Escape")
        page.wait_for_function(OUT_OF_SIGHT, arg=drawer)
        expect(page.locator(button)).to_be_focused()


def test_the_contents_beside_a_page_show_where_the_reader_is(open_address, site):
    page = open_address(f"{site}/intro.html")
    # Where they stood on the page before the reader's entry is below them.
    page.locator(".card-of a[href='nopos/how-it-knows.html']").click()
    page.wait_for_url("**/how-it-knows.html")
    page.wait_for_function(IN_SIGHT)


def test_maps_have_the_colours_of_the_mode_and_on_paper_those_of_light(open_address, site):
    page = open_address(f"{site}/probing/three-properties.html")
    for screen in LIGHT_AND_DARK:
        dress(page, screen)
        for media, mode in (("screen", screen), ("print", "light")):
            page.emulate_media(media=media)
            shown = page.evaluate(MAPS, mode)
            assert shown and all(shown), (media, mode)


def test_a_tap_on_a_folded_solution_opens_it(open_address, site):
    """Its title is a link to the exercise, nearly all along."""
    page = open_address(f"{site}/{CHAPTER}", width=390, has_touch=True, is_mobile=True)
    title = page.locator(".solution.toggle-hidden .admonition-title").first
    into_view(title)
    title.locator("a").first.tap(force=True)
    page.locator(".solution").first.locator("xpath=self::*[not(contains(@class, 'toggle-hidden'))]").wait_for()
    assert "#" not in page.url


def test_code_can_be_copied(open_address, site):
    """The buttons come with the first touch, of a finger or a key."""
    page = open_address(f"{site}/{CHAPTER}")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    code = page.locator(".cell_input pre:visible").first
    into_view(code)
    code.hover()
    code.locator("xpath=following-sibling::button").click()
    page.locator(".copybtn.success").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").strip() == code.text_content().strip()


def test_each_chapter_has_a_card_with_its_picture(open_address, site):
    page = open_address(f"{site}/intro.html")
    cards, pictures = page.locator(".card-of"), page.locator("img.card-picture:visible")
    # A page under a chapter has no card of its own.
    parts, below = ("why", "encodings", "probing", "nopos", "longer"), "probing/once-enough-images"
    numbered = [name for name in chapters() if name.split("/")[0] in parts and name != below]
    assert cards.locator("a").evaluate_all("(links) => links.map((each) => each.getAttribute('href'))") == [
        f"{name}.html" for name in numbered
    ]
    facts = cards.locator(".card-facts").all_text_contents()
    assert all(re.search(r"\d+ min · (easy|medium|hard)", each) for each in facts)
    for mode in LIGHT_AND_DARK:
        dress(page, mode)
        assert pictures.count() == cards.count()
        addresses = pictures.evaluate_all("(all) => all.map((each) => each.src)")
        assert all(mode in address for address in addresses)
        assert all(pictures.evaluate_all(SIZES))
    for width in (360, 390, 768):
        page.set_viewport_size({"width": width, "height": 900})
        for card in cards.all():
            box = card.bounding_box()
            assert box["x"] >= 0 and box["x"] + box["width"] <= width
            assert card.evaluate("(node) => node.scrollWidth - node.clientWidth") <= 0
    # A chapter ends with the card of the next one.
    finding = cards.nth(1).locator("p").first.text_content()
    page.goto(f"{site}/{CHAPTER}")
    following = page.locator(".next-card")
    assert following.locator(".next-finding").text_content() == finding
    assert styles(following.locator("img"), "display") == ["block", "none"]
    assert all(following.locator("img").evaluate_all(SIZES))
    # What the axes hold, marks too, and no words.
    page.set_content((HTML / addresses[0].removeprefix(f"{site}/")).read_text(encoding="utf-8"))
    assert page.locator("g[clip-path] > use").first.bounding_box()["width"] > 0
    assert not any(word.is_visible() for word in page.locator("text").all())


def test_the_first_page_has_a_figure_to_move_and_ticks_for_what_was_read(open_address, site):
    page = open_address(f"{site}/intro.html")
    figure = page.get_by_role("group", name="Two models read what you type")
    before = figure.get_by_role("status").inner_text()
    figure.locator(".pe-word:text-is('people')").press("ArrowLeft")
    assert figure.locator(".pe-word").all_inner_texts()[:3] == ["people", "the", "of"]
    expect(figure.get_by_role("status")).to_contain_text("guesses")
    assert figure.get_by_role("status").inner_text() != before
    assert page.locator(".card-of.read").count() == 0
    page.evaluate("() => localStorage.setItem('posembed:read:why/embedding-lookup', 'yes')")
    page.reload()
    assert page.locator(".card-of.read").get_attribute("data-page") == "why/embedding-lookup"


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_the_first_page_moves_once_by_itself_and_fetches_nothing_for_it(open_address, site, motion):
    page = open_address(f"{site}/intro.html", reduced_motion=motion)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    loss = page.locator(".pe-models-right .pe-models-loss")
    into_view(page.locator(".posembed-root"))
    first, told = loss.inner_text(), page.locator(".pe-figure").get_by_role("status")
    into_view(page.locator(".pe-models-left"))
    if motion == "reduce":
        page.wait_for_timeout(2000)
    else:
        # What is told follows what is shown, and says that nobody asked for it.
        expect(told).to_contain_text("Shown by itself: positions stretched.")
        before, now = (words.removeprefix("loss ") for words in (first, loss.inner_text()))
        expect(told).to_contain_text(f"loss {before.removesuffix(' nats')} → {now} a character.")
        expect(told).to_contain_text("loss unchanged, ")
        expect(loss).not_to_have_text(first)
    expect(loss).to_have_text(first)
    expect(told).to_contain_text(f"{first} a character.")
    assert not page.locator(".pe-try .pe-done").count()
    assert [each for each in asked if "/models/" in each] == []


def test_the_way_back_to_the_top_is_a_small_arrow_in_the_corner(open_address, site):
    """There is none on a desktop that is wide enough for the contents beside the text."""
    page = open_address(f"{site}/{CHAPTER}", width=390)
    button = page.get_by_role("button", name="Back to top")
    page.mouse.move(195, 400)
    page.mouse.wheel(0, 4000)
    # A busy machine would make one movement of both, and the way up is what brings the button.
    page.wait_for_function("scrollY > 3900")
    page.wait_for_timeout(200)
    page.mouse.wheel(0, -400)
    button.wait_for()
    box = button.bounding_box()
    assert max(box["width"], box["height"]) <= 48
    assert 390 - box["x"] - box["width"] <= 20 and 900 - box["y"] - box["height"] <= 20
    page.set_viewport_size({"width": 1280, "height": 900})
    assert not button.is_visible()


def test_search(open_address, site):
    page = open_address(f"{site}/search.html?q=rope", width=390)
    field = page.locator("main input[name=q]")
    # It begins after its icon, and names no key that leads to it.
    start = field.bounding_box()["x"] + float(styles(field, "paddingLeft")[0].removesuffix("px"))
    icon = page.locator("main .bd-search .fa-magnifying-glass").bounding_box()
    assert icon["x"] + icon["width"] <= start
    assert page.locator("main .search-button__kbd-shortcut:visible").count() == 0
    # The search quotes the text alone.
    found = page.locator("#search-results .context")
    found.nth(3).wait_for()
    assert [text for text in found.all_inner_texts() if re.search("Binder|Repository|Suggest|Contents 1", text)] == []
    page.locator("#search-results li a").first.click()
    marks = page.locator(".highlighted")
    page.locator("article.bd-article .highlighted").first.wait_for()
    page.wait_for_timeout(300)
    assert marks.count() == page.locator("article.bd-article .highlighted").count() > 0
    # Not "properties".
    before = "(marks) => marks.map((mark) => (mark.previousSibling?.data ?? '').slice(-1))"
    assert [each for each in marks.evaluate_all(before) if each.isalnum()] == []
    # Whoever goes elsewhere by an address has not come from the search.
    page.goto(f"{site}/search.html?q=rope")
    page.locator("#search-results li a").first.wait_for()
    page.goto(f"{site}/alternatives.html")
    page.wait_for_timeout(300)
    assert marks.count() == 0


def test_the_search_stays_beside_a_page_far_down_the_contents(open_address, site):
    page = open_address(f"{site}/schemes/fire.html")
    contents = page.locator(".sidebar-primary-item", has=page.locator(".bd-links"))
    assert contents.evaluate("(node) => node.scrollTop") > 100
    beside_the_end = page.locator(".search-button-field").bounding_box()
    contents.evaluate("(node) => node.scrollTo(0, 0)")
    assert page.locator(".search-button-field").bounding_box() == beside_the_end
    assert beside_the_end["y"] < contents.bounding_box()["y"]


def test_pages_are_described_and_what_needs_an_address_waits_for_it(built):
    descriptions = []
    for name in sources():
        head, _, body = (HTML / f"{name}.html").read_text(encoding="utf-8").partition("</head>")
        (description,) = re.findall(r'<meta name="description" content="([^"]*)"', head)
        descriptions.append(description)
        assert '<meta property="og:site_name" content="Positional embeddings"' in head
        assert ('rel="canonical"' in head) == ('property="og:image"' in head) == HAS_ADDRESS
        assert any(repository() in link for link in re.findall(r'href="([^"]*)"', body)) == HAS_ADDRESS
    assert [text for text in descriptions if not 15 < len(text) <= 200] == []
    assert len(set(descriptions)) == len(descriptions)
    assert (HTML / "sitemap.xml").exists() == HAS_ADDRESS
    assert (HTML / "_static" / "screenshot.webp").exists()


def test_the_contents_mark_the_section_that_is_read(open_address, site):
    """A long one too, and after a jump back; and they show what it defines."""
    page = open_address(f"{site}/nopos/no-positions.html")
    sections = page.locator("article section:has(> h2)")
    marked = page.locator(".bd-sidebar-secondary .bd-toc-nav a.active")
    n = sections.count()
    for section in (n - 3, 0, 2, n - 1, 1):
        place = "node.getBoundingClientRect().top + scrollY - 100" if section < n - 1 else "1e6"
        sections.nth(section).evaluate(f"(node) => scrollTo(0, {place})")
        expect(marked).to_have_count(1)
        expect(marked).to_have_attribute("href", f"#{sections.nth(section).get_attribute('id')}")
    page.evaluate("scrollTo(0, 0)")
    expect(marked).to_have_count(0)
    # In the middle of one of which neither end is in view.
    longest = max(range(n), key=lambda k: sections.nth(k).bounding_box()["height"])
    middle = "node.getBoundingClientRect().top + scrollY + node.getBoundingClientRect().height / 2"
    sections.nth(longest).evaluate(f"(node) => scrollTo(0, {middle})")
    expect(marked).to_have_attribute("href", f"#{sections.nth(longest).get_attribute('id')}")
    page.goto(f"{site}/api-tables.html")
    section = page.locator("article section:has(> h2)").nth(1)
    into_view(section, "start")
    ids = "(nodes) => nodes.map((node) => '#' + node.id)"
    defined = section.locator("> dl > dt[id], > section").evaluate_all(ids)
    shown = page.locator(".bd-sidebar-secondary .toc-h3 > a:visible")
    expect(shown).to_have_count(len(defined))
    assert shown.evaluate_all("(links) => links.map((link) => link.getAttribute('href'))") == defined


@pytest.mark.parametrize("colours", LIGHT_AND_DARK)
def test_a_page_has_its_colours_before_the_scripts_are_there(browser, site, colours):
    """Else a browser draws all of it twice, a second of a phone."""
    context = browser.new_context(color_scheme=colours)
    context.route("**/*.js*", lambda route: route.abort())
    page = context.new_page()
    page.goto(f"{site}/glossary.html")
    for chosen in ("auto", *LIGHT_AND_DARK):
        page.evaluate("(mode) => localStorage.setItem('mode', mode)", chosen)
        page.reload()
        assert page.evaluate("document.documentElement.dataset.theme") == (colours if chosen == "auto" else chosen)
    context.close()


def test_terms_show_what_the_glossary_says_by_mouse_key_and_finger(open_address, site):
    page = open_address(f"{site}/{CHAPTER}", width=390, has_touch=True)
    term, box = page.locator("article a[href$='#term-causal-mask']").first, page.get_by_role("tooltip")
    into_view(term)
    term.tap()
    expect(box).to_contain_text("A mask that lets the token")
    edges = box.bounding_box()
    assert edges["x"] >= 0 and edges["x"] + edges["width"] <= 390
    assert violations(page, "#term-preview") == []
    assert "glossary" not in page.url
    page.keyboard.press("Escape")
    expect(box).to_be_hidden()
    page.mouse.move(1, 1)
    page.mouse.down()
    page.mouse.up()
    term.focus()
    expect(box).to_be_visible()
    assert term.get_attribute("aria-describedby") == box.get_attribute("id")
    term.blur()
    page.keyboard.press("Escape")
    term.hover()
    expect(box).to_be_visible()
    page.mouse.move(1, 1)
    expect(box).to_be_hidden()
    term.tap()
    term.tap()
    page.wait_for_url("**/glossary.html#term-causal-mask")


def test_one_switch_folds_and_opens_all_code_and_is_remembered(open_address, site):
    page = open_address(f"{site}/{CHAPTER}", width=360)
    code, switch = page.locator(".cell_input"), page.locator(".code-switch")
    shown = code.locator("visible=true").count()
    switch.click()
    assert code.locator("visible=true").count() == 0 < shown
    page.reload()
    assert code.locator("visible=true").count() == 0
    page.locator("details.hide > summary").first.click()
    assert code.locator("visible=true").count() > 0
    switch.press("Enter")
    # That of solutions stays with them.
    assert (
        code.locator("visible=true").count() == page.locator(".bd-article .cell_input:not(.solution *)").count() > shown
    )
    assert switch.inner_text() == "Fold code"
    assert violations(page, ".bd-header-article") == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
