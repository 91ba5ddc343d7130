// The page of a rater: a name, then one item after the other. It knows first and second, never whose rewrite is which.
import { say, translate } from "./words.js";

const $ = (id) => document.getElementById(id);
const KEYS = { 1: "first", 2: "second", 0: "tie", 3: "tie" };
const NAME = "teo-judge-name";
let rater = null;
let shown = null;
let busy = false;

async function call(method, path, body) {
  const options = { method, headers: { "Content-Type": "application/json" }, body: body && JSON.stringify(body) };
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error(say("unreachable"));
  }
  const record = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(typeof record.detail === "string" ? record.detail : say("failed"));
  return record;
}

// One thing at a time: a key pressed while a vote is on its way must not be a vote for an item not yet seen.
async function alone(work) {
  if (busy) return;
  busy = true;
  $("alert").hidden = true;
  try {
    await work();
  } catch (error) {
    $("alert").textContent = error.message;
    $("alert").hidden = false;
  } finally {
    busy = false;
  }
}

function display(section) {
  for (const id of ["start", "item", "end"]) $(id).hidden = id !== section;
}

function showProgress({ done, total }) {
  $("progress").textContent = say("progress", { done, total });
}

async function open(number) {
  const item = await call("GET", `/api/raters/${rater}/items/${number}`);
  shown = item;
  $("history").replaceChildren(...item.history.map((turn) => {
    const line = document.createElement("li");
    line.className = "text";
    line.textContent = turn;
    return line;
  }));
  $("utterance").textContent = item.utterance;
  for (const side of ["first", "second"]) $(side).querySelector(".text").textContent = item[side];
  for (const side of ["first", "second", "tie"]) $(side).setAttribute("aria-pressed", String(item.vote === side));
  $("back").disabled = item.number === 1;
  $("item").dataset.number = item.number;
  document.activeElement?.blur(); // so that Enter does not vote again for what had the focus
  showProgress(item);
  display("item");
  window.scrollTo(0, 0);
}

async function proceed(progress) {
  if (progress.next !== null) return open(progress.next);
  shown = null;
  showProgress(progress);
  $("review").dataset.number = progress.total;
  display("end");
}

function vote(choice) {
  if (shown === null) return;
  alone(async () => proceed(await call("PUT", `/api/raters/${rater}/items/${shown.number}`, { choice })));
}

function join(name) {
  return alone(async () => {
    const progress = await call("PUT", "/api/raters", { name });
    rater = progress.rater;
    sessionStorage.setItem(NAME, name);
    await proceed(progress);
  });
}

function goBack() {
  if (shown !== null && shown.number > 1) alone(() => open(shown.number - 1));
}

document.addEventListener("keydown", (event) => {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || $("item").hidden) return;
  if (event.key in KEYS) vote(KEYS[event.key]);
  else if (event.key === "Backspace") goBack();
  else return;
  event.preventDefault();
});
for (const side of ["first", "second", "tie"]) $(side).addEventListener("click", () => vote(side));
$("back").addEventListener("click", goBack);
$("review").addEventListener("click", () => alone(() => open(Number($("review").dataset.number))));
$("start").addEventListener("submit", (event) => {
  event.preventDefault();
  join($("name").value);
});

translate();
const known = sessionStorage.getItem(NAME);
if (known) await join(known);
if (rater === null) {
  display("start");
  $("name").focus();
}
