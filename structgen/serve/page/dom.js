// Elements from plain values. Enters: a tag, attributes, children. Leaves: a node.
// Strings become text nodes and never HTML: what a model or a stranger wrote is only ever text.

const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}

export const h = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);

export const s = (tag, attributes, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);

export const by = (id) => document.getElementById(id);

export function debounced(work, milliseconds) {
  let timer = 0;
  const run = (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...values), milliseconds);
  };
  run.now = (...values) => {
    clearTimeout(timer);
    return work(...values);
  };
  return run;
}

// A token as people read it. `bytes` are no whole character, `name` is a token without text.
export function shownToken(token) {
  if (token.text !== undefined) return token.text;
  if (token.bytes) return "⟨" + token.bytes.map((b) => b.toString(16).padStart(2, "0")).join(" ") + "⟩";
  return `⟨${token.name}⟩`;
}

// The same on one line, in quotes.
export const quotedToken = (token) => (token.text === undefined ? shownToken(token) : JSON.stringify(token.text));

export function percent(p) {
  if (p === 0) return "0%";
  if (p === 1) return "100%";
  if (p < 0.000001) return `${(100 * p).toExponential(0).replace("e-", "e−")}%`;
  if (p > 0.9999) return ">99.99%";
  return `${(100 * p).toPrecision(p > 0.9995 ? 4 : p < 0.0001 ? 1 : 3)}%`;
}

export function seconds(value) {
  if (value < 0.001) return `${(1e6 * value).toPrecision(3)} µs`;
  return value < 1 ? `${(1000 * value).toPrecision(3)} ms` : `${value.toPrecision(3)} s`;
}
