// Colours for an editor. Enters: a text and its language. Leaves: [start, end, class], in order, no overlaps.
// Classes: k key or rule, s string, n number, w word or class, c comment, o operator.

const RULES = {
  json: [
    ["k", /"(?:[^"\\\n]|\\.)*"(?=\s*:)/y],
    ["s", /"(?:[^"\\\n]|\\.)*"?/y],
    ["n", /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y],
    ["w", /\b(?:true|false|null)\b/y],
    ["o", /[{}[\],:]/y],
  ],
  regex: [
    ["k", /\(\?(?:P?<[A-Za-z_]\w*>|[:=!]|<[=!]|[a-z]+[:)])/y],
    ["s", /\[\^?\]?(?:[^\]\\]|\\.)*\]?/y],
    ["w", /\\./y],
    ["n", /\{\d*,?\d*\}/y],
    ["o", /[()|*+?.^$]/y],
  ],
  grammar: [
    ["c", /(?:#|\/\/).*/y],
    ["k", /[A-Za-z_!?][\w.-]*(?=\s*(?:::=|:(?!:)|\.\d+\s*:))/y],
    ["s", /"(?:[^"\\\n]|\\.)*"?i?/y],
    ["s", /\/(?![\s/*])(?:[^/\\\n]|\\.)+\/[imslux]*/y],
    ["s", /\[\^?\]?(?:[^\]\\\n]|\\.)*\]/y],
    ["w", /%[a-z_]+|->\s*\w+/y],
    ["n", /\{\d*,?\d*\}|\b\d+\b/y],
    ["o", /::=|[:|()*+?~]/y],
    ["", /[A-Za-z_][\w.-]*/y],
  ],
};
const MOST = 200_000; // characters beyond which a text stays plain

export const language = (kind) => ({ schema: "json", tools: "json", regex: "regex", grammar: "grammar" })[kind];

export function highlight(text, name) {
  const rules = RULES[name];
  if (!rules || text.length > MOST) return [];
  const found = [];
  let at = 0;
  while (at < text.length) {
    let end = at + 1;
    for (const [kind, pattern] of rules) {
      pattern.lastIndex = at;
      const match = pattern.exec(text);
      if (match && match[0]) {
        end = pattern.lastIndex;
        if (kind) found.push([at, end, kind]);
        break;
      }
    }
    at = end;
  }
  return found;
}
