"""The theme's search finds the chapters by their words."""

import pytest

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
