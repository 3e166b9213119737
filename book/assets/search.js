// Sphinx's search, for this book. Chapters and schemes come before what only names them.
Scorer.score = ([page, , , , score]) => {
  if (page.startsWith("schemes/")) return score + 6;
  if (/^(evidence|teach)\//.test(page)) return score;
  if (page.includes("/")) return score + 4;
  return /^(api|alternatives|benchmarks|conformance|errata|bibliography)/.test(page) ? score - 6 : score;
};
// The sections that have all words of a query, at most three of a page: book/_ext/search_sections.py has counted them.
// A word weighs by how rare it is and how often it stands there for the section's length, most in its names (BM25).
Search.inSections = (terms) => {
  const [sections, words] = Search.sections;
  const mean = sections.reduce((sum, each) => sum + each.at(-1), 0) / sections.length;
  const titles = new Map(Search._index.docnames.map((page, k) => [page, Search._index.titles[k]]));
  const stemmer = new Stemmer();
  const stems = (text) => splitQuery(text.toLowerCase()).map((word) => stemmer.stemWord(word));
  const scores = terms.map((term) => {
    const [found, places] = [new Map(), Object.hasOwn(words, term) ? words[term] : []];
    const rarity = Math.log(1 + (2 * sections.length) / places.length);
    for (let k = 0; k < places.length; k += 2) {
      const [page, anchor, title, names, length] = sections[places[k]];
      const count = places[k + 1] / (places[k + 1] + 0.3 + (0.9 * length) / mean);
      const named = stems(title).includes(term) + 2 * names.split(" ").includes(term);
      const onPage = anchor !== "" && stems(titles.get(page)).includes(term);
      found.set(places[k], rarity * (count + named + onPage / 2));
    }
    return found;
  });
  const total = (k) => scores.reduce((sum, each) => sum + (each.get(k) ?? NaN), 0);
  const aside = /^#(exercises|sources|tests-that-hold-it|in-code)$/;
  const left = {};
  return [...(scores[0]?.keys() ?? [])]
    .map((k) => [k, total(k) * (aside.test(sections[k][1]) ? 0.5 : 1)])
    .filter(([, score]) => score > 0)
    .sort((a, b) => b[1] - a[1])
    .filter(([k]) => (left[sections[k][0]] = (left[sections[k][0]] ?? 3) - 1) >= 0)
    .map(([k, score], _, [[, best]]) => {
      const [page, anchor, title] = sections[k];
      const name = anchor ? `${titles.get(page)} > ${title}` : titles.get(page);
      const file = Search._index.filenames[Search._index.docnames.indexOf(page)];
      return [page, name, anchor, null, (20 * score) / best, file];
    });
};
// Where a page has none, the page, as Sphinx finds it.
const inPages = Search.performTermsSearch;
Search.performTermsSearch = (terms, excluded) => {
  const found = excluded.size ? [] : Search.inSections([...terms]);
  const pages = new Set(found.map(([page]) => page));
  return [...found, ...inPages(terms, excluded).filter(([page]) => !pages.has(page))];
};
// What it quotes of a page is its prose, without the bars around it.
Search.htmlToText = (html, anchor) => {
  const article = new DOMParser().parseFromString(html, "text/html").querySelector("article.bd-article");
  for (const node of article?.querySelectorAll(".headerlink, script, style, .cell, h1") ?? []) node.remove();
  return ((anchor && article?.querySelector(`[id="${anchor.slice(1)}"]`)) || article)?.textContent ?? "";
};
// Its first and last word are whole ones.
const summary = Search.makeSearchSummary;
Search.makeSearchSummary = (...given) => {
  const quote = summary(...given);
  if (quote) quote.textContent = quote.textContent.replace(/^\.\.\.\S*\s/, "...").replace(/\s\S*\.\.\.$/, "...");
  return quote;
};
