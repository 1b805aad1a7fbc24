// SPDX-License-Identifier: Apache-2.0
// The box to write in. Enter sends, Shift+Enter begins a line.
import { el, icon, set } from "./dom.js";

const SEND = "M3 20l18-8L3 4v6l12 2-12 2z";

export class Composer {
  // onSend(text), onTyped()
  constructor(onSend, onTyped) {
    this.onSend = onSend;
    this.input = el("textarea", { rows: "1", oninput: onTyped, onkeydown: (event) => this.#key(event), dir: "auto" });
    this.element = el("form", { class: "composer", onsubmit: (event) => this.#submit(event) },
      this.input, el("button", { class: "send", type: "submit", "aria-label": "Send" }, icon(SEND)));
    this.drafts = new Map();
    this.key = null;
  }

  // What is being written belongs to `key`: another key, another draft.
  draw(key, label) {
    if (key !== this.key) {
      this.drafts.set(this.key, this.input.value);
      this.input.value = this.drafts.get(key) ?? "";
      this.key = key;
    }
    set(this.input, "aria-label", label);
    set(this.input, "placeholder", label);
  }

  focus() {
    this.input.focus();
  }

  #key(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    this.#submit(event);
  }

  #submit(event) {
    event.preventDefault();
    const text = this.input.value.trim();
    if (text === "") return;
    this.input.value = "";
    this.onSend(text);
  }
}
