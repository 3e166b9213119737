// Quick questions that answer. Without this script, and on paper, every option opens to its explanation. With it the
// option that a reader opens first counts, each opened one shows whether it is right, and the browser remembers the
// first choices. What is added here is drawn on screens only: see book.css.
(() => {
  const page = DOCUMENTATION_OPTIONS.pagename;

  // A browser may refuse to remember; then answers last as long as the page.
  let remembers = true;
  const memory = (act, ...rest) => {
    try {
      return localStorage[act](...rest);
    } catch {
      remembers = false;
      return null;
    }
  };

  // Which pages have been read to their last section, for the list of chapters.
  const ending = [...document.querySelectorAll("main section > h2")].pop();
  const reached = new IntersectionObserver((seen) => {
    if (!seen.some((each) => each.isIntersecting)) return;
    memory("setItem", `posembed:read:${page}`, "yes");
    reached.disconnect();
  });
  if (ending) reached.observe(ending);

  const make = (tag, className, ...content) => {
    const node = Object.assign(document.createElement(tag), { className });
    node.append(...content);
    return node;
  };
  // A short form of what is asked: a question that has changed is another one, whose old answer is forgotten.
  const fingerprint = (box) => {
    const text = [...box.children].map((node) => (node.querySelector("summary") || node).textContent).join(" ");
    return [...text.replace(/\s+/g, " ")].reduce((sum, sign) => (Math.imul(sum, 31) + sign.codePointAt(0)) | 0, 7);
  };
  // The explanation of a right option begins with that word, and no other does: a test holds the chapters to it.
  const isRight = (node) => /^Right[.,:]/.test(node.children[1].textContent.trim());
  const verdict = ({ right }) => (right ? "Right" : "Not quite");

  const questions = [...document.querySelectorAll(".quick-question")].map((box) => ({
    box,
    key: fingerprint(box),
    options: [...box.querySelectorAll("details")].map((node) => ({ node, right: isRight(node) })),
    first: null,
  }));
  if (!questions.length) return;
  const place = `posembed:questions:${page}`;
  try {
    const kept = JSON.parse(memory("getItem", place)) || {};
    for (const question of questions) question.first = question.options[kept[question.key]] || null;
  } catch {
    // It is no list of answers: the next answer writes over it.
  }

  const total = make("p", "chapter-score-total");
  const marks = make("p", "chapter-score-marks");
  const note = make("p", "chapter-score-note");
  const forget = make("button", "forget-answers", "Forget my answers");
  // The one place that a screen reader speaks from.
  const spoken = make("p", "visually-hidden");
  spoken.setAttribute("role", "status");
  total.tabIndex = -1;
  forget.type = "button";

  const show = () => {
    const answered = questions.filter((each) => each.first);
    const right = `${answered.filter((each) => each.first.right).length} right at the first choice`;
    const score = `${answered.length} of ${questions.length} questions answered, ${right}.`;
    questions.forEach(({ box, options, first, line, mark }, n) => {
      box.classList.toggle("is-answered", first !== null);
      line.textContent = first ? score : "";
      for (const option of options) option.node.classList.toggle("is-first", option === first);
      if (first) first.node.classList.add("is-seen");
      mark.className = first ? (first.right ? "is-right" : "is-wrong") : "is-open";
      mark.setAttribute("aria-label", `Question ${n + 1}: ${first ? verdict(first).toLowerCase() : "not answered"}`);
    });
    const some = `${answered.length} of ${questions.length} answered, ${right}.`;
    total.textContent = `Quick questions: ${answered.length ? some : `none of ${questions.length} answered yet.`}`;
    note.textContent = `Your answers are kept ${remembers ? "in this browser only" : "until you leave this page"}.`;
    note.hidden = forget.hidden = !answered.length;
    return score;
  };
  const choose = (question, option) => {
    question.first = option;
    const choices = questions.filter((each) => each.first).map((each) => [each.key, each.options.indexOf(each.first)]);
    memory("setItem", place, JSON.stringify(Object.fromEntries(choices)));
    return show();
  };

  questions.forEach((question, n) => {
    const { box, options } = question;
    box.id = `question-${n + 1}`;
    box.classList.add("is-asked");
    box.append((question.line = make("p", "question-score")));
    marks.append((question.mark = Object.assign(make("a", "", `${n + 1}`), { href: `#${box.id}` })));
    for (const option of options) {
      const summary = option.node.querySelector("summary");
      option.node.classList.add(option.right ? "is-right" : "is-wrong");
      summary.append("\u2002", make("span", "verdict", verdict(option)));
      // A key and a finger make a click too. What a search in the page has opened is no choice.
      summary.addEventListener("click", (event) => {
        const counts = !question.first;
        if (option.node.open && !counts) return;
        if (option.node.open) event.preventDefault();
        option.node.classList.add("is-seen");
        spoken.replaceChildren(`${verdict(option)}. ${counts ? choose(question, option) : ""}`);
      });
    }
  });
  forget.addEventListener("click", () => {
    memory("removeItem", place);
    for (const question of questions) {
      question.first = null;
      for (const { node } of question.options) {
        node.classList.remove("is-seen");
        node.open = false;
      }
    }
    show();
    total.focus();
    spoken.replaceChildren("Your answers are forgotten.");
  });
  const end = document.getElementById("what-to-remember") || questions[questions.length - 1].box.parentNode;
  end.append(make("div", "chapter-score", total, marks, note, forget));
  // Outside of the text, which it is no part of.
  document.querySelector("main").append(spoken);
  show();
})();
