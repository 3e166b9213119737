"""What is around the text: the bars, the drawers of a phone, the map of the landing page, pictures, previews."""

import re

import pytest
from playwright.sync_api import expect

from .built import HTML, chapters, repository, soup, sources
from .chromium import into_view, styles
from .colours import LIGHT_AND_DARK, VISIBLE, contrast, ink_and_paper

CHAPTER = f"{chapters()[0]}.html"
HAS_ADDRESS = not repository().startswith("OWNER/")
BUTTONS = {"menu": ".primary-toggle", "download": ".dropdown-download-buttons > button"}
if HAS_ADDRESS:
    BUTTONS["rocket"] = ".dropdown-launch-buttons > button"
DRAWERS = {
    "contents of the book": (".primary-toggle", ".bd-sidebar-primary", "a.current[href='#']"),
    "contents of the page": (".secondary-toggle", ".bd-sidebar-secondary", "a[href^='#']"),
}


@pytest.mark.parametrize("colours", LIGHT_AND_DARK)
@pytest.mark.parametrize("button", BUTTONS.values(), ids=list(BUTTONS))
def test_the_focus_is_seen(open_address, site, button, colours):
    page = open_address(f"{site}/{CHAPTER}", color_scheme=colours)
    page.keyboard.press("Tab")
    place = page.locator(button)
    place.focus()
    assert styles(place, "outlineStyle") == ["solid"]
    assert float(styles(place, "outlineWidth")[0].removesuffix("px")) >= 2
    assert contrast(styles(place, "outlineColor")[0], ink_and_paper(place)[1]) >= VISIBLE


@pytest.mark.parametrize(("button", "drawer", "link"), DRAWERS.values(), ids=list(DRAWERS))
def test_a_drawer_closes_behind_a_link(open_address, site, button, drawer, link):
    page = open_address(f"{site}/{CHAPTER}", width=390)
    # Until it is opened nobody waits for its layout.
    assert page.locator(drawer).bounding_box() is None
    page.locator(button).click()
    followed = page.locator(f"{drawer} {link}").first
    followed.click()
    page.wait_for_function(OUT_OF_SIGHT, arg=drawer)
    page.locator(button).click()
    followed.wait_for()


# For each map of a page, whether the cells that it shows are those of a mode.
MAPS = """(mode) => [...document.querySelectorAll(".plot .cells")].map((node) =>
  getComputedStyle(node).backgroundImage.replaceAll('"', "") === node.style.getPropertyValue(`--${mode}`).trim())"""


@pytest.mark.parametrize("colours", LIGHT_AND_DARK)
def test_maps_have_the_colours_of_the_mode_and_on_paper_those_of_light(open_address, site, colours):
    page = open_address(f"{site}/probing/three-properties.html", color_scheme=colours)
    for media, mode in (("screen", colours), ("print", "light")):
        page.emulate_media(media=media)
        shown = page.evaluate(MAPS, mode)
        assert shown and all(shown)


IN_SIGHT = """() => {
  const box = [...document.querySelectorAll(".bd-sidebar-primary a.current")].at(-1).getBoundingClientRect();
  return box.left >= 0 && box.top > 0 && box.bottom < innerHeight;
}"""


def test_the_drawer_opens_where_the_reader_is(open_address, site):
    page = open_address(f"{site}/nopos/masked-models.html", width=390, height=844)
    page.locator(".primary-toggle").click()
    page.wait_for_function(IN_SIGHT)


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


OUT_OF_SIGHT = """(drawer) => {
  const box = document.querySelector(drawer).getBoundingClientRect();
  return box.width === 0 || box.right <= 0 || box.left >= innerWidth;
}"""


@pytest.mark.parametrize("width", [360, 390, 768])
def test_each_chapter_has_a_card_that_leads_to_it(open_address, site, width):
    page = open_address(f"{site}/intro.html", width=width)
    cards = page.locator(".card-of")
    numbered = [name for name in chapters() if name.split("/")[0] in ("why", "encodings", "probing", "nopos")]
    assert cards.locator("a").evaluate_all("(links) => links.map((each) => each.getAttribute('href'))") == [
        f"{name}.html" for name in numbered
    ]
    for card in cards.all():
        assert re.search(r"\d+ min · (easy|medium|hard)", card.locator(".card-facts").text_content())
        box = card.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
        assert card.evaluate("(node) => node.scrollWidth - node.clientWidth") <= 0


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_each_card_has_its_picture_in_each_mode(open_address, site, mode):
    page = open_address(f"{site}/intro.html", color_scheme=mode)
    pictures = page.locator("img.card-picture:visible")
    assert pictures.count() == page.locator(".card-of").count()
    assert all(mode in address for address in pictures.evaluate_all("(all) => all.map((each) => each.src)"))
    sizes = pictures.evaluate_all(
        """(images) => Promise.all(images.map(async (image) => {
          image.loading = "eager";
          await image.decode();
          const written = ["width", "height"].map((name) => Number(image.getAttribute(name)));
          return written.join() === [image.naturalWidth, image.naturalHeight].join();
        }))"""
    )
    assert all(sizes)


def test_the_words_of_the_first_page_can_be_moved(open_address, site):
    page = open_address(f"{site}/intro.html")
    figure = page.get_by_role("group", name="Shuffle the words of a sentence")
    before = figure.get_by_role("status").inner_text()
    figure.locator(".pe-word:text-is('do')").press("ArrowLeft")
    assert figure.locator(".pe-word").all_inner_texts() == ["do", "I", "like", "coding"]
    assert figure.get_by_role("status").inner_text() != before


def test_a_chapter_that_was_read_has_a_tick(open_address, site):
    page = open_address(f"{site}/intro.html")
    assert page.locator(".card-of.read").count() == 0
    page.evaluate("() => localStorage.setItem('posembed:read:why/embedding-lookup', 'yes')")
    page.reload()
    assert page.locator(".card-of.read").get_attribute("data-page") == "why/embedding-lookup"


def test_the_field_of_the_search_begins_after_its_icon(open_address, site):
    page = open_address(f"{site}/search.html?q=attention")
    field = page.locator("main input[name=q]")
    start = field.bounding_box()["x"] + float(styles(field, "paddingLeft")[0].removesuffix("px"))
    icon = page.locator("main .bd-search .fa-magnifying-glass").bounding_box()
    assert icon["x"] + icon["width"] <= start


def test_the_page_of_the_search_names_no_key_that_leads_to_it(open_address, site):
    page = open_address(f"{site}/search.html", width=390)
    assert page.locator("main .search-button__kbd-shortcut:visible").count() == 0


@pytest.mark.parametrize("width", [390, 1100, 1280])
def test_the_way_back_to_the_top_is_a_small_arrow_in_the_corner(open_address, site, width):
    """There is none on a desktop that is wide enough for the contents beside the text."""
    page = open_address(f"{site}/{CHAPTER}", width=width)
    page.mouse.move(width / 2, 400)  # over the text: the contents at the left scroll by themselves
    page.mouse.wheel(0, 4000)
    # A busy machine would make one movement of both, and the way up is what brings the button.
    page.wait_for_function("scrollY > 3900")
    page.wait_for_timeout(200)
    page.mouse.wheel(0, -400)
    button = page.get_by_role("button", name="Back to top")
    if width == 1280:
        page.wait_for_timeout(1000)
        assert page.evaluate("scrollY") > 3000 and not button.is_visible()
        return
    button.wait_for()
    box, height = button.bounding_box(), page.viewport_size["height"]
    assert max(box["width"], box["height"]) <= 48
    assert width - box["x"] - box["width"] <= 20 and height - box["y"] - box["height"] <= 20


def test_the_search_quotes_the_text_alone(open_address, site):
    page = open_address(f"{site}/search.html?q=attention")
    page.locator("#search-results p.context, #search-results div.context").nth(3).wait_for()
    quotes = page.locator("#search-results .context").all_inner_texts()
    assert [quote for quote in quotes if re.search("Binder|Repository|Suggest edit|Contents 1", quote)] == []


@pytest.mark.parametrize("name", chapters())
def test_pictures_have_their_place_before_they_are_loaded(built, name):
    pictures = soup(f"{name}.html").select(".cell_output img")
    assert [each for each in pictures if not (each.get("width") and each.get("height"))] == []
    assert {each.get("loading") for each in pictures} <= {"lazy"}


def test_pages_are_described(built):
    descriptions = []
    for name in sources():
        (description,) = soup(f"{name}.html").select("head meta[name=description]")
        descriptions.append(description["content"])
        assert soup(f"{name}.html").select_one("meta[property='og:site_name']")["content"] == "Positional embeddings"
    assert [text for text in descriptions if not 15 < len(text) <= 160] == []
    assert len(set(descriptions)) == len(descriptions)


def test_what_needs_an_address_waits_for_it(built):
    assert (HTML / "sitemap.xml").exists() == HAS_ADDRESS
    for name in sources():
        needs = soup(f"{name}.html").select("head :is(link[rel=canonical], meta[property='og:image'])")
        assert len(needs) == 2 * HAS_ADDRESS
        links = [link["href"] for link in soup(f"{name}.html").select("a[href]")]
        assert any(repository() in link for link in links) == HAS_ADDRESS
    assert (HTML / "_static" / "screenshot.webp").exists()


def test_the_contents_mark_the_section_that_is_read(open_address, site):
    """A long one too, and after a jump back."""
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
    sections.nth(longest).evaluate("(node) => scrollTo(0, node.getBoundingClientRect().top + scrollY + 3000)")
    expect(marked).to_have_attribute("href", f"#{sections.nth(longest).get_attribute('id')}")


@pytest.mark.parametrize("chosen", [None, *LIGHT_AND_DARK])
@pytest.mark.parametrize("colours", LIGHT_AND_DARK)
def test_a_page_has_its_colours_before_the_scripts_are_there(browser, site, colours, chosen):
    """Else a browser draws all of it twice, a second of a phone."""
    context = browser.new_context(color_scheme=colours)
    if chosen:
        context.add_init_script(f"localStorage.setItem('mode', '{chosen}')")
    context.route("**/*.js*", lambda route: route.abort())
    page = context.new_page()
    page.goto(f"{site}/glossary.html")
    assert page.evaluate("document.documentElement.dataset.theme") == (chosen or colours)
    context.close()


def test_the_contents_show_what_the_section_that_is_read_defines(open_address, site):
    page = open_address(f"{site}/api-tables.html")
    shown = page.locator(".bd-sidebar-secondary .toc-h3 > a:visible")
    for section in soup("api-tables.html").select("article section:has(> h2)")[1:3]:
        page.evaluate("(id) => document.getElementById(id).scrollIntoView({ behavior: 'instant' })", section["id"])
        defined = [f"#{each['id']}" for each in section.select(":scope > dl > dt[id], :scope > section")]
        expect(shown).to_have_count(len(defined))
        assert shown.evaluate_all("(links) => links.map((link) => link.getAttribute('href'))") == defined


def test_what_was_looked_for_is_marked_in_the_text_of_the_page_that_was_found(open_address, site):
    page = open_address(f"{site}/search.html?q=rope")
    found = page.locator("#search-results li a").first
    found.click()
    page.locator(".highlighted").first.wait_for()
    assert page.locator(".highlighted").count() == page.locator("article.bd-article .highlighted").count()
    # Not "properties".
    before = "(marks) => marks.map((mark) => (mark.previousSibling?.data ?? '').slice(-1))"
    assert [each for each in page.locator(".highlighted").evaluate_all(before) if each.isalnum()] == []
    # Whoever goes elsewhere by an address has not come from the search.
    page.goto(f"{site}/search.html?q=rope")
    page.locator("#search-results li a").first.wait_for()
    page.goto(f"{site}/alternatives.html")
    page.locator("h1").first.wait_for()
    page.wait_for_timeout(300)
    assert page.locator(".highlighted").count() == 0
