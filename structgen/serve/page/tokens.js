// The text as it is generated, one box a token, and what is known of the one that is looked at.
// Enters: events of a generation. Leaves: boxes, and details on hover and focus.

import { h, by, percent, quotedToken, seconds, shownToken } from "./dom.js";

const KINDS = { forced: "forced", constrained: "constrained", free: "free" };

export class Tokens {
  // look(index): a promise of the parse state there and of the reasons; chosen(index): a token was looked at
  constructor(look, chosen) {
    this.box = by("tokens");
    this.details = by("details");
    this.hint = this.details.firstElementChild;
    this.look = look;
    this.chosen = chosen;
    this.items = [];
    this.current = -1;
    this.box.addEventListener("keydown", (event) => this.key(event));
    const over = (event) => {
      const number = this.number(event.target);
      if (number >= 0 && number !== this.current) this.choose(number);
    };
    this.box.addEventListener("pointerover", over);
    this.box.addEventListener("focusin", over);
    this.box.addEventListener("click", over);
  }

  clear() {
    this.items = [];
    this.current = -1;
    this.box.replaceChildren();
    this.details.replaceChildren(this.hint);
  }

  number(target) {
    const button = target.closest?.("button.token");
    return button ? Number(button.dataset.number) : -1;
  }

  add(token) {
    const number = this.items.length;
    this.items.push(token);
    const kinds = ["token", KINDS[token.kind] ?? "free"];
    const drafted = token.drafters.length > 0;
    if (drafted) kinds.push("drafted");
    const words = `${quotedToken(token)}, ${token.kind}${drafted ? ", drafted" : ""}, ${percent(token.masked)}`;
    const button = h(
      "button",
      { type: "button", class: kinds.join(" "), tabindex: number ? -1 : 0, "aria-label": words },
      visible(token),
    );
    button.dataset.number = String(number);
    const atEnd = this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < 40;
    this.box.append(button);
    if (token.text?.includes("\n")) this.box.append(h("br"));
    if (atEnd) this.box.scrollTop = this.box.scrollHeight;
  }

  button(number) {
    return this.box.querySelector(`button[data-number="${number}"]`);
  }

  key(event) {
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    const here = this.number(event.target);
    let next = here + (steps[event.key] ?? 0);
    if (event.key === "Home") next = 0;
    if (event.key === "End") next = this.items.length - 1;
    if (here < 0 || next === here || next < 0 || next >= this.items.length) return;
    event.preventDefault();
    this.button(here).tabIndex = -1;
    const button = this.button(next);
    button.tabIndex = 0;
    button.focus();
  }

  choose(number) {
    this.button(this.current)?.classList.remove("chosen");
    this.current = number;
    this.button(number)?.classList.add("chosen");
    this.describe(this.items[number]);
    this.chosen?.(number);
    const wanted = this.items[number];
    clearTimeout(this.timer);
    this.timer = setTimeout(async () => {
      try {
        const found = await this.look(number);
        if (this.items[number] === wanted && this.current === number) this.describe(wanted, found);
      } catch (error) {
        if (error.name !== "AbortError" && this.current === number) this.describe(wanted, { failed: error.message });
      }
    }, 60);
  }

  describe(token, found) {
    const taken = 1 - token.kept;
    const who = {
      forced: "forced: the grammar allows this token alone",
      constrained: `constrained: the grammar took ${percent(taken)} of the probability`,
      free: "free: the grammar took next to nothing",
    }[token.kind];
    const facts = [
      ["Token", h("code", null, quotedToken(token)), ` (id ${token.id})`],
      ["Decided by", who],
      ["Probability", percent(token.p), " before the mask, ", percent(token.masked), " after it"],
      ["Allowed", `${token.allowed} tokens, which had ${percent(token.kept)} of the probability`],
      ["Mask", seconds(token.mask_seconds)],
    ];
    if (token.drafters.length) facts.push(["Drafted by", token.drafters.join(", ")]);
    facts.push(...stateFacts(found));
    const reasons = new Map((found?.refused ?? []).map((one) => [one.id, one.reason]));
    this.details.replaceChildren(
      h("dl", { class: "facts" }, facts.map(([name, ...value]) => [h("dt", null, name), h("dd", null, value)])),
      h("div", { class: "two" }, best(token), refused(token, reasons, found)),
    );
  }
}

function visible(token) {
  const text = shownToken(token);
  if (token.text !== undefined && !text.trim()) {
    return h("span", { class: "blank" }, text.replaceAll(" ", "␣").replaceAll("\t", "⇥").replaceAll("\n", "⏎"));
  }
  return text.replaceAll("\n", "⏎");
}

function stateFacts(found) {
  if (!found) return [["Parse state", "..."]];
  if (found.failed) return [["Parse state", found.failed]];
  const state = found.state;
  const facts = [];
  if (state.pointer !== undefined) {
    facts.push(["Reading", state.in_key ? "a key of " : "", h("code", null, `#${state.pointer}`)]);
  }
  facts.push(["May come", h("span", { class: "mono" }, state.next)]);
  if (state.forced) facts.push(["Must come", h("code", null, state.forced)]);
  if (state.may_end !== undefined) facts.push(["May end here", state.may_end ? "yes" : "no"]);
  if (state.least_tokens) facts.push(["To the end", `${state.least_tokens} tokens ${state.least_exact ? "at least" : "suffice"}`]);
  if (state.shortest) facts.push(["Shortest way", h("code", null, state.shortest)]);
  return facts;
}

function best(token) {
  return h(
    "table",
    null,
    h("caption", null, "Likeliest allowed tokens"),
    h("tr", null, h("th", null, "token"), h("th", { class: "number" }, "before"), h("th", { class: "number" }, "after")),
    token.best.map((one) =>
      h(
        "tr",
        null,
        h("td", null, h("code", null, quotedToken(one))),
        h("td", { class: "number" }, percent(one.p)),
        h("td", { class: "number" }, percent(one.masked)),
      ),
    ),
  );
}

function refused(token, reasons, found) {
  if (!token.refused.length) return h("p", { class: "hint" }, "No token is forbidden here.");
  return h(
    "table",
    null,
    h("caption", null, "Likeliest forbidden tokens"),
    h("tr", null, h("th", null, "token"), h("th", { class: "number" }, "before"), h("th", null, "why not")),
    token.refused.map((one) =>
      h(
        "tr",
        null,
        h("td", null, h("code", null, quotedToken(one))),
        h("td", { class: "number" }, percent(one.p)),
        h("td", null, reasons.get(one.id) ?? (found ? "" : "...")),
      ),
    ),
  );
}
