// A record as elements. Users' text only ever goes through textContent: it cannot become markup.
import { say } from "./i18n.js";

/** An element with a class and a text. */
export function make(tag, className = "", text = "") {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) element.textContent = text;
  return element;
}

/** The rewrite as nodes: kept text, and one focusable element for each edit. Offsets count code points. */
export function renderEdits(utterance, edits) {
  const signs = Array.from(utterance);
  const nodes = [];
  let reached = 0;
  edits.forEach((edit, index) => {
    if (edit.start > reached) nodes.push(document.createTextNode(signs.slice(reached, edit.start).join("")));
    const element = make("span", `edit ${edit.op}`);
    element.tabIndex = 0;
    element.dataset.edit = String(index);
    element.setAttribute("role", "note");
    if (edit.old) element.append(make("del", "", edit.old));
    // White space at the ends is part of the edit, but not worth a colour.
    const [, before, text, after] = /^(\s*)([^]*?)(\s*)$/.exec(edit.new);
    element.append(before, ...(text ? [make("ins", "", text)] : []), after);
    nodes.push(element);
    reached = edit.end;
  });
  nodes.push(document.createTextNode(signs.slice(reached).join("")));
  return nodes;
}

/** The latest turn of the history that says a text, or -1. */
export function sourceTurn(history, text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return -1;
  const whole = history.findLastIndex((turn) => turn.toLowerCase().includes(wanted));
  if (whole >= 0 || !/\s/.test(wanted)) return whole;
  const longest = wanted.split(/\s+/).sort((one, other) => other.length - one.length)[0];
  return longest.length > 3 ? history.findLastIndex((turn) => turn.toLowerCase().includes(longest)) : -1;
}

/** Why an edit is there, in a sentence or two; `numbers` are those of the turns, since blank ones are not sent. */
export function explain(edit, history, numbers) {
  const key = { insert: "insertTip", replace: "replaceTip", delete: "deleteTip" }[edit.op];
  const what = say(key, { old: edit.old.trim(), text: edit.new.trim() });
  const turn = sourceTurn(history, edit.new);
  return turn >= 0 ? `${what}\n${say("fromTurn", { number: numbers[turn] })}` : what;
}

/** The paper's notation as nodes: `[I] text` and `[D] old [R] new`, markers that a user wrote left as text. */
export function renderOperations(operations) {
  const pieces = operations.split(/(?<![\\])(\[[IDR]\])/);
  const nodes = [];
  let current = null;
  let marker = "";
  for (const piece of pieces) {
    if (/^\[[IDR]\]$/.test(piece)) {
      marker = piece;
      if (marker !== "[R]" || current === null) {
        current = make("span", marker === "[I]" ? "operation insert" : "operation replace");
        nodes.push(current);
      }
      current.append(make("b", "", piece));
    } else if (piece.trim()) {
      if (current === null) nodes.push((current = make("span", "operation")));
      current.append(" ", make("span", marker === "[D]" ? "old" : "new", piece.trim().replace(/\\(?=\\*\[)/g, "")), " ");
    }
  }
  return nodes;
}
