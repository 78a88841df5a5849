// The playground. Enters: what a person types and chooses. Leaves: requests, and what comes back on the page.

import { get, hasKey, post, ServerError, stream, useKey } from "./api.js";
import { curlOf, pythonOf } from "./code.js";
import { by, debounced, h, percent } from "./dom.js";
import { Editor } from "./editor.js";
import { language } from "./highlight.js";
import { bracket, draftTree, timings, trie } from "./pictures.js";
import { addressOf, stateOf } from "./share.js";
import { Tokens } from "./tokens.js";

const LABELS = { schema: "JSON Schema", regex: "Regular expression", grammar: "Grammar (GBNF or Lark)", tools: "Tools (OpenAI's list of functions)", none: "" };

const READS = 64; // prefixes that are read for each leaf

const constraint = new Editor(by("constraint-editor"), { id: "constraint", rows: 14, describedby: "constraint-verdict", onchange: changed });
const typed = new Editor(by("document-editor"), { id: "document", rows: 8, describedby: "document-verdict", onchange: () => checkSoon() });
const tokens = new Tokens(look, showForwardOf);
let info = {};
let examples = [];
let running = null; // the AbortController of the generation
let looks = new Map(); // of the present text: number of a token -> a promise
let generated = null; // what was asked for the present text
let complete = false; // the present text is; the one beside it may still come
let drafts = []; // {emitted, nodes, first}: `first` is the number of its first token
let traces = new Map(); // text -> tokens

// ---- the state of the page ----

const kind = () => document.querySelector("input[name=kind]:checked").value;

const asked = () => ({
  kind: kind(),
  text: constraint.value,
  property_order: by("order").value,
  whitespace: by("whitespace").value,
  tool_choice: by("choice").value.trim() || "auto",
});

const state = () => ({
  kind: kind(),
  text: constraint.value,
  order: by("order").value,
  whitespace: by("whitespace").value,
  choice: by("choice").value,
  prompt: by("prompt").value,
  chat: by("chat").checked,
  compare: by("compare").checked,
  confidence: by("confidence").checked,
  method: by("method").value,
  count: Number(by("count").value) || 1,
  temperature: Number(by("temperature").value) || 0,
  seed: by("seed").value.trim(),
  max_tokens: Number(by("max-tokens").value) || 256,
  document: typed.value,
});

function restore(saved) {
  const set = (id, value) => value !== undefined && (by(id).value = String(value));
  const offered = (id, value) => [...by(id).options].some((option) => option.value === value);
  if (saved.kind) document.querySelector(`input[name=kind][value=${saved.kind}]`).checked = true;
  if (saved.text !== undefined) constraint.value = saved.text;
  if (saved.document !== undefined) typed.value = saved.document;
  set("order", saved.order);
  set("whitespace", saved.whitespace);
  set("choice", saved.choice);
  set("prompt", saved.prompt);
  if (offered("method", saved.method)) set("method", saved.method); // another version's link may name another
  set("count", saved.count);
  set("temperature", saved.temperature);
  set("seed", saved.seed);
  set("max-tokens", saved.max_tokens);
  for (const id of ["chat", "compare", "confidence"]) if (saved[id] !== undefined) by(id).checked = saved[id];
  arrange();
  compileSoon.now();
}

// Which fields there are depends on the kind and the method.
function arrange() {
  const now = kind();
  by("constraint-part").hidden = now === "none";
  by("constraint-label").textContent = LABELS[now];
  by("schema-options").hidden = now !== "schema";
  by("tool-options").hidden = now !== "tools";
  constraint.show(language(now));
  typed.show(now === "schema" || now === "tools" ? "json" : undefined);
  const sampling = Object.hasOwn(info.methods ?? {}, by("method").value);
  by("count-part").hidden = !sampling;
  if (sampling && Number(by("temperature").value) === 0) by("temperature").value = "1";
}

function say(text, bad = false) {
  by("status").textContent = text;
  by("status").classList.toggle("bad", bad);
}

function failed(error) {
  if (error.name === "AbortError") return;
  if (error instanceof ServerError && error.status === 401) {
    by("key-form").hidden = false;
    by("key").focus();
    say("the server asks for an API key", true);
    return;
  }
  say(error instanceof ServerError ? error.message : `the server cannot be reached: ${error.message}`, true);
}

// ---- the constraint as it is typed ----

let compiling = null;
const compileSoon = debounced(compileNow, 250);
const checkSoon = debounced(checkNow, 250);

function changed() {
  by("example").value = "";
  by("about").hidden = true;
  compileSoon();
}

// A verdict such as "complete and valid" is about what was asked then.
function outdated() {
  if (!generated || (running && !complete)) return;
  say("changed since: the text shown was generated from what stood here before");
  for (const result of results()) result.classList.add("old");
}

const results = () => document.querySelectorAll("#output > :not(h2, .legend), #samples-body, #drafts > :not(h2), #timings");

async function compileNow() {
  compiling?.abort();
  const mine = (compiling = new AbortController());
  const verdict = by("constraint-verdict");
  try {
    const found = await post("compile", asked(), mine.signal);
    constraint.mark(found.report.map((one) => one.place && { ...one.place, kind: "note" }));
    const count = found.least_tokens;
    let least = "no tokens of this model are known to write a text";
    if (count !== null) least = found.least_exact ? `a text takes ${count} tokens at least` : `${count} tokens suffice for a text`;
    verdict.replaceChildren(h("span", { class: "good" }, "compiles"), `: ${least}`);
    showReport(found);
    checkSoon.now();
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof ServerError) || error.status === 401) return failed(error);
    const place = error.details.place;
    constraint.mark(place ? [{ ...place, kind: "error" }] : []);
    verdict.replaceChildren(
      h("span", { class: "bad" }, place ? `line ${place.line}, column ${place.column}: ` : "", error.message),
      " ",
      ...(place ? [h("button", { type: "button", class: "link", onclick: () => constraint.goTo(place) }, "go there")] : []),
    );
    by("enforced").replaceChildren(h("p", { class: "hint" }, "Nothing: the constraint does not compile."));
    typed.mark([]);
    by("document-verdict").replaceChildren();
  }
}

function showReport(found) {
  const parts = [];
  const json = kind() === "schema";
  if (found.seconds === null) parts.push(h("p", null, "Nothing: there is no constraint."));
  else if (!found.report.length) parts.push(h("p", { class: "good" }, json ? "Every keyword." : "All of it."));
  else {
    parts.push(h("p", null, "Every keyword but these, which constrain nothing:"));
    parts.push(
      h(
        "ul",
        { class: "causes" },
        found.report.map((one) =>
          h("li", null, jump(constraint, one.place, `#${one.pointer}: ${one.keyword}`), `: ${one.reason}`),
        ),
      ),
    );
  }
  for (const warning of found.warnings) parts.push(h("p", null, warning));
  if (found.captures.length) parts.push(h("p", null, "Captures: ", h("code", null, found.captures.join(", "))));
  if (found.shortest) parts.push(h("p", null, "A shortest text: ", h("code", null, found.shortest)));
  by("enforced").replaceChildren(...parts);
  if (!generated) by("timings").replaceChildren(...(found.seconds ? timings(found.seconds, []) : []));
}

function jump(editor, place, text) {
  if (!place) return h("code", null, text);
  return h("button", { type: "button", class: "link mono", onclick: () => editor.goTo(place) }, text);
}

// ---- a document as it is typed ----

let checking = null;

async function checkNow() {
  checking?.abort();
  const mine = (checking = new AbortController());
  const verdict = by("document-verdict");
  if (!typed.value && kind() !== "none") {
    typed.mark([]);
    verdict.replaceChildren();
    return;
  }
  try {
    const found = await post("check", { constraint: asked(), document: typed.value }, mine.signal);
    if (found.verdict === "accepted") {
      typed.mark([]);
      verdict.replaceChildren(h("p", { class: "good" }, "accepted"));
      return;
    }
    typed.mark([{ ...found.place, kind: "error" }]);
    const where = `line ${found.place.line}, column ${found.place.column}`;
    verdict.replaceChildren(
      h("p", { class: "bad" }, `${found.verdict} at ${where}: ${found.problem} `, jump(typed, found.place, "go there")),
      found.instance !== null ? h("p", null, "In ", h("code", null, `#${found.instance}`)) : "",
      causes(found.causes) ?? "",
      h("p", null, "Could stand there: ", h("span", { class: "mono" }, found.allowed)),
      found.shortest ? h("p", null, "A shortest way to the end: ", h("code", null, found.shortest)) : "",
    );
  } catch (error) {
    if (error.name === "AbortError") return;
    if (error instanceof ServerError && error.status === 400) return; // the constraint's own error is shown above
    failed(error);
  }
}

function causes(list) {
  if (!list.length) return null;
  return h(
    "ul",
    { class: "causes" },
    list.map((cause) =>
      h("li", null, jump(constraint, cause.place, `#${cause.pointer}`), `: ${cause.message}`, cause.branches.map(causes)),
    ),
  );
}

// ---- a generation ----

async function generate(arriving = false) {
  running?.abort();
  // On a narrow screen the result stands below the form, out of sight.
  if (!arriving && matchMedia("(max-width: 900px)").matches) by("output").scrollIntoView();
  const mine = (running = new AbortController());
  const chosen = state();
  const sampling = Object.hasOwn(info.methods, chosen.method);
  const body = {
    constraint: asked(),
    prompt: chosen.prompt,
    chat: chosen.chat,
    method: sampling ? chosen.method : "plain",
    speculate: chosen.method === "speculate" ? "auto" : null,
    n: sampling ? chosen.count : 1,
    confidence: chosen.confidence && !sampling ? READS : 0,
    temperature: chosen.temperature,
    max_tokens: chosen.max_tokens,
  };
  generated = body;
  const masks = [];
  const counts = { forced: 0, constrained: 0, free: 0, drafted: 0 };
  let compiled = null;
  complete = false;
  reset();
  busy(true);
  say(sampling ? "sampling..." : "generating...");
  try {
    // The seed goes as it was typed: a number here would lose digits.
    for await (const event of stream("generate", { ...body, seed: seedOf(chosen.seed) }, mine.signal)) {
      if (running !== mine) return;
      if (event.type === "start") {
        compiled = event.compiled;
        const told = [`${event.prompt_tokens} tokens of prompt`, `temperature ${event.temperature}`];
        if (event.seed !== null) told.push(`seed ${event.seed}`);
        by("summary").textContent = told.join(", ");
      } else if (event.type === "draft") {
        drafts.push({ ...event, first: tokens.items.length });
      } else if (event.type === "token") {
        tokens.add(event);
        masks.push(event.mask_seconds);
        counts[event.kind] += 1;
        counts.drafted += event.drafters.length > 0;
      } else if (event.type === "samples") {
        showSamples(event);
        counts.texts = event.n;
        counts.law = event.law;
      } else if (event.type === "trace") {
        traces.set(event.text, event.tokens);
        if (traces.size === 1) {
          showTrace(event.text);
          masks.push(...event.tokens.map((token) => token.mask_seconds));
        }
      } else if (event.type === "end") {
        finished(event, counts);
        complete = true;
      } else if (event.type === "fields") {
        showFields(event.fields);
      }
    }
  } catch (error) {
    if (error.name === "AbortError") say("stopped");
    else {
      failed(error);
      if (error.details?.place) constraint.mark([{ ...error.details.place, kind: "error" }]);
    }
  } finally {
    if (running === mine) {
      if (complete && !sampling && by("compare").checked) await compare({ ...body, seed: chosen.seed }, mine);
    }
    if (running === mine) {
      running = null;
      busy(false);
      by("timings").replaceChildren(...timings(compiled, masks));
      if (drafts.length) showDrafts();
    }
  }
}

const seedOf = (typed) => (/^-?\d+$/.test(typed) ? typed : null);

// The answer of the same prompt to the same model, without a mask, and what is wrong with it.
async function compare(body, mine) {
  if (body.constraint.kind === "none") return;
  by("free").textContent = "...";
  by("free-part").hidden = false;
  try {
    const free = { ...body, confidence: 0, seed: seedOf(body.seed), speculate: null, masked: false };
    for await (const event of stream("generate", free, mine.signal)) {
      if (running !== mine) return;
      if (event.type === "end") by("free").textContent = event.text;
    }
    const found = await post("check", { constraint: body.constraint, document: by("free").textContent }, mine.signal);
    if (running !== mine) return;
    const fits = found.verdict === "accepted";
    by("free-verdict").className = fits ? "verdict good" : "verdict bad";
    by("free-verdict").textContent = fits ? "it fits as well" : `${found.verdict}: ${found.problem}`;
    const cause = found.causes?.[0];
    if (cause) by("free-verdict").append(` (#${cause.pointer}: ${cause.message})`);
  } catch (error) {
    if (error.name === "AbortError") by("free-part").hidden = true;
    else by("free").textContent = error.message;
  }
}

function reset() {
  for (const result of results()) result.classList.remove("old");
  tokens.clear();
  looks = new Map();
  drafts = [];
  traces = new Map();
  for (const id of ["samples", "drafts", "which", "calls", "fields", "beside", "free-part"]) by(id).hidden = true;
  for (const id of ["whole", "free", "free-verdict"]) by(id).textContent = "";
  by("summary").textContent = "";
  by("timings").replaceChildren();
  by("sample").replaceChildren();
}

function busy(is) {
  by("stop").disabled = !is;
  by("tokens").setAttribute("aria-busy", String(is));
}

function finished(event, counts) {
  const total = tokens.items.length;
  if (event.finish === "none") return say("no text was accepted: try another method or a smaller constraint", true);
  if (event.text === undefined) return say(`${counts.texts} texts drawn; law: ${counts.law}`);
  const parts = [`${total} tokens`, `${counts.forced} forced`, `${counts.constrained} constrained`, `${counts.free} free`];
  if (drafts.length) parts.push(`${counts.drafted} drafted`, `${(total / drafts.length).toFixed(1)} tokens a forward`);
  const end = event.finish === "length" ? "cut off at the limit" : generated.constraint.kind === "none" ? "done" : "complete and valid";
  say(`${end}: ${parts.join(", ")}`);
  by("beside").hidden = false;
  by("whole").textContent = event.text;
  if (event.calls.length) {
    by("calls").hidden = false;
    by("calls").replaceChildren(
      h("h3", null, "Tool calls"),
      h("ul", { class: "causes" }, event.calls.map((call) => h("li", null, h("code", null, `${call.name}(${call.arguments})`)))),
    );
  }
}

// How probable the value of each leaf is, between two bounds, and what else could stand there.
function showFields(fields) {
  by("fields").hidden = !fields.length;
  const between = (low, high) => (percent(low) === percent(high) ? percent(low) : `${percent(low)} to ${percent(high)}`);
  const alternative = ([text, low, high]) => h("div", null, h("code", null, text), ` ${between(low, high)}`);
  by("fields").replaceChildren(
    h("h3", null, "How probable each value is"),
    h(
      "table",
      { class: "fields" },
      h("tr", null, h("th", null, "place"), h("th", null, "value"), h("th", { class: "number" }, "probability"), h("th", null, "other values")),
      fields.map((one) =>
        h(
          "tr",
          null,
          h("td", null, h("code", null, one.pointer || "the text")),
          h("td", null, h("code", null, one.text)),
          h("td", { class: "number" }, between(one.low, one.high)),
          h("td", null, one.alternatives.map(alternative)),
        ),
      ),
    ),
  );
}

async function look(number) {
  if (!looks.has(number)) {
    const token = tokens.items[number];
    const body = {
      constraint: generated.constraint,
      tokens: tokens.items.slice(0, number).map((one) => one.id),
      refused: token.refused.map((one) => one.id),
      left: token.left,
    };
    const asking = post("look", body);
    looks.set(number, asking);
    asking.catch(() => looks.delete(number));
  }
  return looks.get(number);
}

// ---- samples ----

function showSamples(event) {
  const laws = { exact: "independent draws from the target", weighted: "properly weighted", approximate: "converging", local: "token by token", search: "no distribution" };
  const facts = [
    ["Law", `${event.law} (${laws[event.law] ?? ""})`],
    ["Method", event.method],
    ["Texts", `${event.n} of ${event.draws} draws, in ${event.forwards} forwards; effective size ${event.ess?.toFixed(1) ?? "?"}`],
  ];
  if (event.log_bracket) {
    const [low, high] = event.log_bracket.map((x) => (x === null ? "−∞" : x.toFixed(4)));
    facts.push(["log Z", `between ${low} and ${high}, certified`]);
  }
  if (event.log_evidence !== null) facts.push(["Estimate", event.log_evidence.toFixed(4)]);
  if (event.tv_bound !== null) facts.push(["Distance", `of the next draw from the target: ${percent(event.tv_bound)} at most`]);
  for (const reason of event.reasons) facts.push(["Note", reason]);
  if (event.stopped) facts.push(["Stopped", event.stopped]);
  by("samples").hidden = false;
  by("samples-body").replaceChildren(
    h("dl", { class: "facts" }, facts.map(([name, value]) => [h("dt", null, name), h("dd", null, value)])),
    h(
      "table",
      { id: "posterior" },
      h("caption", null, "Posterior over texts"),
      h("tr", null, h("th", null, "text"), h("th", { class: "number" }, "drawn"), h("th", { class: "number" }, "probability"), h("th", null, "share")),
      event.posterior.map((one) =>
        h(
          "tr",
          null,
          h("td", null, h("code", null, one.text)),
          h("td", { class: "number" }, String(one.count)),
          h("td", { class: "number" }, percent(one.p)),
          h("td", null, h("meter", { min: 0, max: 1, value: one.p, "aria-hidden": "true" })),
        ),
      ),
    ),
    event.others ? h("p", { class: "hint" }, `and ${event.others} more`) : "",
    event.brackets.length ? h("h3", null, "Bracket of log Z over the draws") : "",
    event.brackets.length ? bracket(event.brackets) : "",
    event.trie.length ? h("h3", null, "Trie of what was explored; struck out: no text of the language begins so") : "",
    event.trie.length ? h("div", { class: "picture", id: "trie", tabindex: 0, role: "group", "aria-label": "Trie" }, trie(event.trie)) : "",
  );
  by("sample").replaceChildren(...event.posterior.slice(0, 6).map((one) => h("option", { value: one.text }, one.text.slice(0, 120))));
}

function showTrace(text) {
  by("which").hidden = false;
  by("sample").value = text;
  tokens.clear();
  looks = new Map();
  for (const token of traces.get(text) ?? []) tokens.add(token);
}

// ---- drafts ----

function showDrafts() {
  by("drafts").hidden = false;
  by("forward").max = String(drafts.length);
  const all = drafts.reduce((sum, step) => sum + step.nodes.length, 0);
  const taken = drafts.reduce((sum, step) => sum + step.nodes.filter((n) => n.accepted).length, 0);
  by("drafts-summary").textContent = `${drafts.length} forwards, ${all} drafts, ${taken} accepted. Solid: accepted; dashed: not what the model drew.`;
  // The first forward that had drafts shows what this is about.
  const best = drafts.reduce((found, step, i) => (step.nodes.length > drafts[found].nodes.length ? i : found), 0);
  showForward(best);
}

function showForward(number) {
  const step = drafts[number];
  by("forward").value = String(number + 1);
  by("forward-number").textContent = `${number + 1} of ${drafts.length}: ${step.emitted} tokens`;
  by("drafts-tree").replaceChildren(
    step.nodes.length ? draftTree(step) : h("p", { class: "hint" }, "Nobody proposed anything."),
  );
}

function showForwardOf(token) {
  if (by("drafts").hidden) return;
  const number = drafts.findIndex((step) => token >= step.first && token < step.first + step.emitted);
  if (number >= 0) showForward(number);
}

// ---- beginning ----

function showExample(number) {
  const one = examples[number];
  if (!one) return;
  restore({
    kind: one.kind,
    text: one.text,
    prompt: one.prompt,
    document: one.document,
    choice: one.tool_choice ?? "auto",
    method: one.method ?? (one.speculate ? "speculate" : "plain"),
    count: one.n ?? 40,
    temperature: one.temperature ?? info.temperature ?? 0,
    max_tokens: one.max_tokens ?? 256,
    seed: "",
  });
  by("example").value = String(number);
  by("about").hidden = !one.about;
  by("about").textContent = one.about ?? "";
}

function listExamples() {
  const groups = new Map();
  examples.forEach((one, i) => {
    if (!groups.has(one.group)) groups.set(one.group, h("optgroup", { label: one.group }));
    groups.get(one.group).append(h("option", { value: i }, one.name));
  });
  by("example").replaceChildren(h("option", { value: "" }, "(your own)"), ...groups.values());
}

async function share() {
  const address = await addressOf(state());
  history.replaceState(null, "", address);
  say((await copied(address)) ? "the link is in the clipboard and in the address bar" : "the link is in the address bar");
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // without TLS on another machine's address there is no clipboard
  }
}

async function copy(name, text) {
  if (await copied(text)) return say(`${name} is in the clipboard`);
  typed.value = text;
  say(`this browser has no clipboard here: ${name} stands under "Check a text"`, true);
}

function theme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  localStorage.setItem("structgen-theme", name);
}

async function begin() {
  try {
    [info, { examples }] = await Promise.all([get("info"), get("examples")]);
  } catch (error) {
    return failed(error);
  }
  by("key-form").hidden = true;
  by("model").textContent = `${info.model}: ${info.vocabulary.toLocaleString("en")} tokens${info.context ? `, context ${info.context.toLocaleString("en")}` : ""}; structgen ${info.version}`;
  by("max-tokens").max = String(info.max_tokens);
  by("methods").replaceChildren(
    ...Object.entries(info.methods).map(([name, says]) => h("option", { value: name }, `${name}: ${says}`)),
  );
  listExamples();
  say("");
  const saved = await stateOf(location.hash);
  if (saved) restore(saved);
  else {
    // A link generates nothing by itself: what it asks for is a stranger's choice.
    showExample(0);
    await generate(true);
  }
  document.documentElement.dataset.ready = "yes";
}

by("ask").addEventListener("input", outdated);
by("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  generate();
});
by("stop").addEventListener("click", () => running?.abort());
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    generate();
  } else if (event.key === "Escape" && running) running.abort();
});
for (const input of document.querySelectorAll("input[name=kind], #order, #whitespace, #choice")) {
  input.addEventListener("change", () => {
    arrange();
    changed();
  });
}
by("method").addEventListener("change", arrange);
by("example").addEventListener("change", () => by("example").value !== "" && showExample(Number(by("example").value)));
by("sample").addEventListener("change", () => traces.has(by("sample").value) && showTrace(by("sample").value));
by("forward").addEventListener("input", () => showForward(Number(by("forward").value) - 1));
by("share").addEventListener("click", share);
by("copy-python").addEventListener("click", () => copy("the program", pythonOf(state(), info)));
by("copy-curl").addEventListener("click", () => copy("the command", curlOf(state(), info, location.origin, hasKey())));
by("theme").addEventListener("change", () => theme(by("theme").value));
by("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  useKey(by("key").value);
  begin();
});
window.addEventListener("hashchange", async () => {
  const saved = await stateOf(location.hash);
  if (saved) restore(saved);
});
by("theme").value = localStorage.getItem("structgen-theme") ?? "auto";
theme(by("theme").value);
begin();
