"""The census can be filtered by type, check and verdict."""


def test_the_table_shows_what_is_asked_for(open_address, site):
    page = open_address(f"{site}/evidence/census.html", width=390)
    rows, count = page.locator("table.census tbody tr:visible"), page.locator("form.census-filter output")
    whole = rows.count()
    assert count.text_content() == f"{whole} of {whole} rows"
    page.get_by_label("Check").select_option("padding in front")
    page.get_by_label("Verdict").select_option("broken")
    assert sorted(row.locator("td").first.text_content() for row in rows.all()) == ["trocr", "whisper"]
    page.get_by_label("Type").fill("Whis")
    assert count.text_content() == f"1 of {whole} rows"
