// The page: a dialogue in, one request, the record out. It keeps the choice of language and theme, and the token until
// the tab is closed.
import { renderAnswer, shown, verdict } from "./answer.js";
import { copy, copyWithoutStruck } from "./copying.js";
import { make } from "./edits.js";
import { canBeToken, isOneOnly, renderFailure } from "./failures.js";
import { getLanguage, say, setLanguage } from "./i18n.js";
import { SAMPLES } from "./samples.js";
import { snippet } from "./snippets.js";
import { recall, remember } from "./storage.js";
import { explainEdits, hideTip } from "./tips.js";

const SEVERAL = 5; // rewrites that are asked for where others are wanted
const TWO_STAGES = new Set(["teo", "gold", "stage1", "rfis", "rerank"]); // pipelines whose first stage proposes

const find = (id) => document.getElementById(id);
const state = {
  turns: ["", ""], sample: "", form: "curl", request: null, answer: null, failure: null, health: null,
};

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
  area.enterKeyHint = "send";
  area.addEventListener("input", () => {
    state.turns[index] = area.value;
    fit(area);
    if (last) find("busy").textContent = "";
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
  const { threshold, prefer } = state.health ?? {};
  const isDefault = preference() === "balanced" && threshold === prefer?.balanced;
  return isDefault ? filled : { ...filled, prefer: preference() };
}

/** The named threshold that is chosen. */
const preference = () => find("prefer").querySelector("input:checked").value;

function dialogueChanged() {
  renderSnippet();
  const stale = state.answer !== null && JSON.stringify(body()) !== state.answer.asked;
  find("answer").classList.toggle("stale", stale);
  if (state.answer) find("verdict").textContent = stale ? say("stale") : verdict(state.answer);
}

// ---- the request ----

/** Ask for a rewrite: `anyway`, however unsure the model is; `several`, with others beside it. */
async function send({ anyway = false, several = false } = {}) {
  state.request?.abort();
  if (!state.turns.at(-1).trim()) return askForText();
  const token = find("token").value;
  const withToken = token !== "";
  if (!canBeToken(token)) return fail({ status: 401, problem: null, withToken });
  const request = (state.request = new AbortController());
  const headers = { "Content-Type": "application/json" };
  if (withToken) headers.Authorization = `Bearer ${token}`;
  find("busy").textContent = say("working");
  try {
    await learnHealth(); // the body depends on its thresholds
    if (request.signal.aborted) return;
    const asked = body();
    const numbers = state.turns.slice(0, -1).flatMap((turn, index) => (turn.trim() ? [index + 1] : []));
    const sent = { ...asked, ...(several && { n_best: SEVERAL }) };
    if (anyway) {
      delete sent.prefer; // a request has one threshold
      sent.min_confidence = 0;
    }
    const started = performance.now();
    const response = await fetch("/v1/rewrite", {
      method: "POST", headers, body: JSON.stringify(sent), signal: request.signal,
    });
    const milliseconds = performance.now() - started;
    const record = await response.json().catch(() => null);
    if (request.signal.aborted) return;
    if (response.ok && typeof record?.rewrite === "string") {
      const timing = response.headers.get("Server-Timing") ?? "";
      show({ record, sent: asked, numbers, asked: JSON.stringify(asked), anyway, chosen: null, milliseconds, timing });
    } else {
      fail({ status: response.status, problem: record, withToken });
    }
  } catch (error) {
    if (!request.signal.aborted) fail({ status: 0, problem: null, withToken });
  } finally {
    if (state.request === request) find("busy").textContent = "";
  }
}

function askForText() {
  find("busy").textContent = say("writeFirst");
  find(`turn-${state.turns.length - 1}`).focus();
}

function show(answer) {
  state.answer = answer;
  state.failure = null;
  renderResult();
  dialogueChanged();
  reveal(find("text"));
}

function fail(failure) {
  if (state.answer && isOneOnly(failure)) {
    state.answer.oneOnly = true;
    renderResult();
    return;
  }
  state.answer = null;
  state.failure = failure;
  renderResult();
  if (failure.status === 401) {
    find("token-row").hidden = false;
    find("token").focus();
  } else {
    reveal(find("error"));
  }
}

/** Bring the answer into view where it is not: below the dialogue on a phone, or above what was scrolled past. */
function reveal(element) {
  // A phone's keyboard would cover the answer.
  if (matchMedia("(pointer: coarse)").matches && document.activeElement?.tagName === "TEXTAREA") document.activeElement.blur();
  const box = element.getBoundingClientRect();
  if (box.top >= 0 && box.bottom <= document.documentElement.clientHeight) return;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  find("result").scrollIntoView({ block: "start", behavior: still ? "auto" : "smooth" });
}

// ---- the answer ----

function renderResult() {
  hideTip();
  find("error").hidden = state.failure === null;
  find("answer").hidden = state.answer === null;
  find("copy-rewrite").hidden = state.answer === null;
  find("empty").hidden = state.answer !== null || state.failure !== null;
  find("announce").textContent = "";
  if (state.failure) renderFailure(find("error"), state.failure);
  if (!state.answer) return;
  const threshold = state.health?.prefer[state.answer.sent.prefer ?? "balanced"];
  renderAnswer(state.answer, threshold, (chosen) => {
    state.answer.chosen = chosen;
    renderResult();
    dialogueChanged();
    find("alternatives").querySelectorAll("button")[chosen].focus();
  });
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

function renderServed() {
  if (!state.health) return;
  find("served").textContent = say("served", state.health);
  find("metrics-link").hidden = state.health.token_required !== false;
  if (state.health.token_required) find("token-row").hidden = false;
  const proposed = TWO_STAGES.has(state.health.variant) ? "stageOne" : "operations";
  find("operations-name").dataset.i18n = proposed;
  find("operations-name").textContent = say(proposed);
  for (const element of document.querySelectorAll("[data-prefer]")) {
    const value = state.health.prefer[element.dataset.prefer].toFixed(2);
    element.textContent = say("preferFrom", { text: say(element.dataset.i18n), value });
  }
}

/** Ask for the server's status, until it was given. */
async function learnHealth() {
  if (state.health) return;
  try {
    const response = await fetch("/health");
    if (!response.ok) return;
    state.health = await response.json();
    renderServed();
    renderSnippet();
  } catch {
    // The footer stays empty; a rewrite will say that the server cannot be reached.
  }
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
    // An input method takes Enter to accept what it composed; 229 is how some browsers say so after the fact.
    if (event.key !== "Enter" || event.isComposing || event.keyCode === 229) return;
    const inTurn = event.target.matches?.(".turn textarea") && !event.shiftKey && !event.altKey;
    if (!inTurn && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    if (!event.repeat) send();
  });
  find("anyway").addEventListener("click", () => send({ anyway: true }));
  find("more").addEventListener("click", () => send({ several: true, anyway: state.answer?.anyway }));
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
  find("prefer").addEventListener("change", dialogueChanged);
  explainEdits(find("text"), () => ({ ...state.answer, record: shown(state.answer) }));
  copyWithoutStruck(find("text"));
  find("token").value = recall("teo.token", "session") ?? "";
  find("token").addEventListener("input", (event) => {
    remember("teo.token", event.target.value, "session");
    renderSnippet();
  });
  find("copy").addEventListener("click", (event) => copy(find("snippet-text").textContent, event.currentTarget, "copy"));
  find("copy-rewrite").addEventListener("click", (event) => {
    copy(shown(state.answer).rewrite, event.currentTarget, "copyRewrite");
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
  await learnHealth();
}

start();
