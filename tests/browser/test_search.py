"""The theme's search finds the chapters, and sections of them, by their words."""

import pytest

# What stands somewhere behind what.
ORDER = {
    "rotary": ("schemes/rope.html", "encodings/sinusoidal-and-learned.html", "benchmarks.html"),
    "nopos": ("schemes/nopos.html", "nopos/no-positions.html", "errata.html"),
    "equivariance": ("why/permutation-equivariance.html",),
}
# What stands first, beside an entry of the glossary.
SECTIONS = {
    "left padding": "encodings/museum-of-bugs#exhibit-5-a-text-and-its-twin-in-a-batch",
    "bert table": "probing/position-tables",
    "train short test long": "encodings/relative-positions#train-short-test-long",
    "t5 buckets": "encodings/relative-positions#t5-a-number-for-each-bucket",
    "attention sink": "nopos/after-nopos#the-first-token-as-a-sink",
}
FIRST = """(query) => {
  const found = Search._performSearch(...Search._parseQuery(query)).reverse();
  return found.map(([page, , anchor]) => page + anchor).find((each) => !each.startsWith("glossary#"));
}"""


def test_search_leads_to_the_section_that_answers(open_address, site):
    page = open_address(f"{site}/search.html")
    page.wait_for_function("Search.sections && Search.hasIndex()")
    assert {query: page.evaluate(FIRST, query) for query in SECTIONS} == SECTIONS


@pytest.mark.slow
@pytest.mark.parametrize(("query", "pages"), ORDER.items(), ids=list(ORDER))
def test_search_leads_to_the_chapter_before_those_that_name_it(open_address, site, query, pages):
    page = open_address(f"{site}/intro.html")
    page.keyboard.press("Control+K")
    field = page.locator("input[name=q]:visible")
    field.fill(query)
    field.press("Enter")
    page.locator(f"#search-results li a[href*='{pages[-1]}']").first.wait_for()
    found = [link.get_attribute("href") for link in page.locator("#search-results li > a").all()]
    places = [next(k for k, link in enumerate(found) if each in link) for each in pages]
    assert places == sorted(places), found
    # By keyboard: results move down while the ones above them receive their excerpts, and a click may then miss.
    page.locator(f"#search-results li a[href*='{pages[0]}']").first.press("Enter")
    page.wait_for_url(f"**/{pages[0]}*")
    assert query in page.locator("main").inner_text().lower()
