// Menus, hints, the arrow to the top and the buttons that copy come when something is first touched or moved: they need
// the theme's largest script, or a change of the whole page. A menu that is opened before it is there opens when it is.
{
  const first = ["pointerover", "pointerdown", "touchstart", "keydown", "focusin", "wheel", "scroll"];
  let waiting = null;
  const hold = (event) => {
    waiting = event.target.closest('[data-bs-toggle="dropdown"]') ?? waiting;
  };
  const ready = () => {
    removeEventListener("click", hold, true);
    waiting?.click();
    // The arrow to the top shows when the page is further up than it was by this.
    window.oldScroll = scrollY;
  };
  const load = () => {
    // Its own mark of the section that is read misses long sections, and stands still after a jump to the top.
    document.body.removeAttribute("data-bs-spy");
    for (const kind of first) removeEventListener(kind, load, kind !== "scroll");
    for (const { src } of document.querySelectorAll('script[type="text/later"]')) {
      const script = Object.assign(document.createElement("script"), { src, async: false });
      if (src.includes("/bootstrap.")) script.onload = ready;
      document.head.append(script);
    }
  };
  // Of scrolling that of the page alone: the theme scrolls its contents by itself.
  for (const kind of first) addEventListener(kind, load, kind !== "scroll");
  addEventListener("click", hold, true);
}
// The script of a figure comes a while before the figure is near, and before a print; then it draws by itself. As a print
// does not wait, all are drawn when a key is pressed that may go with P, or the menu is touched from which one prints.
{
  const near = new IntersectionObserver((seen) => seen.forEach((each) => each.isIntersecting && load(each.target)),
    { rootMargin: "1500px" });
  const load = (figure) => {
    near.unobserve(figure);
    const script = document.createElement("script");
    script.src = figure.dataset.script;
    figure.dataset.asked = "yes";
    document.head.append(script);
    return new Promise((done) => script.addEventListener("load", done));
  };
  const waiting = () => [...document.querySelectorAll("[data-script]:not([data-asked])")];
  waiting().forEach((figure) => near.observe(figure));
  addEventListener("beforeprint", () => {
    const figures = waiting();
    if (figures.length) Promise.all(figures.map(load)).then(() => dispatchEvent(new Event("beforeprint")));
  });
  let printing = false;
  addEventListener("beforeprint", (event) => (printing ||= event.isTrusted));
  addEventListener("afterprint", (event) => (printing &&= !event.isTrusted));
  const drawAll = async () => {
    if (!document.querySelector("[data-script]:not([data-drawn])")) return;
    await Promise.all(waiting().map(load));
    if (printing) return;
    // What else is opened for a print closes again, before anything is shown.
    for (const kind of ["beforeprint", "afterprint"]) dispatchEvent(new Event(kind));
  };
  addEventListener("keydown", ({ key }) => ["Control", "Meta"].includes(key) && drawAll());
  for (const kind of ["pointerover", "focusin"])
    addEventListener(kind, ({ target }) => target.closest?.(".dropdown-download-buttons") && drawAll());
}
// What a reader sets in a figure stands in the page's address, and can be sent: the figure's name, a checksum, and the values
// that are others than at first. It is the figure's id too, so that the address leads to it. Let be is what is damaged, and
// what was set in a figure that has changed since: that has another name.
{
  const sum = (text) => [...text].reduce((sum, each) => (31 * sum + each.codePointAt(0)) % 2 ** 32, 0).toString(36);
  const place = () => {
    const address = location.hash.slice(1);
    const figure = document.querySelector(`[data-posembed="${CSS.escape(address.split("=")[0])}"]`);
    if (!figure || figure.id === address) return null;
    figure.id = address;
    return figure;
  };
  const keep = ({ target: figure, detail: { model, state } }) => {
    const [name, first] = [figure.dataset.posembed, { ...state }];
    const set = (values) => {
      // Twice, because one value may have moved another.
      for (const [key, value] of [values, values].flatMap(Object.entries)) if (state[key] !== value) model.set(key, value);
    };
    const restore = () => {
      const [its, sign, text] = location.hash.slice(1).split("=");
      if (its !== name) return;
      const before = { ...state };
      try {
        const kept = decodeURIComponent(text);
        if (sign === sum(name + kept)) set({ ...first, ...JSON.parse(kept) });
      } catch {
        set(before);
      }
    };
    const write = () => {
      const kept = JSON.stringify(Object.fromEntries(Object.entries(state).filter(([key, value]) => value !== first[key])));
      figure.id = `${name}=${sum(name + kept)}=${encodeURIComponent(kept)}`;
      history.replaceState(history.state, "", `#${figure.id}`);
    };
    restore();
    addEventListener("hashchange", restore);
    // What moves by itself is not set by a reader. The rest waits a little: browsers allow few changes a second.
    let [touched, later] = [false, 0];
    for (const kind of ["pointerdown", "keydown", "input", "change"])
      figure.addEventListener(kind, () => (touched = true), true);
    model.save_changes = () => {
      clearTimeout(later);
      if (touched) later = setTimeout(write, 300);
    };
  };
  // At first the browser leads there by itself.
  place();
  addEventListener("hashchange", () => place()?.scrollIntoView());
  addEventListener("posembed:drawn", keep);
}
// On a phone the contents lie over the text: following one of their links puts them away.
document.addEventListener("click", (event) => {
  if (!event.target.closest(".bd-sidebar-primary a, .bd-sidebar-secondary a")) return;
  for (const drawer of document.querySelectorAll("input.sidebar-toggle")) drawer.checked = false;
});
// On a phone the drawer begins anew at its top when it is shown: show it where the reader is.
document.addEventListener("click", (event) => {
  const here = [...document.querySelectorAll(".bd-sidebar-primary a.current")].at(-1);
  if (!here || innerWidth >= 992 || !event.target.closest(".primary-toggle")) return;
  let left = 12;
  const look = setInterval(() => {
    if (here.getBoundingClientRect().top > innerHeight) here.scrollIntoView({ block: "center", behavior: "instant" });
    if (!--left) clearInterval(look);
  }, 50);
}, { capture: true });
// Chapters that were read to their end have a tick on the first page. What the browser keeps may be shut off.
document.addEventListener("DOMContentLoaded", () => {
  for (const card of document.querySelectorAll(".card-of")) {
    try {
      if (localStorage.getItem(`posembed:read:${card.dataset.page}`)) card.classList.add("read");
    } catch {
      return;
    }
  }
});
// The contents mark the section that is read: the last one whose heading has passed the upper part of the window.
document.addEventListener("DOMContentLoaded", () => {
  const links = [...document.querySelectorAll(".bd-toc-nav a.nav-link")];
  const headings = links.map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1))));
  const inside = (part) => headings.filter((each) => each && each !== part && part.contains(each));
  const isOuter = (each, _, all) => !all.some((other) => other !== each && other.contains(each));
  const sections = inside(document).filter(isOuter);
  const last = (some) => some.findLast((each) => each.getBoundingClientRect().top < 0.4 * innerHeight) ?? null;
  let marked = null;
  const mark = () => {
    // The last one may be too short to get so far up.
    const end = scrollY > 0 && innerHeight + scrollY > document.documentElement.scrollHeight - 4;
    // What a section far away holds is not laid out, and asking where it is would have it done.
    const section = last(sections);
    const now = (end ? headings.at(-1) : section && last(inside(section))) ?? section;
    if (now === marked) return;
    marked = now;
    // A section's own entry, and that of the one it stands in.
    const parts = new Set();
    for (let part = now; part; part = part.parentElement.closest("section")) parts.add(part);
    links.forEach((link, k) => link.classList.toggle("active", parts.has(headings[k])));
    // Where the contents are longer than the window, they show the entry that is marked.
    const [entry, frame] = [links[headings.indexOf(now)], document.querySelector(".bd-sidebar-secondary")];
    if (!entry || innerWidth < 1200) return;
    const [here, box] = [entry.getBoundingClientRect(), frame.getBoundingClientRect()];
    if (here.top < box.top || here.bottom > Math.min(box.bottom, innerHeight))
      frame.scrollTop += here.top - box.top - innerHeight / 4;
  };
  addEventListener("scroll", () => requestAnimationFrame(mark), { passive: true });
  requestAnimationFrame(mark);
});
// What the glossary says of a term, beside its link: under a mouse, at the focus, at the first tap of a finger. Escape puts
// it away. The page has the entries it needs: book/_ext/previews.py.
{
  const entries = document.getElementById("terms")?.content;
  const link = (node) => node?.closest?.("article a[href*='#term-']");
  const box = Object.assign(document.createElement("div"), { id: "term-preview", className: "term-preview", role: "tooltip" });
  box.hidden = true;
  let shown = null;
  let touched = false;
  const hide = () => {
    shown?.removeAttribute("aria-describedby");
    box.hidden = true;
    shown = null;
  };
  const show = (term) => {
    const entry = term && entries?.getElementById(term.hash.slice(1));
    if (!entry || term === shown) return;
    hide();
    shown = term;
    box.replaceChildren(...entry.cloneNode(true).childNodes);
    if (!box.isConnected) document.body.append(box);
    box.hidden = false;
    term.setAttribute("aria-describedby", box.id);
    // Below the first line of the link, or above it where there is no room.
    const [place, width] = [term.getClientRects()[0], document.documentElement.clientWidth];
    const below = place.bottom + box.offsetHeight + 8 < innerHeight;
    box.style.left = `${scrollX + Math.max(8, Math.min(place.left, width - box.offsetWidth - 8))}px`;
    box.style.top = `${scrollY + (below ? place.bottom + 2 : place.top - box.offsetHeight - 2)}px`;
  };
  if (entries) {
    addEventListener("pointerdown", ({ pointerType }) => (touched = pointerType === "touch"), true);
    document.addEventListener("pointerover", ({ target, pointerType }) => {
      if (pointerType === "touch" || box.contains(target)) return;
      if (link(target)) show(link(target));
      else if (shown !== document.activeElement) hide();
    });
    document.addEventListener("focusin", ({ target }) => touched || (link(target) ? show(link(target)) : hide()));
    addEventListener("keydown", ({ key }) => key === "Escape" && hide());
    document.addEventListener("click", (event) => {
      const term = link(event.target);
      const first = touched && term && term !== shown && entries.getElementById(term.hash.slice(1));
      if (first) event.preventDefault();
      if (first) show(term);
      else if (!box.contains(event.target)) hide();
    });
  }
}
// One switch folds or opens all code of a page but that of solutions, which are folded as a whole; the browser remembers it.
document.addEventListener("DOMContentLoaded", () => {
  const inputs = [...document.querySelectorAll(".bd-article .cell_input")].filter((each) => !each.closest(".solution"));
  if (!inputs.length) return;
  const button = Object.assign(document.createElement("button"), { type: "button", className: "btn btn-sm code-switch" });
  const memory = (act, ...rest) => {
    try {
      return localStorage[act]("posembed:code", ...rest);
    } catch {
      return null;
    }
  };
  let open = true;
  const label = () => (button.textContent = open ? "Fold code" : "Open code");
  const fold = (input) => {
    const [summary, name] = ["summary", "p"].map((tag) => document.createElement(tag));
    const details = Object.assign(document.createElement("details"), { className: "hide above-input" });
    Object.assign(name, { className: "admonition-title", textContent: "The code" });
    summary.append(name);
    details.append(summary);
    input.replaceWith(details);
    details.append(input);
    return details;
  };
  const set = (now) => {
    open = now;
    for (const each of inputs) (each.closest("details.hide") ?? fold(each)).open = open;
    label();
  };
  button.addEventListener("click", () => {
    set(!open);
    memory("setItem", open ? "open" : "folded");
  });
  document.querySelector(".article-header-buttons")?.prepend(button);
  const kept = memory("getItem");
  if (kept) set(kept === "open");
  else label();
});
