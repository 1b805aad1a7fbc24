// SPDX-License-Identifier: Apache-2.0
// Beside the room: the list of followed threads, or one thread.
import { Composer } from "./composer.js";
import { el, icon, reconcile, set, setText } from "./dom.js";
import { Messages } from "./messages.js";
import { authorOf, composeText, messageText, plainText, repliesText } from "./text.js";

const CLOSE = "M6 6l12 12M18 6L6 18";

export class Pane {
  constructor(device) {
    this.device = device;
    this.messages = new Messages(device, "Messages of the thread", {
      channel: () => device.client.thread.channel,
      onSettled: () => this.composer.focus(),
    });
    this.composer = new Composer((text) => this.#send(text), () => {});
    this.title = el("h2", { tabindex: "-1" });
    this.about = el("p", { class: "about", dir: "auto" });
    this.list = el("ul", { class: "threads" });
    this.none = el("p", { class: "empty" }, "Threads you follow come here.");
    this.thread = el("div", { class: "column" }, this.messages.element, this.composer.element);
    this.element = el("section", { class: "pane", onkeydown: (event) => this.#key(event) },
      el("header", { class: "head" }, el("div", { class: "titles" }, this.title, this.about),
        el("button", { class: "plain", type: "button", "aria-label": "Close", onclick: () => device.closePane() }, icon(CLOSE))),
      this.list, this.none, this.thread);
  }

  focus() {
    if (this.device.client.thread) this.composer.focus();
    else (this.list.querySelector("button") ?? this.title).focus();
  }

  // Whether what has the focus is not shown any more.
  get hasLostFocus() {
    return this.thread.hidden && this.thread.contains(document.activeElement);
  }

  // From the head of a list that was empty to its first thread.
  focusFirst() {
    if (document.activeElement === this.title) this.focus();
  }

  draw() {
    const { client } = this.device;
    const { thread, threads } = client;
    this.element.hidden = thread === null && threads === null;
    this.thread.hidden = thread === null;
    this.list.hidden = thread !== null || threads === null;
    this.none.hidden = this.list.hidden || threads.length > 0;
    setText(this.title, thread ? "Thread" : "Threads");
    set(this.element, "aria-label", this.device.nameOf(thread ? "Thread" : "Threads"));
    setText(this.about, thread ? client.channelTitle(thread.channel) : "");
    if (thread) this.#drawThread(thread);
    else if (threads) this.#drawList(threads);
  }

  #drawThread(thread) {
    const { client } = this.device;
    this.messages.draw(thread.timeline, client.outbox.of(thread.channel, thread.ts), 0);
    this.composer.draw(`${thread.channel.id} ${thread.ts}`, "Reply…");
  }

  #drawList(threads) {
    const { client, names } = this.device;
    reconcile(this.list, threads, {
      key: (thread) => `${thread.channel} ${thread.thread_ts}`,
      make: (thread) => el("li", {}, el("button", {
        class: "followed", type: "button",
        onclick: () => this.device.openThread(client.channel(thread.channel), thread.thread_ts),
      }, el("span", { class: "where", dir: "auto" }), el("span", { class: "preview", dir: "auto" }), el("span", { class: "count" }))),
      update: (element, { channel, root, unread_count: unread }) => {
        setText(element.querySelector(".where"), `${client.channelTitle(client.channel(channel))} · ${authorOf(root, names)}`);
        setText(element.querySelector(".preview"), plainText(messageText(root) || "This message was deleted.", names));
        setText(element.querySelector(".count"), unread > 0 ? `${unread} new` : repliesText(root));
        element.firstChild.classList.toggle("unread", unread > 0);
      },
    });
  }

  #key(event) {
    if (event.key === "Escape") this.device.closePane();
  }

  #send(text) {
    const { client } = this.device;
    const { channel, ts } = client.thread;
    client.post(channel, composeText(text, (name) => client.people.idOf(name)), ts);
    this.messages.toEnd();
  }
}
