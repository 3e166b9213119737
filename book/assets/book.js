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
// The theme looks for code that scrolls, to give it a tab stop, when the window changes its size; what was folded has
// none until it is looked at again.
document.addEventListener("toggle", () => dispatchEvent(new Event("resize")), { capture: true });
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
