// The same request for a shell, for Python, and as it goes over the wire.

const quoteShell = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

// JSON strings are Python strings, but for what JSON may leave unescaped and Python's source may not hold alone.
const quotePython = (text) =>
  JSON.stringify(text).replace(/[\u007f-\u009f\u2028\u2029]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);

function python(body) {
  const history = body.history.map((turn) => `        ${quotePython(turn)},\n`).join("");
  const prefer = "prefer" in body ? `    prefer=${quotePython(body.prefer)},\n` : "";
  return (
    "from teo import Rewriter\n\n" +
    "rewriter = Rewriter.from_pretrained()\n" +
    "result = rewriter.rewrite(\n" +
    `    history=[\n${history}    ],\n` +
    `    utterance=${quotePython(body.utterance)},\n${prefer})\n` +
    "print(result.rewrite, result.confidence)\n"
  );
}

function curl(body, withToken) {
  const token = withToken ? " \\\n  -H \"Authorization: Bearer $TEO_TOKEN\"" : "";
  return (
    `curl ${location.origin}/v1/rewrite \\\n  -H 'Content-Type: application/json'${token} \\\n` +
    `  -d ${quoteShell(JSON.stringify(body))}\n`
  );
}

/** The request of a body in one form: curl, python or json. */
export function snippet(form, body, withToken) {
  if (form === "python") return python(body);
  if (form === "curl") return curl(body, withToken);
  return `${JSON.stringify(body, null, 2)}\n`;
}
