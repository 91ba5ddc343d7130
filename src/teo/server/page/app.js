// The page: a dialogue in, one request, the record out. It keeps nothing but the choice of language and theme.
import { copy } from "./copying.js";
import { explain, make, renderEdits, renderOperations } from "./edits.js";
import { getLanguage, say, setLanguage } from "./i18n.js";
import { SAMPLES } from "./samples.js";
import { snippet } from "./snippets.js";
import { explainEdits, hideTip } from "./tips.js";

const find = (id) => document.getElementById(id);
const state = {
  turns: ["", ""], sample: "", form: "curl", request: null, answer: null, failure: null, health: null,
};

// ---- what is remembered, where the browser lets us ----

function recall(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function remember(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // A browser that stores nothing still works.
  }
}

// ---- the dialogue ----

function turnElement(text, index) {
  const last = index === state.turns.length - 1;
  const item = make("li", last ? "turn last" : "turn");
  const area = make("textarea");
  area.id = `turn-${index}`;
  area.rows = 1;
  area.value = text;
  area.dir = "auto";
  const name = last ? say("utterance") : say("turn", { number: index + 1 });
  area.setAttribute("aria-label", name);
  area.placeholder = name;
  area.addEventListener("input", () => {
    state.turns[index] = area.value;
    fit(area);
    state.sample = "";
    renderSamples();
    dialogueChanged();
  });
  if (last) item.append(make("span", "label", say("utterance")));
  const badge = make("span", "badge", index % 2 ? "B" : "A");
  badge.setAttribute("aria-hidden", "true");
  item.append(badge, area);
  if (!last) {
    const remove = make("button", "remove", "✕");
    remove.type = "button";
    remove.setAttribute("aria-label", say("removeTurn", { number: index + 1 }));
    remove.addEventListener("click", () => {
      state.turns.splice(index, 1);
      renderTurns();
      dialogueChanged();
      find(`turn-${Math.min(index, state.turns.length - 1)}`).focus();
    });
    item.append(remove);
  }
  return item;
}

function fit(area) {
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight + 2}px`;
}

function renderTurns() {
  find("turns").replaceChildren(...state.turns.map(turnElement));
  find("turns").querySelectorAll("textarea").forEach(fit);
}

function renderSamples() {
  const own = (sample) => sample.lang === getLanguage();
  const sampleButton = (sample) => {
    const button = make("button", "", sample.title);
    button.type = "button";
    button.lang = sample.lang === "zh" ? "zh-CN" : "en";
    button.dataset.sample = sample.id;
    button.setAttribute("aria-pressed", String(state.sample === sample.id));
    button.addEventListener("click", () => {
      state.turns = [...sample.turns];
      state.sample = sample.id;
      renderTurns();
      renderSamples();
      find("samples").querySelector(`[data-sample="${sample.id}"]`).focus();
      dialogueChanged();
      send();
    });
    return button;
  };
  const others = SAMPLES.filter((sample) => !own(sample));
  find("samples").replaceChildren(
    ...SAMPLES.filter(own).map(sampleButton), make("span", "break"), ...others.map(sampleButton),
  );
}

function body() {
  const filled = { history: state.turns.slice(0, -1).filter((turn) => turn.trim()), utterance: state.turns.at(-1) };
  if (!find("own-threshold").checked) filled.min_confidence = Number(find("threshold").value);
  return filled;
}

function dialogueChanged() {
  renderSnippet();
  const stale = state.answer !== null && JSON.stringify(body()) !== state.answer.asked;
  find("text").classList.toggle("stale", stale);
  if (state.answer) find("verdict").textContent = stale ? say("stale") : verdict(state.answer.record);
}

// ---- the request ----

async function send() {
  state.request?.abort();
  const request = (state.request = new AbortController());
  const asked = body();
  const headers = { "Content-Type": "application/json" };
  if (find("token").value) headers.Authorization = `Bearer ${find("token").value}`;
  find("busy").textContent = say("working");
  const started = performance.now();
  try {
    const response = await fetch("/v1/rewrite", {
      method: "POST", headers, body: JSON.stringify(asked), signal: request.signal,
    });
    const milliseconds = performance.now() - started;
    const record = await response.json().catch(() => null);
    if (request.signal.aborted) return;
    if (response.ok && typeof record?.rewrite === "string") {
      const timing = response.headers.get("Server-Timing") ?? "";
      show({ record, sent: asked, asked: JSON.stringify(asked), milliseconds, timing });
    } else {
      fail(response.status, record);
    }
  } catch (error) {
    if (!request.signal.aborted) fail(0, null);
  } finally {
    if (state.request === request) find("busy").textContent = "";
  }
}

function show(answer) {
  state.answer = answer;
  state.failure = null;
  renderResult();
  dialogueChanged();
}

function fail(status, problem) {
  state.answer = null;
  state.failure = { status, problem };
  if (status === 401) {
    find("token-row").hidden = false;
    find("token").focus();
  }
  renderResult();
}

// ---- the answer ----

function verdict(record) {
  if (!record.changed) return say(record.operations ? "abstained" : "kept");
  return record.edits.length === 1 ? say("changedOne") : say("changed", { count: record.edits.length });
}

function renderResult() {
  hideTip();
  find("error").hidden = state.failure === null;
  find("answer").hidden = state.answer === null;
  find("copy-rewrite").hidden = state.answer === null;
  find("empty").hidden = state.answer !== null || state.failure !== null;
  if (state.failure) renderFailure(state.failure);
  if (state.answer) renderAnswer(state.answer);
}

function renderFailure({ status, problem }) {
  const known = typeof problem?.detail === "string";
  const text = status === 0 ? say("unreachable") : known ? problem.detail : say("badAnswer", { status });
  const box = find("error");
  box.replaceChildren(make("span", "", text));
  if (problem?.request_id) box.append(make("span", "hint", say("requestId", { id: problem.request_id })));
  find("announce").textContent = "";
}

function renderAnswer({ record, sent, milliseconds, timing }) {
  find("text").replaceChildren(...renderEdits(sent.utterance, record.edits));
  find("text").dir = "auto";
  find("text").querySelectorAll(".edit").forEach((element) => {
    const edit = record.edits[Number(element.dataset.edit)];
    element.setAttribute("aria-label", explain(edit, sent.history));
  });
  find("legend").hidden = !record.changed;
  const operations = renderOperations(record.operations);
  find("operations").replaceChildren(...(operations.length ? operations : [make("span", "hint", say("noOperations"))]));
  find("confidence").value = record.confidence;
  find("confidence-value").textContent = record.confidence.toFixed(2);
  const threshold = sent.min_confidence ?? ownThreshold([...sent.history, sent.utterance]);
  find("threshold-used").textContent = threshold === undefined ? "" : say("thresholdUsed", { value: threshold.toFixed(2) });
  find("latency").textContent = `${milliseconds.toFixed(milliseconds < 10 ? 1 : 0)} ms`;
  const parts = Object.fromEntries([...timing.matchAll(/(\w+);dur=([\d.]+)/g)].map(([, name, value]) => [name, Number(value).toFixed(1)]));
  find("latency-parts").textContent = "model" in parts ? say("latencyParts", parts) : "";
  find("truncated-row").hidden = record.truncated.characters === 0;
  find("truncated").textContent = say("truncatedText", record.truncated);
  find("verdict").textContent = verdict(record);
  find("announce").textContent = `${record.rewrite} — ${verdict(record)}`;
}

// ---- copying ----

function renderSnippet() {
  find("snippet-text").textContent = snippet(state.form, body(), Boolean(find("token").value));
}

function chooseForm(tab) {
  state.form = tab.dataset.form;
  for (const other of find("tabs").children) {
    other.setAttribute("aria-selected", String(other === tab));
    other.tabIndex = other === tab ? 0 : -1;
  }
  find("snippet").setAttribute("aria-labelledby", tab.id);
  renderSnippet();
}

// ---- the rest of the page ----

const CJK = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u;

function ownThreshold(turns) {
  if (!state.health) return undefined;
  return state.health.thresholds[turns.some((turn) => CJK.test(turn)) ? "zh" : "en"] ?? state.health.threshold;
}

function renderServed() {
  if (!state.health) return;
  find("served").textContent = say("served", state.health);
  const named = Object.entries(state.health.thresholds).map(([language, value]) => `${language} ${value.toFixed(2)}`);
  find("own-threshold-text").textContent = say("ownThresholdIs", {
    value: named.length ? named.join(", ") : state.health.threshold.toFixed(2),
  });
}

function chooseLanguage(language) {
  setLanguage(language);
  remember("teo.language", language);
  renderSamples();
  renderTurns();
  renderResult();
  renderServed();
  dialogueChanged();
}

function chooseTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  find("theme").setAttribute("aria-pressed", String(dark));
}

function listen() {
  find("form").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
  });
  find("add").addEventListener("click", () => {
    state.turns.splice(state.turns.length - 1, 0, "");
    renderTurns();
    dialogueChanged();
    find(`turn-${state.turns.length - 2}`).focus();
  });
  find("clear").addEventListener("click", () => {
    Object.assign(state, { turns: ["", ""], sample: "", answer: null, failure: null });
    state.request?.abort();
    find("busy").textContent = "";
    renderSamples();
    renderTurns();
    renderResult();
    dialogueChanged();
    find("turn-0").focus();
  });
  find("own-threshold").addEventListener("change", (event) => {
    find("threshold").disabled = event.target.checked;
    dialogueChanged();
  });
  find("threshold").addEventListener("input", (event) => {
    find("threshold-value").textContent = Number(event.target.value).toFixed(2);
    dialogueChanged();
  });
  explainEdits(find("text"), () => state.answer);
  find("token").addEventListener("input", renderSnippet);
  find("copy").addEventListener("click", (event) => copy(find("snippet-text").textContent, event.currentTarget, "copy"));
  find("copy-rewrite").addEventListener("click", (event) => {
    copy(state.answer.record.rewrite, event.currentTarget, "copyRewrite");
  });
  for (const tab of find("tabs").children) tab.addEventListener("click", () => chooseForm(tab));
  find("tabs").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const tabs = [...find("tabs").children];
    const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
    chooseForm(next);
    next.focus();
  });
  for (const button of document.querySelectorAll("[data-language]")) {
    button.addEventListener("click", () => chooseLanguage(button.dataset.language));
  }
  find("theme").addEventListener("click", () => {
    const dark = document.documentElement.dataset.theme !== "dark";
    chooseTheme(dark);
    remember("teo.theme", dark ? "dark" : "light");
  });
}

async function start() {
  const theme = recall("teo.theme");
  chooseTheme(theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  listen();
  const asked = new URLSearchParams(location.search).get("lang") ?? recall("teo.language") ?? navigator.language;
  chooseLanguage(asked.startsWith("zh") ? "zh" : "en");
  try {
    state.health = await (await fetch("/health")).json();
    renderServed();
  } catch {
    // The footer stays empty; a rewrite will say that the server cannot be reached.
  }
}

start();
