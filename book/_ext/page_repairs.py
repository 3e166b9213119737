"""Repairs of the theme's pages that no option offers."""


def drop_repeated_scripts(app, pagename, templatename, context, doctree):
    """Print each inline script once.

    Two extensions register theirs twice, and a second `const` of one name is an
    error in the page.
    """
    seen, kept = set(), []
    for script in context.get("script_files", []):
        body = (getattr(script, "attributes", None) or {}).get("body")
        if body is None or body not in seen:
            kept.append(script)
        seen.add(body)
    context["script_files"][:] = kept


def setup(app):
    """Connect the repairs; Sphinx calls this."""
    app.connect("html-page-context", drop_repeated_scripts, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
