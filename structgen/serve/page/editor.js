// A text field with colours and marks. Enters: a text, places to mark. Leaves: what is typed, by `onchange`.
// The field itself stays a plain textarea: keyboard, selection, undo and screen readers work as everywhere.

import { h } from "./dom.js";
import { highlight } from "./highlight.js";

export class Editor {
  // options: id, rows, describedby (the element that words the marks), onchange
  constructor(parent, options) {
    this.language = undefined;
    this.marks = []; // {start, end, kind: "error" | "note"}
    this.field = h("textarea", {
      id: options.id,
      rows: options.rows,
      spellcheck: "false",
      autocapitalize: "off",
      autocomplete: "off",
      "aria-describedby": options.describedby,
    });
    // It scrolls with the field: without the tabindex browsers make what scrolls a stop of the Tab key.
    this.copy = h("pre", { "aria-hidden": "true", tabindex: -1 });
    parent.classList.add("editor");
    parent.append(this.copy, this.field);
    this.field.addEventListener("input", () => {
      this.marks = []; // their places are no longer right
      this.draw();
      options.onchange();
    });
    this.field.addEventListener("scroll", () => this.follow());
    new ResizeObserver(() => this.follow()).observe(this.field);
  }

  get value() {
    return this.field.value;
  }

  set value(text) {
    this.field.value = text;
    this.marks = [];
    this.draw();
  }

  show(language) {
    this.language = language;
    this.draw();
  }

  mark(marks) {
    this.marks = marks.filter((m) => m && Number.isInteger(m.start)).sort((a, b) => a.start - b.start);
    const wrong = this.marks.some((m) => m.kind === "error");
    this.field.setAttribute("aria-invalid", wrong ? "true" : "false");
    this.draw();
  }

  goTo(place) {
    this.field.focus();
    this.field.setSelectionRange(place.start, Math.max(place.end, place.start));
    const marked = this.copy.querySelector("mark");
    if (marked) this.field.scrollTop = Math.max(0, marked.offsetTop - this.field.clientHeight / 2);
  }

  follow() {
    this.copy.scrollTop = this.field.scrollTop;
  }

  draw() {
    // A textarea has line feeds only; places count in the same text.
    const text = this.field.value;
    const pieces = [];
    let at = 0;
    const plain = (from, to, kind) => {
      if (to > from) pieces.push(kind ? h("span", { class: kind }, text.slice(from, to)) : text.slice(from, to));
    };
    const spans = highlight(text, this.language);
    let next = 0;
    const coloured = (from, to) => {
      let here = from;
      while (next < spans.length && spans[next][0] < to) {
        const [start, end, kind] = spans[next];
        plain(here, Math.max(here, start), "");
        plain(Math.max(here, start), Math.min(end, to), kind);
        here = Math.max(here, Math.min(end, to));
        if (end > to) break;
        next += 1;
      }
      plain(here, to, "");
    };
    for (const mark of this.marks) {
      if (mark.start < at || mark.start > text.length) continue;
      coloured(at, mark.start);
      const inside = pieces.length;
      coloured(mark.start, Math.min(mark.end, text.length));
      const content = pieces.splice(inside);
      const kinds = [mark.kind, content.length && text.slice(mark.start, mark.end) !== "\n" ? "" : "end"];
      pieces.push(h("mark", { class: kinds.join(" ").trim() }, content));
      at = Math.max(at, Math.min(mark.end, text.length));
    }
    coloured(at, text.length);
    this.copy.replaceChildren(...pieces, "\n");
    this.follow();
  }
}
