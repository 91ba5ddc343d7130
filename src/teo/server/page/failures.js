// What went wrong, in a person's words; what the server said stands folded below it.
import { make } from "./edits.js";
import { say } from "./i18n.js";

const BY_NAME = {
  "too-large": "tooLong", "queue-full": "queueFull", timeout: "tooSlow", "body-timeout": "tooSlow",
  stopping: "stopping", internal: "failed", "invalid-input": "notUsable", "invalid-json": "notUsable",
};
const BY_STATUS = { 413: "tooLong", 422: "notUsable", 429: "queueFull", 500: "failed", 503: "stopping", 504: "tooSlow" };

/** The key of the sentence for a failure: its status, the problem that came with it, and whether a token was sent. */
export function failureKey({ status, problem, withToken }) {
  if (status === 0) return "unreachable";
  if (status === 401) return withToken ? "tokenWrong" : "tokenMissing";
  const name = String(problem?.type ?? "").replace("urn:teo:problem:", "");
  return BY_NAME[name] ?? BY_STATUS[status] ?? "badAnswer";
}

/** Whether a text can be a server's token; a header could not even hold every other text. */
export const canBeToken = (text) => /^[\x20-\x7e]*$/.test(text);

/** Whether a model gives one rewrite only, which is no failure of the request. */
export function isOneOnly({ status, problem }) {
  return status === 422 && (problem?.errors ?? []).some((error) => error.field === "n_best");
}

/** Fill an element with a failure. */
export function renderFailure(box, failure) {
  box.replaceChildren(make("span", "", say(failureKey(failure))));
  const { status, problem } = failure;
  if (status === 0) return;
  const details = make("details", "hint");
  const said = typeof problem?.detail === "string" ? `${status}: ${problem.detail}` : String(status);
  details.append(make("summary", "", say("details")), make("code", "", said));
  if (problem?.request_id) details.append(make("span", "request", say("requestId", { id: problem.request_id })));
  box.append(details);
}
