// The description of the API as a page: every operation with an example that can be changed and sent.
import { make } from "./edits.js";
import { canBeToken } from "./failures.js";
import { say } from "./i18n.js";
import { recall, remember } from "./storage.js";

const find = (id) => document.getElementById(id);
const pretty = (value) => JSON.stringify(value, null, 2);

function operation(path, method, described) {
  const card = make("section", "card");
  const title = make("h2");
  title.append(make("span", "method", method.toUpperCase()), ` ${path}`);
  card.append(title, prose(described.description ?? described.summary ?? ""));
  const form = make("form", "fields");
  const parameters = (described.parameters ?? []).map((parameter) => field(form, parameter.name, make("input")));
  const content = described.requestBody?.content["application/json"];
  const body = content && bodyField(form, content);
  const send = make("button", "primary", "Send");
  send.type = "submit";
  const row = make("div", "row");
  row.append(send);
  const status = make("p", "status");
  status.setAttribute("role", "status");
  const answer = make("pre");
  answer.hidden = true;
  answer.tabIndex = 0;
  form.append(row);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const address = path.replace(/\{\w+\}/g, () => encodeURIComponent(parameters[0].value));
    [status.textContent, answer.textContent] = await ask(address, method, body?.value);
    answer.hidden = answer.textContent === "";
  });
  card.append(form, status, answer, schemasOf(described));
  return card;
}

/** A paragraph in which what stands between back ticks is code. */
function prose(text) {
  const paragraph = make("p", "hint");
  paragraph.append(...text.split("`").map((part, index) => (index % 2 ? make("code", "", part) : part)));
  return paragraph;
}

function field(form, name, element) {
  const label = make("label", "", name);
  label.append(element);
  form.append(label);
  return element;
}

function bodyField(form, content) {
  const examples = Object.values(content.examples ?? {});
  const area = make("textarea");
  area.spellcheck = false;
  if (examples.length > 1) {
    const select = field(form, "Example", make("select"));
    examples.forEach((example, index) => select.append(new Option(example.summary, String(index))));
    select.addEventListener("change", () => (area.value = pretty(examples[Number(select.value)].value)));
  }
  if (examples.length) area.value = pretty(examples[0].value);
  area.rows = area.value.split("\n").length + 1;
  return field(form, "Body", area);
}

async function ask(address, method, body) {
  if (!canBeToken(find("token").value)) return [say("tokenWrong"), ""];
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  if (find("token").value) headers.Authorization = `Bearer ${find("token").value}`;
  const started = performance.now();
  try {
    const response = await fetch(address, { method: method.toUpperCase(), headers, body });
    const text = await response.text();
    const took = `${response.status} ${response.statusText}, ${(performance.now() - started).toFixed(0)} ms`;
    try {
      return [took, pretty(JSON.parse(text))];
    } catch {
      return [took, text];
    }
  } catch {
    return ["The server cannot be reached. Is it still running?", ""];
  }
}

function schemasOf(described) {
  const names = new Set(JSON.stringify(described).match(/(?<=#\/components\/schemas\/)\w+/g) ?? []);
  const line = make("p", "hint");
  if (names.size) line.append("Schemas: ");
  [...names].forEach((name, index) => {
    const link = make("a", "", name);
    link.href = `#schema-${name}`;
    line.append(index ? ", " : "", link);
  });
  return line;
}

function schema(name, described) {
  const details = make("details");
  details.id = `schema-${name}`;
  details.append(make("summary", "", name), make("pre", "", pretty(described)));
  return details;
}

function openTarget() {
  const target = find(location.hash.slice(1));
  if (target?.tagName === "DETAILS") target.open = true;
}

async function start() {
  const theme = recall("teo.theme");
  const dark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  find("token").value = recall("teo.token", "session") ?? "";
  find("token").addEventListener("input", (event) => remember("teo.token", event.target.value, "session"));
  addEventListener("hashchange", openTarget);
  try {
    const [description, status] = await Promise.all(["/openapi.json", "/health"].map((address) => fetch(address)));
    const [described, health] = [await description.json(), status.ok ? await status.json() : null];
    const operations = Object.entries(described.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, one]) => operation(path, method, one)),
    );
    find("operations").replaceChildren(...operations);
    const schemas = Object.entries(described.components.schemas).map(([name, one]) => schema(name, one));
    find("schemas").replaceChildren(...schemas);
    find("token-row").hidden = health?.token_required === false;
    if (health) find("served").textContent = `Model ${health.model}, pipeline ${health.variant}, teo ${health.version}`;
    openTarget();
  } catch {
    find("error").hidden = false;
  }
}

start();
