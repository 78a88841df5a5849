// The page's settings in the address, behind `#`, which no browser sends to a server.
// Enters: a state, or an address. Leaves: an address, or a state of which every field was checked.

const FIELDS = {
  kind: (v) => ["schema", "regex", "grammar", "tools", "none"].includes(v),
  text: (v) => typeof v === "string" && v.length <= 1_000_000,
  order: (v) => ["schema", "any"].includes(v),
  whitespace: (v) => ["compact", "one-blank", "spaced", "pretty", "flexible"].includes(v),
  choice: (v) => typeof v === "string" && v.length <= 200,
  prompt: (v) => typeof v === "string" && v.length <= 1_000_000,
  chat: (v) => typeof v === "boolean",
  compare: (v) => typeof v === "boolean",
  confidence: (v) => typeof v === "boolean",
  method: (v) => typeof v === "string" && v.length <= 40,
  count: (v) => Number.isInteger(v) && v >= 1 && v <= 500,
  temperature: (v) => typeof v === "number" && v >= 0 && v <= 100,
  seed: (v) => typeof v === "string" && /^-?\d{0,20}$/.test(v),
  max_tokens: (v) => Number.isInteger(v) && v >= 1 && v <= 1_000_000,
  document: (v) => typeof v === "string" && v.length <= 1_000_000,
};
const MOST = 4_000_000; // bytes of a state that was packed

const packed = async (bytes, stream) =>
  new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());

// Unpacks no further than MOST: a short link can hold gigabytes of zeros.
async function unpacked(bytes) {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    size += value.length;
    if (size > MOST) throw new RangeError("the link holds too much");
    parts.push(value);
  }
}

export async function addressOf(state) {
  const bytes = await packed(new TextEncoder().encode(JSON.stringify(state)), new CompressionStream("deflate-raw"));
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  const coded = btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  return `${location.origin}${location.pathname}#s=${coded}`;
}

// null: the address has no state, or one that is damaged
export async function stateOf(hash) {
  const match = /^#s=([A-Za-z0-9_-]+)$/.exec(hash);
  if (!match) return null;
  try {
    const text = atob(match[1].replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(text, (c) => c.charCodeAt(0));
    const found = JSON.parse(new TextDecoder().decode(await unpacked(bytes)));
    const state = {};
    for (const [name, fine] of Object.entries(FIELDS)) {
      if (Object.hasOwn(found, name) && fine(found[name])) state[name] = found[name];
    }
    return state;
  } catch {
    return null;
  }
}
