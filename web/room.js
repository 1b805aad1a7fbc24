// SPDX-License-Identifier: Apache-2.0
// The open channel: its head, its messages, who types, and the box to write in.
import { Composer } from "./composer.js";
import { el, icon, set, setText } from "./dom.js";
import { Messages } from "./messages.js";
import { composeText } from "./text.js";

const BACK = "M15 5l-7 7 7 7";
const PICK = "Pick a channel.";
const NOWHERE = "The link leads to a channel that you are not in.";
const LEVELS = { default: "As usual", all: "Every message", mentions: "Mentions only", none: "Nothing" };
const AWAY = "Reconnecting… What you write is sent when the service is back.";

export class Room {
  constructor(device) {
    this.device = device;
    const { client } = device;
    this.messages = new Messages(device, "Messages", {
      channel: () => client.open,
      onThread: (message) => device.openThread(client.open, message.thread_ts ?? message.ts),
      onUnread: (message) => client.markUnread(client.open, message.ts),
      onOlder: () => client.loadOlder(client.open),
      onSettled: () => this.focus(),
    });
    this.composer = new Composer((text) => this.#send(text), () => client.typed(client.open));
    this.title = el("h2", { dir: "auto" });
    this.about = el("p", { class: "about", dir: "auto" });
    this.mute = el("button", { class: "plain", type: "button", onclick: () => client.toggleMute(client.open) }, "Mute");
    this.level = el("select", { class: "plain", "aria-label": "Notify about", onchange: () => client.setLevel(client.open, this.level.value) },
      Object.entries(LEVELS).map(([value, text]) => el("option", { value }, text)));
    this.typing = el("p", { class: "typing" });
    this.lead = el("p", { class: "lead" }, PICK);
    this.empty = el("div", { class: "empty" }, this.lead,
      el("p", {}, "What is new to you has a number beside it, and loses it here as on every other device once you have seen it."));
    this.content = el("div", { class: "column" },
      el("header", { class: "head" },
        el("button", { class: "plain back", type: "button", "aria-label": "Back to channels", onclick: () => device.close() }, icon(BACK)),
        el("div", { class: "titles" }, this.title, this.about), this.level, this.mute),
      this.messages.element, this.typing, this.composer.element);
    this.element = el("section", { class: "room" }, this.empty, this.content);
  }

  focus() {
    this.composer.focus();
  }

  // A link was followed to where its reader may not look, or to nowhere.
  leadsNowhere() {
    setText(this.lead, NOWHERE);
  }

  draw() {
    const { client } = this.device;
    const channel = client.open;
    this.empty.hidden = channel !== null;
    this.content.hidden = channel === null;
    const name = channel === null ? "Channel" : client.channelTitle(channel);
    set(this.element, "aria-label", this.device.nameOf(name));
    if (channel === null) return;
    setText(this.lead, PICK);
    setText(this.title, name);
    setText(this.about, about(channel));
    set(this.mute, "aria-pressed", channel.isMuted);
    if (this.level.value !== channel.notify) this.level.value = channel.notify;
    this.messages.draw(channel.timeline, client.outbox.of(channel, undefined), channel.unread);
    this.composer.draw(channel.id, `Message ${name}`);
    setText(this.typing, client.state === "offline" ? AWAY : typingText(client.whoTypes(channel)));
    set(this.typing, "data-state", client.state);
  }

  #send(text) {
    const { client } = this.device;
    client.post(client.open, composeText(text, (name) => client.people.idOf(name)), undefined);
    this.messages.toEnd();
  }
}

function about(channel) {
  const members = channel.members > 0 ? `${channel.members} ${channel.members === 1 ? "member" : "members"}` : "";
  return [members, channel.topic].filter((part) => part !== "").join(" · ");
}

function typingText(names) {
  if (names.length === 0) return "";
  if (names.length > 2) return "Several people are typing…";
  return `${names.join(" and ")} ${names.length === 1 ? "is" : "are"} typing…`;
}
