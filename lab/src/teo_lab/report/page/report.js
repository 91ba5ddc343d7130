// The explorer: filters the rows that the page carries. Everything is set as text, never as markup.
"use strict";
(() => {
  const data = document.getElementById("predictions");
  if (!data) return;
  const PAGE = 50;
  const systems = JSON.parse(data.textContent);
  const field = (id) => document.getElementById(id);
  const form = field("filters");
  let found = [];
  let shown = 0;

  systems.forEach((system, place) => field("system").append(new Option(system.name, place)));

  const make = (tag, text, name) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (name) element.className = name;
    return element;
  };

  const within = (value, low, high) => {
    const from = field(low).value;
    const to = field(high).value;
    if (from === "" && to === "") return true;
    return value !== undefined && (from === "" || value >= Number(from)) && (to === "" || value <= Number(to));
  };

  const textOf = (row) => {
    const changes = (row.changes || []).map((change) => change[1]).join("");
    return [row.id, changes, row.utterance, row.reference, ...(row.history || [])].join("\n").toLowerCase();
  };

  const matches = (row, words) =>
    (field("right").value === "" || String(row.right) === field("right").value) &&
    (field("stage1").value === "" || String(row.stage1) === field("stage1").value) &&
    (field("kind").value === "" || row.kind === field("kind").value) &&
    within(row.length, "shortest", "longest") &&
    within(row.confidence, "least", "most") &&
    (words === "" || textOf(row).includes(words));

  const rewriteOf = (row) => {
    const line = make("p", undefined, "rewrite");
    for (const [change, text] of row.changes) {
      line.append(change === "keep" ? text : make(change === "gone" ? "del" : "ins", text));
    }
    return line;
  };

  const show = (row) => {
    const article = make("article", undefined, "case");
    const head = make("p", undefined, "facts");
    head.append(make("b", row.right ? "✓ right" : "✗ wrong", row.right ? "right" : "wrong"));
    const facts = [row.id];
    if (row.stage1 !== undefined) facts.push(`operations ${row.stage1 ? "right" : "wrong"}`);
    if (row.kind) facts.push(`needs ${row.kind.replace("_", " ").replace("complete", "nothing")}`);
    if (row.length !== undefined) facts.push(`length ${row.length}`);
    if (row.confidence !== undefined) facts.push(`confidence ${row.confidence.toFixed(2)}`);
    head.append(` ${facts.join(" · ")}`);
    article.append(head);
    if (row.history) {
      const turns = make("ol");
      row.history.forEach((turn) => turns.append(make("li", turn)));
      article.append(turns);
    }
    if (row.changes) article.append(rewriteOf(row));
    else if (row.utterance) article.append(make("p", `${row.utterance} (its rewrite is not stored)`, "rewrite"));
    if (row.reference && !row.right) article.append(make("p", `reference: ${row.reference}`, "soft"));
    if (row.operations) article.append(make("p", `operations: ${row.operations}`, "soft"));
    return article;
  };

  const more = () => {
    field("rows").append(...found.slice(shown, shown + PAGE).map(show));
    shown = Math.min(shown + PAGE, found.length);
    field("more").hidden = shown >= found.length;
  };

  const filter = () => {
    const rows = systems[Number(field("system").value)].rows;
    const words = field("words").value.trim().toLowerCase();
    found = rows.filter((row) => matches(row, words));
    const right = found.filter((row) => row.right).length;
    const share = found.length ? `, ${((100 * right) / found.length).toFixed(1)}% right` : "";
    field("count").textContent = `${found.length} of ${rows.length} rows${share}`;
    field("rows").replaceChildren();
    shown = 0;
    more();
  };

  // What no row has cannot be asked for.
  for (const name of ["stage1", "kind"]) {
    field(name).disabled = !systems.some((system) => system.rows.some((row) => row[name] !== undefined));
  }
  for (const id of ["shortest", "longest"]) {
    field(id).disabled = !systems.some((system) => system.rows.some((row) => row.length !== undefined));
  }
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));
  field("more").addEventListener("click", more);
  filter();
})();
