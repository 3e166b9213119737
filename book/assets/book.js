// On a phone the contents lie over the text: following one of their links puts them away.
document.addEventListener("click", (event) => {
  if (!event.target.closest(".bd-sidebar-primary a, .bd-sidebar-secondary a")) return;
  for (const drawer of document.querySelectorAll("input.sidebar-toggle")) drawer.checked = false;
});
