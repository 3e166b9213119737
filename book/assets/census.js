// Filters the table of the census by a type's name, a check and its verdict. Without this script the table is whole.
(() => {
  const table = document.querySelector("table.census");
  const rows = [...table.tBodies[0].rows];
  const make = (tag, settings, ...content) => {
    const node = Object.assign(document.createElement(tag), settings);
    node.append(...content);
    return node;
  };
  const select = (texts) => make("select", {}, ...texts.map((text) => make("option", {}, text)));
  const name = make("input", { type: "search" });
  const check = select(["any check", ...table.dataset.checks.split("|")]);
  const verdict = select(["any verdict", "holds", "broken", "not decided", "does not apply"]);
  const count = make("output", {});
  const letter = { holds: "h", broken: "b", "not decided": "n", "does not apply": "-" };

  const filter = () => {
    const place = check.selectedIndex - 1;
    const wanted = letter[verdict.value];
    const fits = (row) => {
      const found = row.dataset.verdicts;
      const seen = place < 0 ? found : found[place];
      return row.cells[0].textContent.includes(name.value.trim().toLowerCase()) && (!wanted || seen.includes(wanted));
    };
    for (const row of rows) row.hidden = !fits(row);
    count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
  };
  const controls = [["Type", name], ["Check", check], ["Verdict", verdict]];
  const form = make("form", { className: "census-filter" }, ...controls.map((each) => make("label", {}, ...each)), count);
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  table.before(form);
  filter();
})();
