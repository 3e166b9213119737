"""The theme's search finds the chapters by their words."""

import pytest

# What stands somewhere behind what.
ORDER = {
    "rotary": ("schemes/rope.html", "encodings/sinusoidal-and-learned.html", "benchmarks.html"),
    "nopos": ("schemes/nopos.html", "nopos/no-positions.html", "errata.html"),
    "equivariance": ("why/permutation-equivariance.html",),
}


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
