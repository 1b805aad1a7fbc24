// SPDX-License-Identifier: Apache-2.0
// The list of channels with their badges, in an order that stays, and what of it is shown.
import { el, icon, reconcile, set, setText } from "./dom.js";

const STATES = { online: "Connected", offline: "Reconnecting…", connecting: "Connecting…" };
const BADGE_MAX = 99;
const THREADS = "M4 5h16v10H10l-4 4v-4H4zM8 9h8M8 12h5";
const BELL = "M6 16V11a6 6 0 0 1 12 0v5l2 2H4zM10 21h4";
const ORDER = new Intl.Collator([], { numeric: true });

export class Sidebar {
  constructor(device) {
    this.device = device;
    this.order = []; // of all channels, as last drawn
    this.team = el("p", { class: "team", dir: "auto" });
    this.user = el("span", { dir: "auto" });
    this.state = el("span", { class: "state", role: "status" });
    this.notices = el("button", { class: "plain", type: "button", "aria-label": "Notifications", onclick: () => device.notices.open() }, icon(BELL));
    this.find = el("input", {
      type: "search", placeholder: "Find a channel", "aria-label": "Find a channel",
      oninput: () => this.draw(), onkeydown: (event) => this.#findKey(event),
    });
    this.unread = el("button", { class: "plain", type: "button", "aria-pressed": false, onclick: () => this.#toggleUnread() }, "Unread");
    this.threads = row(() => device.openThreads(), icon(THREADS));
    setText(this.threads.querySelector(".label"), "Threads");
    this.channels = el("ul");
    this.direct = el("ul");
    this.directHead = el("h2", {}, "Direct messages");
    this.list = el("div", { class: "list", onkeydown: (event) => this.#move(event), onfocusin: (event) => this.#stopAt(event.target) },
      this.threads, el("h2", {}, "Channels"), this.channels, this.directHead, this.direct);
    this.element = el("nav", { class: "side", "aria-label": device.nameOf("Channels") },
      el("div", { class: "head" }, this.team, el("p", { class: "self" }, this.user, this.state)),
      el("div", { class: "find" }, this.find, this.unread, this.notices), this.list);
  }

  focus(channel) {
    const rows = this.#rows();
    (rows.find((button) => button.dataset.channel === channel?.id) ?? rows[0]).focus();
  }

  draw() {
    const { client, label } = this.device;
    setText(this.team, client.me.team || "Tidings");
    setText(this.user, [client.me.name, label].filter((part) => part !== "").join(" · "));
    setText(this.state, STATES[client.state]);
    set(this.state, "data-state", client.state);
    badge(this.threads, "Threads", { unread: client.threadsUnread, mentions: 0 });
    set(this.threads, "aria-current", client.threads !== null && "true");
    const all = this.#shown();
    this.#list(this.channels, all.filter(({ channel }) => channel.kind === "channel"));
    const direct = all.filter(({ channel }) => channel.kind !== "channel");
    this.#list(this.direct, direct);
    this.directHead.hidden = direct.length === 0;
    this.#stopAt(this.stop);
  }

  // What a row shows, and all of it in a stamp: most draws change one row of perhaps a thousand.
  #entry(channel) {
    const name = this.device.client.channelName(channel);
    const isOpen = channel === this.device.client.open;
    const { kind, isPrivate, unread, mentions, hasUnread, isMuted } = channel;
    return { channel, name, isOpen, stamp: JSON.stringify([name, isOpen, kind, isPrivate, unread, mentions, hasUnread, isMuted]) };
  }

  // All entries in order. They are sorted from the order of the last draw, in which next to nothing is out of place.
  #sorted() {
    const { channels } = this.device.client;
    const entries = [...new Set([...this.order, ...channels.values()])]
      .filter((channel) => channels.get(channel.id) === channel)
      .map((channel) => this.#entry(channel))
      .sort((one, other) => ORDER.compare(one.name, other.name));
    this.order = entries.map(({ channel }) => channel);
    return entries;
  }

  // The entries that stand in the list.
  #shown() {
    const wanted = this.find.value.trim().toLowerCase();
    const isUnreadOnly = this.unread.getAttribute("aria-pressed") === "true";
    return this.#sorted()
      .filter(({ channel, isOpen }) => !isUnreadOnly || isLoud(channel) || isOpen)
      .filter(({ name }) => name.toLowerCase().includes(wanted));
  }

  #list(list, entries) {
    reconcile(list, entries, {
      key: ({ channel }) => channel.id,
      make: ({ channel }) => {
        const button = row(() => this.#open(channel), el("span", { class: "mark", "aria-hidden": "true" }));
        button.dataset.channel = channel.id;
        return el("li", {}, button);
      },
      update: (item, entry) => this.#update(item.firstChild, entry),
      same: (one, other) => one.stamp === other.stamp,
    });
  }

  #update(button, { channel, name, isOpen }) {
    setText(button.querySelector(".mark"), channel.kind === "channel" ? (channel.isPrivate ? "◆" : "#") : "@");
    setText(button.querySelector(".label"), name);
    badge(button, name, channel);
    set(button, "aria-current", isOpen && "true");
    button.classList.toggle("muted", channel.isMuted);
  }

  #open(channel) {
    this.find.value = "";
    this.device.open(channel);
  }

  #toggleUnread() {
    set(this.unread, "aria-pressed", this.unread.getAttribute("aria-pressed") !== "true");
    this.draw();
  }

  // Enter opens the first that was found, Escape shows all again.
  #findKey(event) {
    const found = this.list.querySelector("[data-channel]");
    if (event.key === "Enter" && found) found.click();
    else if (event.key === "ArrowDown") (found ?? this.threads).focus();
    else if (event.key === "Escape") this.find.value = "";
    else return;
    event.preventDefault();
    this.draw();
  }

  // Arrows go up and down the list, which is one stop of Tab, however long it is.
  #move(event) {
    const rows = this.#rows();
    const at = rows.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (to === undefined) return;
    rows[to]?.focus();
    event.preventDefault();
  }

  #stopAt(wanted) {
    if (this.stop) set(this.stop, "tabindex", "-1");
    this.stop = this.list.contains(wanted) ? wanted : this.threads;
    set(this.stop, "tabindex", "0");
  }

  #rows() {
    return [...this.list.querySelectorAll("button")];
  }
}

function row(onclick, mark) {
  return el("button", { class: "row", type: "button", tabindex: "-1", onclick }, mark,
    el("span", { class: "label", dir: "auto" }), el("span", { class: "badge", "aria-hidden": "true" }));
}

// Whether it asks for attention. A muted channel does where it mentions one.
function isLoud({ mentions, hasUnread, isMuted }) {
  return hasUnread && (!isMuted || mentions > 0);
}

// Draws the count, and says it in the button's name.
function badge(button, name, { unread, mentions, hasUnread = unread > 0, isMuted = false }) {
  const element = button.querySelector(".badge");
  const number = isMuted && mentions > 0 ? mentions : unread;
  const isShown = isLoud({ mentions, hasUnread, isMuted });
  setText(element, !isShown ? "" : number === 0 ? "•" : number > BADGE_MAX ? `${BADGE_MAX}+` : String(number));
  element.classList.toggle("mentioned", mentions > 0);
  button.classList.toggle("unread", isShown);
  const words = [name];
  if (unread > 0) words.push(`${unread} unread`);
  else if (hasUnread) words.push("unread");
  if (mentions > 0) words.push(`${mentions} ${mentions === 1 ? "mention" : "mentions"}`);
  if (isMuted) words.push("muted");
  set(button, "aria-label", words.join(", "));
}
