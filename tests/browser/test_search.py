"""The theme's search finds the chapters by their words."""

import pytest

# What stands somewhere behind what.
ORDER = {
    "rotary": ("schemes/rope.html", "encodings/sinusoidal-and-learned.html", "benchmarks.html"),
    "nopos": ("schemes/nopos.html", "nopos/no-positions.html", "errata.html"),
}
FINDS = {"equivariance": "why/permutation-equivariance.html", "one-hot": "why/embedding-lookup.html"}


@pytest.mark.slow
@pytest.mark.parametrize(("query", "chapter"), FINDS.items(), ids=list(FINDS))
def test_search_leads_to_the_chapter(open_address, site, query, chapter):
    page = open_address(f"{site}/intro.html")
    page.keyboard.press("Control+K")
    field = page.locator("input[name=q]:visible")
    field.fill(query)
    field.press("Enter")
    page.wait_for_url("**/search.html?q=*")
    result = page.locator(f"#search-results li a[href*='{chapter}']").first
    # By keyboard: results move down while the ones above them receive their excerpts, and a click may then miss.
    result.press("Enter")
    page.wait_for_url(f"**/{chapter}*")
    assert query in page.locator("main").inner_text().lower()


@pytest.mark.slow
@pytest.mark.parametrize(("query", "pages"), ORDER.items(), ids=list(ORDER))
def test_pages_about_it_come_before_those_that_name_it(open_address, site, query, pages):
    page = open_address(f"{site}/search.html?q={query}")
    page.locator(f"#search-results li a[href*='{pages[-1]}']").first.wait_for()
    found = [link.get_attribute("href") for link in page.locator("#search-results li > a").all()]
    places = [next(k for k, link in enumerate(found) if each in link) for each in pages]
    assert places == sorted(places), found
