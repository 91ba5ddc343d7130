// The answer: the rewrite with its edits, why it is so, how sure the model is, and what else it found.
import { explain, make, renderEdits, renderOperations } from "./edits.js";
import { say } from "./i18n.js";

const find = (id) => document.getElementById(id);
const KEPT = {
  complete: "keptComplete", unsure: "keptUnsure", "no-history": "keptNoHistory", empty: "keptEmpty",
  reaction: "keptReaction", code: "keptCode", "too-long": "keptTooLong", "keep-list": "keptKeepList",
  runaway: "keptRunaway",
};

/** What is shown of an answer: the record's own rewrite, or the alternative that was chosen; null: none was. */
export function shown({ record, chosen }) {
  const alternative = chosen === null ? null : record.alternatives[chosen];
  if (!alternative || alternative.rewrite === record.rewrite) return record;
  return { ...record, ...alternative, changed: alternative.edits.length > 0, reason: null };
}

/** Why the text is as it is, in a sentence. */
export function verdict(answer) {
  const { record, chosen, anyway } = answer;
  if (shown(answer) !== record) return say("chosen", { number: chosen + 1, count: record.alternatives.length });
  if (record.reason === "unsure" && !record.operations) return say("keptUnsureComplete");
  if (!record.changed) return say(KEPT[record.reason] ?? "kept");
  if (anyway) return say("changedAnyway");
  return record.edits.length === 1 ? say("changedOne") : say("changed", { count: record.edits.length });
}

/** Show an answer; `threshold` is the least confidence of a change, `choose` is told which one is wanted. */
export function renderAnswer(answer, threshold, choose) {
  const record = shown(answer);
  const { sent, numbers, milliseconds, timing } = answer;
  find("text").replaceChildren(...renderEdits(sent.utterance, record.edits));
  find("text").dir = "auto";
  find("text").querySelectorAll(".edit").forEach((element) => {
    const edit = record.edits[Number(element.dataset.edit)];
    element.setAttribute("aria-label", explain(edit, sent.history, numbers));
  });
  find("legend").hidden = !record.changed;
  find("anyway").hidden = record.reason !== "unsure" || !record.operations;
  renderProposal(record);
  renderConfidence(record, threshold);
  find("latency").textContent = `${milliseconds.toFixed(milliseconds < 10 ? 1 : 0)} ms`;
  const parts = Object.fromEntries(
    [...timing.matchAll(/(\w+);dur=([\d.]+)/g)].map(([, name, value]) => [name, Number(value).toFixed(1)]),
  );
  find("latency-parts").textContent = "model" in parts ? say("latencyParts", parts) : "";
  find("truncated-row").hidden = record.truncated.characters === 0;
  find("truncated").textContent = say(record.truncated.turns ? "truncatedTurns" : "truncatedPart", record.truncated);
  renderAlternatives(answer, choose);
  find("verdict").textContent = verdict(answer);
  find("announce").textContent = `${record.rewrite} — ${verdict(answer)}`;
}

function renderProposal(record) {
  const operations = renderOperations(record.operations);
  find("operations-row").hidden = operations.length === 0 && record.reason !== "complete";
  find("operations").replaceChildren(...(operations.length ? operations : [make("span", "hint", say("noOperations"))]));
}

/** The key of the sentence that says what a confidence is of. */
function confidenceKey({ changed, reason, operations }) {
  if (changed) return "confidenceChanged";
  if (reason === "unsure" && operations) return "confidenceUnsure";
  return reason === "complete" || reason === "unsure" ? "confidenceComplete" : "confidenceUnchanged";
}

function renderConfidence(record, threshold) {
  const { confidence, changed } = record;
  const asked = typeof confidence === "number";
  find("confidence").hidden = !asked;
  find("confidence-value").textContent = asked ? confidence.toFixed(2) : say("notAsked");
  find("threshold-used").textContent =
    asked && threshold !== undefined ? say(confidenceKey(record), { value: threshold.toFixed(2) }) : "";
  if (!asked) return;
  find("confidence").setAttribute("aria-valuenow", confidence.toFixed(2));
  find("confidence").classList.toggle("sure", changed && confidence >= (threshold ?? 0));
  find("confidence-fill").style.width = `${100 * confidence}%`;
}

function renderAlternatives(answer, choose) {
  const { record, sent, oneOnly } = answer;
  const listed = record.alternatives ?? []; // the most confident first, the unchanged utterance among them
  const several = listed.length > 1;
  find("others").hidden = typeof record.confidence !== "number";
  find("more").hidden = oneOnly || listed.length > 0;
  find("others-name").hidden = !several;
  find("alternatives").hidden = !several;
  find("others-note").textContent = oneOnly ? say("oneOnly") : several ? say("choose") : listed.length ? say("noOthers") : "";
  const rows = listed.map((alternative, index) => {
    const button = make("button", "alternative");
    button.type = "button";
    button.setAttribute("aria-pressed", String(alternative.rewrite === shown(answer).rewrite));
    const text = make("span", "text", alternative.rewrite);
    text.dir = "auto";
    if (alternative.rewrite === sent.utterance) text.append(make("span", "hint same", say("asItIs")));
    button.append(text, make("span", "hint", alternative.confidence?.toFixed(2) ?? ""));
    button.addEventListener("click", () => choose(index));
    const item = make("li");
    item.append(button);
    return item;
  });
  find("alternatives").replaceChildren(...(several ? rows : []));
}
