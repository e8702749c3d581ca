// The page of results: sections that have all words of the query, those that have them in their title first.
"use strict";
(() => {
  const { pages, sections } = window.searchText;
  const [PAGE, ANCHOR, TITLE, TEXT, IS_NAME] = [0, 1, 2, 3, 4];
  const AT_ONCE = 30, EXCERPT = 240;
  const LATE = /^(changelog|experiments\/|source\/)/; // records of what was done, after pages to read

  const OPTION = /(?<![\w-])--[\w-]+/g, COMMANDS = "command-line.html";
  const isInner = (row) => row[IS_NAME] && row[ANCHOR].split(".").length > 2; // confide.calibrate is for everybody

  const fold = (word) => word.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const words = (text) => text.split(/[^\p{L}\p{N}_]+/u).filter(Boolean);
  // calibrate_groups is found by its whole name, and by each of its words
  const withParts = (text) => words(text).flatMap((word) => {
    const parts = word.split("_").filter(Boolean);
    return parts.length > 1 ? [word, ...parts] : [word];
  });
  const field = {
    title: (row) => row[TITLE],
    page: (row) => pages[row[PAGE]][1],
    text: (row) => row[TEXT],
  };
  const index = new MiniSearch({
    fields: ["title", "page", "text"],
    extractField: (row, name) => (name === "id" ? row.id : field[name](row)),
    tokenize: withParts,
    processTerm: fold,
    searchOptions: {
      tokenize: words,
      prefix: (word) => word.length > 1,
      boost: { title: 6, page: 2 },
      weights: { prefix: 0.4, fuzzy: 0.3 },
      combineWith: "AND",
      boostDocument: (id) => {
        const row = sections[id], late = LATE.test(pages[row[PAGE]][0]) || isInner(row);
        return (late ? 0.3 : 1) * (row[ANCHOR] === "" ? 1.5 : 1);
      },
    },
  });
  sections.forEach((row, id) => { row.id = id; });
  index.addAll(sections);

  /** What is found, best first, and in words how it was found if not all words are there. */
  function find(query) {
    const tries = [["", {}], ["Nothing has all these words; similar ones:", { fuzzy: 0.2 }],
                   ["No place has all these words; some of them:", { fuzzy: 0.2, combineWith: "OR" }]];
    for (const [note, options] of tries) {
      const found = index.search(query, options);
      if (found.length) return { note, found: ordered(found, query) };
    }
    return { note: "", found: [] };
  }

  /** First where an option stands as it was written, the page of commands before others; then whole words in the
      title, whole words in the text, and last beginnings of words. */
  function ordered(found, query) {
    const options = query.match(OPTION) || [];
    const place = (hit) => {
      const row = sections[hit.id], address = pages[row[PAGE]][0], titled = new Set(words(row[TITLE]).map(fold));
      if (options.length && options.every((option) => row[TEXT].includes(option))) return address === COMMANDS ? 0 : 1;
      if (hit.queryTerms.every((word) => titled.has(word)) && !isInner(row) && !LATE.test(address)) return 2;
      return hit.queryTerms.every((word) => hit.terms.includes(word)) ? 3 : 4;
    };
    const places = found.map(place);
    return [0, 1, 2, 3, 4].flatMap((one) => found.filter((_, i) => places[i] === one));
  }

  const pattern = (terms) => {
    const longestFirst = [...terms].sort((a, b) => b.length - a.length).join("|"); // letters, digits and _ alone
    return new RegExp(!terms.length ? "$^" : `(?<![\\p{L}\\p{N}])(?:${longestFirst})(?![\\p{L}\\p{N}])`, "giu");
  };

  /** The stretch of a text with the most of the terms in it. */
  function excerpt(text, terms) {
    const option = [...text.matchAll(OPTION)].filter((match) => asked().includes(match[0]));
    const places = (option.length ? option : [...text.matchAll(pattern(terms))]).map((match) => [match.index, fold(match[0])]);
    let best = 0, most = 0;
    for (let i = 0; i < Math.min(places.length, 400); i++) {
      const near = new Set();
      for (let j = i; j < places.length && places[j][0] < places[i][0] + EXCERPT - 60; j++) near.add(places[j][1]);
      if (near.size > most) [best, most] = [places[i][0], near.size];
    }
    let start = Math.max(0, best - 60);
    if (start) start = text.indexOf(" ", start) + 1;
    let end = Math.min(text.length, start + EXCERPT);
    if (end < text.length) end = Math.max(text.lastIndexOf(" ", end), best + 1);
    return (start ? "… " : "") + text.slice(start, end) + (end < text.length ? " …" : "");
  }

  /** A text with its found words marked, as nodes. */
  function marked(text, terms) {
    const nodes = [];
    let last = 0;
    for (const match of text.matchAll(pattern(terms))) {
      const mark = document.createElement("mark");
      mark.textContent = match[0];
      nodes.push(text.slice(last, match.index), mark);
      last = match.index + match[0].length;
    }
    return [...nodes, text.slice(last)];
  }

  function element(tag, className, ...children) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    made.append(...children);
    return made;
  }

  function shown(hit) {
    const row = sections[hit.id], [address, page] = pages[row[PAGE]];
    const link = element("a", row[IS_NAME] ? "search-name" : "", ...marked(row[TITLE], hit.terms));
    link.href = address + (row[ANCHOR] ? `#${row[ANCHOR]}` : "");
    const where = row[ANCHOR] ? [element("span", "search-page", page)] : [];
    const named = row[IS_NAME] && words(row[TITLE]).some((word) => hit.terms.includes(fold(word)));
    const text = named ? excerpt(row[TEXT], []) : excerpt(row[TEXT], hit.terms); // a name's text begins with what it does
    return element("li", "", link, ...where, element("p", "", ...marked(text, hit.terms)));
  }

  const asked = () => input.value.match(OPTION) || [];

  const status = document.getElementById("search-status");
  const results = document.getElementById("search-results");
  const more = document.getElementById("search-more");
  const input = document.querySelector(".bd-search-container input[name=q]");

  function show(query) {
    const { note, found } = query.trim() ? find(query) : { note: "", found: [] };
    const next = (from) => {
      results.append(...found.slice(from, from + AT_ONCE).map(shown));
      more.hidden = found.length <= from + AT_ONCE;
      more.onclick = () => next(from + AT_ONCE);
    };
    results.replaceChildren();
    next(0);
    const count = found.length === 1 ? "one place" : `${found.length} places`;
    status.textContent = !query.trim() ? "" : found.length ? (note || `${count} for “${query.trim()}”`) : `Nothing is found for “${query.trim()}”.`;
    document.title = document.title.replace(/^.*? - /, query.trim() ? `${query.trim()} - ` : "Search - ");
  }

  let waiting;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      history.replaceState(null, "", `?q=${encodeURIComponent(input.value)}`);
      show(input.value);
    }, 120);
  });
  input.form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(waiting);
    history.replaceState(null, "", `?q=${encodeURIComponent(input.value)}`);
    show(input.value);
  });
  const query = new URLSearchParams(location.search).get("q") || "";
  document.querySelectorAll("input[name=q]").forEach((one) => { one.value = query; });
  input.focus();
  show(query);
})();
