// The server's side of the page. Enters: a path and JSON. Leaves: JSON, or events of a stream.

const BASE = "/playground/api/";
let key = sessionStorage.getItem("structgen-key") ?? "";

// `details` is the error object of the server: message, code, param and, of a constraint, its place.
export class ServerError extends Error {
  constructor(status, details) {
    super(details.reason ?? details.message ?? `the server answered ${status}`);
    this.status = status;
    this.details = details;
  }
}

export const hasKey = () => key !== "";

export function useKey(value) {
  key = value;
  sessionStorage.setItem("structgen-key", value);
}

async function request(path, body, signal) {
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const options = { headers, signal, credentials: "same-origin" };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
  }
  const response = await fetch(BASE + path, options);
  if (response.ok) return response;
  let details = {};
  try {
    details = (await response.json()).error ?? {};
  } catch {
    // an answer from something between here and the server
  }
  throw new ServerError(response.status, details);
}

export const get = async (path) => (await request(path)).json();

export const post = async (path, body, signal) => (await request(path, body, signal)).json();

export async function* stream(path, body, signal) {
  const response = await request(path, body, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    held += value;
    const lines = held.split("\n");
    held = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data: ") || line === "data: [DONE]") continue;
      const item = JSON.parse(line.slice(6));
      if (item.error) throw new ServerError(response.status, item.error);
      yield item;
    }
  }
}
