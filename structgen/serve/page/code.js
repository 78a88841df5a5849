// The page's settings as a program. Enters: a state of the page, what the server told of itself. Leaves: Python, or a
// command line with curl. Constraints stand in both as they were typed, so that no number loses digits.

// A text as a literal of Python: over lines and raw where that is possible.
function literal(text) {
  const plain = !text.includes('"""') && !/["\\\r\0]$/.test(text) && !text.includes("\r") && !text.includes("\0");
  if (plain && /[\n"\\]/.test(text)) return `r"""${text}"""`;
  return JSON.stringify(text);
}

const seedOf = (state) => (/^-?\d+$/.test(state.seed) ? state.seed : null);
const sampled = (state) => !["plain", "speculate"].includes(state.method);

export function pythonOf(state, info) {
  const embedded = info.model === "embedded";
  const message = state.chat && !embedded;
  const prompt = message ? `[{"role": "user", "content": ${literal(state.prompt)}}]` : literal(state.prompt);
  const given = [embedded ? "None" : JSON.stringify(info.model), prompt];
  const lines = ["import structgen as sg", ""];
  if (state.kind === "schema") given.push(literal(state.text));
  if (state.kind === "schema" && state.order !== "schema") given.push(`property_order=${JSON.stringify(state.order)}`);
  if (state.kind === "schema" && state.whitespace !== "compact") given.push(`whitespace=${JSON.stringify(state.whitespace)}`);
  if (state.kind === "regex" || state.kind === "grammar") given.push(`${state.kind}=${literal(state.text)}`);
  if (state.kind === "tools") {
    lines.splice(0, 0, "import json", "");
    given.push(`tools=json.loads(${literal(state.text)})`, `tool_choice=${chosen(state.choice)}`);
  }
  if (sampled(state)) given.push(`method=${JSON.stringify(state.method)}`, `n=${state.count}`);
  if (state.method === "speculate") given.push('speculate="auto"');
  given.push(`temperature=${state.temperature}`, `max_tokens=${state.max_tokens}`);
  if (seedOf(state)) given.push(`seed=${seedOf(state)}`);
  const sure = state.confidence && !sampled(state);
  if (sure) given.push("confidence=64");
  const call = sampled(state) ? "sample" : "generate";
  lines.push(`result = sg.${call}(`, ...given.map((one) => `    ${one},`), ")");
  if (sampled(state)) lines.push("for text, probability in result.posterior().items():", '    print(f"{probability:.3f} {text}")');
  else lines.push("print(result.text)");
  if (sure) lines.push("for leaf in result.field_probabilities:", "    print(leaf.pointer, leaf.text, leaf.low, leaf.high)");
  return lines.join("\n") + "\n";
}

// The tool choice as JSON, which Python reads alike.
function chosen(choice) {
  if (["auto", "none", "required"].includes(choice)) return JSON.stringify(choice);
  return `{"type": "function", "function": {"name": ${JSON.stringify(choice)}}}`;
}

export function curlOf(state, info, origin, guarded) {
  const parts = [`"model": ${JSON.stringify(info.model)}`];
  if (state.chat) parts.push(`"messages": [{"role": "user", "content": ${JSON.stringify(state.prompt)}}]`);
  else parts.push(`"prompt": ${JSON.stringify(state.prompt)}`);
  const extension = [];
  if (state.kind === "schema") {
    parts.push(`"json_schema": ${state.text}`);
    if (state.order !== "schema") extension.push(`"property_order": ${JSON.stringify(state.order)}`);
    if (state.whitespace !== "compact") extension.push(`"whitespace": ${JSON.stringify(state.whitespace)}`);
  }
  if (state.kind === "regex") parts.push(`"guided_regex": ${JSON.stringify(state.text)}`);
  if (state.kind === "grammar") parts.push(`"grammar": ${JSON.stringify(state.text)}`);
  if (state.kind === "tools") parts.push(`"tools": ${state.text}`, `"tool_choice": ${chosen(state.choice)}`);
  if (sampled(state)) extension.push(`"sampling": {"method": ${JSON.stringify(state.method)}}`);
  if (sampled(state)) parts.push(`"n": ${state.count}`);
  if (state.method === "speculate") extension.push('"speculate": "auto"');
  if (state.confidence && !sampled(state)) extension.push('"confidence": 64');
  parts.push(`"temperature": ${state.temperature}`, `"max_tokens": ${state.max_tokens}`);
  if (seedOf(state)) parts.push(`"seed": ${seedOf(state)}`);
  if (extension.length) parts.push(`"structgen": {${extension.join(", ")}}`);
  const path = state.chat ? "chat/completions" : "completions";
  const quoted = `{${parts.join(",\n ")}}`.replaceAll("'", "'\\''");
  const key = guarded ? ' -H "Authorization: Bearer $STRUCTGEN_API_KEY"' : "";
  return `curl ${origin}/v1/${path} -H 'Content-Type: application/json'${key} -d '${quoted}'\n`;
}
