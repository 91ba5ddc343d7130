// Why an edit is there: a tip on hover and on focus, and a mark on the turn that says it.
import { explain, sourceTurn } from "./edits.js";

const tip = document.getElementById("tip");

function show(element, { record, sent, numbers }) {
  const edit = record.edits[Number(element.dataset.edit)];
  tip.textContent = explain(edit, sent.history, numbers);
  tip.hidden = false;
  const boxes = element.getClientRects();
  const box = boxes[boxes.length - 1];
  const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
  tip.style.left = `${Math.max(8, Math.min(box.left, room)) + scrollX}px`;
  tip.style.top = `${box.bottom + scrollY + 8}px`;
  const number = numbers[sourceTurn(sent.history, edit.new)];
  document.querySelectorAll(".turn:not(.last)")[number - 1]?.classList.add("source");
}

/** Take the tip away. */
export function hideTip() {
  tip.hidden = true;
  document.querySelectorAll(".turn.source").forEach((turn) => turn.classList.remove("source"));
}

/** Explain the edits inside an element; `answer` gives what is shown. */
export function explainEdits(text, answer) {
  const on = (event, action) =>
    text.addEventListener(event, (happened) => {
      const element = happened.target.closest(".edit");
      if (element) action(element);
    });
  for (const event of ["pointerover", "focusin"]) on(event, (element) => (hideTip(), show(element, answer())));
  for (const event of ["pointerout", "focusout"]) on(event, hideTip);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hideTip();
  });
}
