// What these pages need of the theme's own script, which asks each box of a page for its size while the page is laid out.
{
  const all = (selector) => [...document.querySelectorAll(selector)];

  // Light, dark, or as the system has it: the head of the page has set the first colours.
  const page = document.documentElement.dataset;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const show = (mode) => {
    page.mode = mode;
    page.theme = mode !== "auto" ? mode : dark.matches ? "dark" : "light";
    for (const menu of all(".dropdown-menu")) menu.classList.toggle("dropdown-menu-dark", page.theme === "dark");
  };
  show(page.mode);
  dark.addEventListener("change", () => show(page.mode));
  for (const button of all(".theme-switch-button")) {
    button.addEventListener("click", () => {
      const modes = dark.matches ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
      show(modes[(modes.indexOf(page.mode) + 1) % 3]);
      localStorage.setItem("mode", page.mode);
    });
  }

  // The search opens over the page, but where the page has a field of its own.
  const overlay = document.querySelector(".search-button__wrapper");
  const field = all("form.bd-search input").find((each) => !overlay?.contains(each)) ?? overlay?.querySelector("input");
  const toggle = () => {
    if (overlay?.contains(field)) overlay.classList.toggle("show");
    if (document.activeElement === field) return field.blur();
    field.focus();
    field.select();
    field.scrollIntoView({ block: "center" });
  };
  const isMac = /^(Mac|iPhone)/.test(navigator.platform);
  if (isMac) for (const key of all(".search-button__kbd-shortcut .kbd-shortcut__modifier")) key.innerText = "⌘";
  addEventListener("keydown", (event) => {
    const held = isMac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
    if (held && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      toggle();
    } else if (event.key === "Escape" && document.activeElement === field) toggle();
  }, true);
  for (const each of all(".search-button__button, .search-button__overlay")) each.addEventListener("click", toggle);

  // The two drawers: their buttons, the focus, and Escape.
  for (const name of ["primary", "secondary"]) {
    const [button, box, drawer] = [`.${name}-toggle`, `#pst-${name}-sidebar-checkbox`, `.bd-sidebar-${name}`]
      .map((selector) => document.querySelector(selector));
    if (!button || !drawer) continue;
    button.addEventListener("click", () => {
      box.checked = !box.checked;
      if (box.checked) setTimeout(() => drawer.querySelector("a, button").focus(), 100);
    });
    drawer.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      box.checked = false;
      button.focus();
    });
    box.addEventListener("change", () => box.checked || button.focus());
  }

  // Beside a page the contents of the book stand where they stood on the page before, but always show where the reader is.
  const contents = document.querySelector(".sidebar-primary-item:has(> .bd-links)");
  if (contents && matchMedia("(min-width: 992px)").matches) {
    const place = sessionStorage.getItem("sidebar-scroll-top");
    const entry = all(".bd-docs-nav .active").at(-1);
    if (place !== null) contents.scrollTop = place;
    const [here, frame] = [entry?.getBoundingClientRect(), contents.getBoundingClientRect()];
    if (here && (here.top < frame.top || here.bottom > Math.min(frame.bottom, innerHeight)))
      contents.scrollTop += here.top - frame.top - innerHeight / 4;
    addEventListener("pagehide", () => sessionStorage.setItem("sidebar-scroll-top", contents.scrollTop));
  }

  // What scrolls has a tab stop.
  const sizes = new ResizeObserver((changed) => {
    const scrolls = ({ target }) => target.scrollWidth > target.clientWidth || target.scrollHeight > target.clientHeight;
    const found = changed.map(scrolls);
    changed.forEach(({ target }, k) => (target.tabIndex = found[k] ? 0 : -1));
  });
  all("pre, .cell_output > .output, table.table").forEach((box) => sizes.observe(box));

  // A button that folds a part of the contents has a picture and no name.
  for (const each of all("summary:has(> .toctree-toggle)")) each.ariaLabel = "The pages of this section";

  // What was looked for is marked by Sphinx: in the text alone, where a word begins with it, and on the page that the
  // search has led to. It stands before Sphinx's script.
  if (location.protocol !== "file:" && !/search\.html/.test(document.referrer)) {
    localStorage.removeItem("sphinx_highlight_terms");
  }
  document.addEventListener("DOMContentLoaded", () => setTimeout(() => {
    for (const mark of all("span.highlighted")) {
      const inWord = /[\p{L}\p{N}]$/u.test(mark.previousSibling?.data ?? "");
      if (inWord || !mark.closest("article.bd-article, #search-results")) mark.replaceWith(...mark.childNodes);
    }
  }, 20));
}
