// Charts and trees as SVG. Enters: numbers, nodes. Leaves: an element, with its meaning in words for those who
// do not see it. Labels are text nodes.

import { h, s, percent, quotedToken, seconds, shownToken } from "./dom.js";

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

// What compile, first mask and each mask took. `masks` are seconds a token.
export function timings(compiled, masks) {
  const rows = [];
  if (compiled) rows.push(["Compile", seconds(compiled.compile)], ["First mask", seconds(compiled.first_mask)]);
  else rows.push(["Compile", "known before"]);
  if (masks.length) {
    rows.push(["Masks", `${masks.length}; median ${seconds(median(masks))}, slowest ${seconds(Math.max(...masks))}`]);
  }
  const facts = h("dl", { class: "facts" }, rows.map(([name, value]) => [h("dt", null, name), h("dd", null, value)]));
  return masks.length ? [facts, bars(masks)] : [facts];
}

function bars(masks) {
  const width = 600;
  const height = 130;
  const left = 52;
  const floor = 1e-6;
  const low = Math.floor(Math.log10(Math.max(floor, Math.min(...masks))));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(floor, ...masks))));
  const y = (value) => height - 20 - ((Math.log10(Math.max(floor, value)) - low) / (high - low)) * (height - 32);
  const step = (width - left) / masks.length;
  const lines = [];
  for (let power = low; power <= high; power++) {
    const at = y(10 ** power);
    lines.push(
      s("line", { class: "axis", x1: left, x2: width, y1: at, y2: at }),
      s("text", { class: "label", x: left - 6, y: at + 4, "text-anchor": "end" }, seconds(10 ** power)),
    );
  }
  const drawn = masks.map((value, i) =>
    s(
      "rect",
      { class: i ? "bar" : "bar first", x: left + i * step, y: y(value), width: Math.max(0.5, step * 0.85), height: Math.max(1, height - 20 - y(value)) },
      s("title", null, `token ${i + 1}: ${seconds(value)}`),
    ),
  );
  const words = `Seconds of each of ${masks.length} masks: median ${seconds(median(masks))}, slowest ${seconds(Math.max(...masks))}`;
  return s(
    "svg",
    { class: "fit", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words },
    lines,
    drawn,
    s("text", { class: "label", x: width, y: height - 4, "text-anchor": "end" }, "tokens; the scale is logarithmic"),
  );
}

// Certified bounds on log Z over the draws: [draws, low, high] with null for minus infinity.
export function bracket(points) {
  const known = points.filter(([, low, high]) => low !== null && high !== null);
  if (!known.length) return h("p", { class: "hint" }, "No lower bound was found yet.");
  const width = 600;
  const height = 170;
  const left = 60;
  const last = known[known.length - 1];
  const bottom = Math.min(...known.map((p) => p[1]));
  const top = Math.max(...known.map((p) => p[2]));
  const span = top - bottom || 1;
  const x = (draws) => left + ((draws - known[0][0]) / Math.max(1, last[0] - known[0][0])) * (width - left - 10);
  const y = (value) => 12 + ((top - value) / span) * (height - 40);
  const line = (column) => known.map((p) => `${x(p[0]).toFixed(1)},${y(p[column]).toFixed(1)}`);
  const words = `log Z lies between ${last[1].toFixed(4)} and ${last[2].toFixed(4)} after ${last[0]} draws`;
  return s(
    "svg",
    { class: "fit", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words },
    s("polygon", { class: "band", points: [...line(2), ...line(1).reverse()].join(" ") }),
    s("polyline", { class: "bound", points: line(2).join(" ") }),
    s("polyline", { class: "bound", points: line(1).join(" ") }),
    [top, bottom].map((value) =>
      s("text", { class: "label", x: left - 6, y: y(value) + 4, "text-anchor": "end" }, value.toFixed(3)),
    ),
    s("text", { class: "label", x: width - 10, y: height - 6, "text-anchor": "end" }, `${last[0]} draws`),
    s("text", { class: "label", x: left, y: height - 6 }, "log Z"),
  );
}

// Nodes with `parent` (-1: the root) as merged chains: a node with one child of its own class is one with it.
function merged(nodes, classOf) {
  const children = nodes.map(() => []);
  const roots = [];
  nodes.forEach((node, i) => (node.parent < 0 ? roots : children[node.parent]).push(i));
  const made = (start) => {
    const members = [start];
    let last = start;
    while (children[last].length === 1 && classOf(nodes[children[last][0]]) === classOf(nodes[start])) {
      last = children[last][0];
      members.push(last);
    }
    return { members, kind: classOf(nodes[start]), children: children[last].map(made) };
  };
  return roots.map(made);
}

const HEIGHT = 24;
const GAP = 26;
const CHARACTER = 7.3;
const LONGEST = 44;

// A tree from left to right, a row a leaf. weight(node): 0 to 1, the width of the line to it.
export function tree(nodes, { classOf, titleOf, weight, words }) {
  const boxes = [];
  const edges = [];
  let row = 0;
  let right = 0;
  const place = (item, x, from) => {
    let label = item.members.map((i) => shownToken(nodes[i])).join("").replaceAll("\n", "⏎");
    if (!label.trim()) label = label.replaceAll(" ", "␣");
    if (label.length > LONGEST) label = `${label.slice(0, 20)}…${label.slice(-20)}`;
    const width = label.length * CHARACTER + 12;
    const first = row;
    const rows = item.children.map((child) => place(child, x + width + GAP, null));
    if (!item.children.length) row += 1;
    const y = item.children.length ? (rows[0].y + rows[rows.length - 1].y) / 2 : first * HEIGHT;
    right = Math.max(right, x + width);
    rows.forEach((child) => edges.push([x + width, y, child.x, child.y, child.weight]));
    const node = nodes[item.members[0]];
    boxes.push(
      s(
        "g",
        { class: `node ${item.kind}` },
        s("rect", { x, y: y + 2, width, height: HEIGHT - 5, rx: 4 }),
        s("text", { x: x + 6, y: y + HEIGHT / 2 + 4, "xml:space": "preserve" }, label),
        s("title", null, titleOf(item.members.map((i) => nodes[i]))),
      ),
    );
    return { x, y, weight: weight(node) };
  };
  for (const item of merged(nodes, classOf)) place(item, 4, null);
  const lines = edges.map(([x1, y1, x2, y2, w]) => {
    const [a, b] = [y1 + HEIGHT / 2, y2 + HEIGHT / 2];
    const bend = (x1 + x2) / 2;
    return s("path", { class: "edge", d: `M${x1},${a} C${bend},${a} ${bend},${b} ${x2},${b}`, "stroke-width": (0.6 + 4 * Math.sqrt(w)).toFixed(2) });
  });
  const [width, height] = [right + 8, Math.max(1, row) * HEIGHT + 4];
  return s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words }, lines, boxes);
}

export function draftTree(step) {
  const accepted = step.nodes.filter((n) => n.accepted);
  const words = `${step.nodes.length} drafts, ${accepted.length} accepted: ${accepted.map(quotedToken).join(" ")}`;
  return tree(step.nodes, {
    classOf: (n) => (n.accepted ? "accepted" : "refused"),
    titleOf: (members) =>
      members.map((n) => `${quotedToken(n)}: ${n.drafters.join(", ")}; expected ${percent(n.chance)}`).join("\n"),
    weight: (n) => n.chance,
    words,
  });
}

export function trie(nodes) {
  const shown = nodes.filter((n) => !n.end || n.high > 0);
  const numbers = new Map(shown.map((n, i) => [nodes.indexOf(n), i]));
  const kept = shown.map((n) => ({ ...n, parent: n.parent < 0 ? -1 : numbers.get(n.parent) }));
  return tree(kept, {
    classOf: (n) => (n.high === 0 ? "out" : n.end ? "complete" : "open"),
    titleOf: (members) => {
      const n = members[members.length - 1];
      return `probability of the prefix ${percent(n.p)}; of that, between ${percent(n.low)} and ${percent(n.high)} ends in the language`;
    },
    weight: (n) => n.p,
    words: `The explored prefixes: ${shown.length} tokens, ${shown.filter((n) => n.end).length} texts`,
  });
}
