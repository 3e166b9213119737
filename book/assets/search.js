// Sphinx's search, for this book. Chapters and schemes come before what only names them.
Scorer.score = ([page, , , , score]) => {
  if (page.startsWith("schemes/")) return score + 6;
  if (page.includes("/")) return score + 4;
  return /^(api|alternatives|benchmarks|conformance|errata|bibliography)/.test(page) ? score - 6 : score;
};
// What it quotes of a page is its prose, without the bars around it.
Search.htmlToText = (html, anchor) => {
  const article = new DOMParser().parseFromString(html, "text/html").querySelector("article.bd-article");
  for (const node of article?.querySelectorAll(".headerlink, script, style, .cell, h1") ?? []) node.remove();
  return ((anchor && article?.querySelector(anchor)) || article)?.textContent ?? "";
};
// Its first and last word are whole ones.
const summary = Search.makeSearchSummary;
Search.makeSearchSummary = (...given) => {
  const quote = summary(...given);
  if (quote) quote.textContent = quote.textContent.replace(/^\.\.\.\S*\s/, "...").replace(/\s\S*\.\.\.$/, "...");
  return quote;
};
