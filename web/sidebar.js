// SPDX-License-Identifier: Apache-2.0
// The list of channels with their badges, in an order that stays.
import { el, icon, reconcile, set, setText } from "./dom.js";

const STATES = { online: "Connected", offline: "Reconnecting…", connecting: "Connecting…" };
const BADGE_MAX = 99;
const THREADS = "M4 5h16v10H10l-4 4v-4H4zM8 9h8M8 12h5";

export class Sidebar {
  constructor(device) {
    this.device = device;
    this.team = el("p", { class: "team", dir: "auto" });
    this.user = el("span", { dir: "auto" });
    this.state = el("span", { class: "state", role: "status" });
    this.threads = row(() => device.openThreads(), icon(THREADS));
    setText(this.threads.querySelector(".label"), "Threads");
    this.channels = el("ul");
    this.direct = el("ul");
    this.directHead = el("h3", {}, "Direct messages");
    this.element = el("nav", { class: "side", "aria-label": "Channels" },
      el("div", { class: "head" }, this.team, el("p", { class: "self" }, this.user, this.state)),
      el("div", { class: "list", onkeydown: (event) => this.#move(event) },
        this.threads, el("h3", {}, "Channels"), this.channels, this.directHead, this.direct));
  }

  focus(channel) {
    const buttons = [...this.element.querySelectorAll("button")];
    (buttons.find((button) => button.dataset.channel === channel?.id) ?? buttons[0]).focus();
  }

  draw() {
    const { client } = this.device;
    setText(this.team, client.me.team || "Tidings");
    setText(this.user, client.me.name);
    setText(this.state, STATES[client.state]);
    set(this.state, "data-state", client.state);
    badge(this.threads, "Threads", { unread: client.threadsUnread, mentions: 0 });
    set(this.threads, "aria-current", client.threads !== null && "true");
    const all = [...client.channels.values()].sort((one, other) =>
      client.channelName(one).localeCompare(client.channelName(other)));
    this.#list(this.channels, all.filter((channel) => channel.kind === "channel"));
    const direct = all.filter((channel) => channel.kind !== "channel");
    this.#list(this.direct, direct);
    this.directHead.hidden = direct.length === 0;
  }

  #list(list, channels) {
    reconcile(list, channels, {
      key: (channel) => channel.id,
      make: (channel) => {
        const button = row(() => this.device.open(channel), el("span", { class: "mark", "aria-hidden": "true" }));
        button.dataset.channel = channel.id;
        return el("li", {}, button);
      },
      update: (item, channel) => this.#update(item.firstChild, channel),
    });
  }

  #update(button, channel) {
    const name = this.device.client.channelName(channel);
    setText(button.querySelector(".mark"), channel.kind === "channel" ? (channel.isPrivate ? "◆" : "#") : "@");
    setText(button.querySelector(".label"), name);
    badge(button, name, channel);
    set(button, "aria-current", channel === this.device.client.open && "true");
    button.classList.toggle("muted", channel.isMuted);
  }

  // Arrows go up and down the list, as Tab does.
  #move(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    const buttons = [...this.element.querySelectorAll("button")];
    buttons[buttons.indexOf(document.activeElement) + step]?.focus();
    event.preventDefault();
  }
}

function row(onclick, mark) {
  return el("button", { class: "row", type: "button", onclick }, mark,
    el("span", { class: "label", dir: "auto" }), el("span", { class: "badge", "aria-hidden": "true" }));
}

// Draws the count, and says it in the button's name.
function badge(button, name, { unread, mentions, hasUnread = unread > 0, isMuted = false }) {
  const element = button.querySelector(".badge");
  const number = isMuted && mentions > 0 ? mentions : unread;
  const isShown = hasUnread && (!isMuted || mentions > 0);
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
