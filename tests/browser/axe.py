"""What axe, the accessibility checker, finds on a page."""

from axe_playwright_python.sync_playwright import Axe

STANDARDS = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]


def violations(page, part=None, but=None):
    """List what axe finds serious or critical in a part of a page or in all but one, with the place and the reason."""
    # Without preload: axe would fetch the style sheets again, and those that they import from a wrong place.
    options = {"runOnly": STANDARDS, "resultTypes": ["violations"], "preload": False}
    found = Axe().run(page, context={"exclude": [[but]]} if but else part, options=options).response["violations"]
    return [
        f"{violation['id']} at {node['target']}: {node['failureSummary']}"
        for violation in found
        if violation["impact"] in {"serious", "critical"}
        for node in violation["nodes"]
    ]
