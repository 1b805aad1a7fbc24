// SPDX-License-Identifier: Apache-2.0
// What one device shows: sidebar, room and pane, drawn anew at most once a frame.
import { Client } from "./client.js";
import { el, set } from "./dom.js";
import { Notices } from "./notices.js";
import { Pane } from "./pane.js";
import { Room } from "./room.js";
import { Sidebar } from "./sidebar.js";
import { authorOf, messageText, plainText } from "./text.js";

export class Device {
  // onRefused(error): the token is no good; said once, and not after stop().
  constructor(token, index, count, onDrawn, onRefused) {
    this.label = count > 1 ? `Device ${index + 1}` : "";
    this.key = `tidings.open.${index}`;
    this.onDrawn = onDrawn;
    this.onRefused = onRefused;
    this.isDue = false;
    this.client = new Client(token, () => this.#drawSoon(), (message) => this.#tell(message), (error) => this.#refused(error));
    this.names = namesOf(this.client);
    this.notices = new Notices(this);
    this.sidebar = new Sidebar(this);
    this.room = new Room(this);
    this.pane = new Pane(this);
    this.live = el("p", { class: "unseen", "aria-live": "polite" });
    this.element = el("section", { class: "device", "aria-label": this.label || "Chat" },
      el("div", { class: "layout" }, this.sidebar.element, this.room.element, this.pane.element), this.notices.element, this.live);
    this.client.views = { room: this.room.messages, pane: this.pane.messages };
    this.onVisible = () => {
      if (this.isDue) this.#draw();
      this.client.markSoon();
      if (!document.hidden) this.client.readNotices().catch(() => {}); // set elsewhere, meanwhile
    };
    document.addEventListener("visibilitychange", this.onVisible);
    this.#draw();
  }

  // Names of parts are told apart where there are two devices.
  nameOf(part) {
    return this.label ? `${part}, ${this.label.toLowerCase()}` : part;
  }

  // `link`: the message to show first, or null.
  async start(link) {
    try {
      await this.client.start();
    } catch (error) {
      return this.#refused(error);
    }
    const channel = this.client.channels.get(link?.channel ?? sessionStorage.getItem(this.key));
    if (link && !channel) this.room.leadsNowhere();
    if (!channel || this.client.open !== null) return;
    if (link) await this.#openLink(channel, link);
    else await this.client.openChannel(channel);
  }

  // Shows the message of a link, once the channels are known.
  async follow(link) {
    const channel = this.client.channels.get(link.channel);
    if (channel) await this.#openLink(channel, link);
  }

  // A message in its channel, or in its thread.
  async #openLink(channel, { ts, threadTs }) {
    const { messages } = threadTs ? this.pane : this.room;
    messages.seek(ts);
    await this.open(channel);
    if (threadTs) await this.openThread(channel, threadTs);
    else await this.client.loadBackTo(channel, ts);
    this.#draw();
    messages.showSought();
  }

  stop() {
    this.client.stop();
    document.removeEventListener("visibilitychange", this.onVisible);
    this.element.remove();
  }

  // What people do. The focus moves at once: it is not to jump when an answer comes.

  async open(channel) {
    sessionStorage.setItem(this.key, channel.id);
    const opened = this.client.openChannel(channel);
    this.#draw();
    this.room.focus();
    await opened;
  }

  close() {
    const last = this.client.open;
    sessionStorage.removeItem(this.key);
    this.client.closeChannel();
    this.#draw();
    this.sidebar.focus(last);
  }

  async openThread(channel, ts) {
    this.opener ??= document.activeElement;
    const opened = this.client.openThread(channel, ts);
    this.#draw();
    this.pane.focus();
    await opened;
    this.#draw();
    if (this.pane.hasLostFocus) this.#focusBehind(); // it could not be read
  }

  async openThreads() {
    this.opener = document.activeElement;
    this.client.closeThread();
    const shown = this.client.showThreads();
    this.#draw();
    this.pane.focus();
    await shown;
    this.#draw();
    this.pane.focusFirst();
  }

  // From a thread back to the list, if it came from there; else the pane goes.
  closePane() {
    if (this.client.thread) this.client.closeThread();
    else this.client.hideThreads();
    this.#draw();
    this.client.markSoon(); // the room may be seen again
    this.#focusBehind();
  }

  // Where the focus was before the thread or the pane came.
  #focusBehind() {
    if (this.client.threads) return this.pane.focus();
    if (this.opener?.isConnected) this.opener.focus();
    else this.room.focus();
    this.opener = undefined;
  }

  #drawSoon() {
    if (this.isDue) return;
    this.isDue = true;
    // A tab in the background has no frames, but its title tells what is unread.
    if (document.hidden) setTimeout(() => this.#draw());
    else requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    this.isDue = false;
    const { client } = this;
    const shown = client.thread || client.threads ? "pane" : client.open ? "room" : "side";
    set(this.element, "data-view", shown);
    set(this.element, "data-pane", shown === "pane");
    this.sidebar.draw();
    this.room.draw();
    this.pane.draw();
    this.onDrawn();
  }

  // Anew also when it is the same text again, so that it is heard again.
  #tell(message) {
    this.live.replaceChildren(`${authorOf(message, this.names)}: ${plainText(messageText(message), this.names)}`);
  }

  #refused(error) {
    if (!this.client.isStopped) this.onRefused(error);
  }
}

// What is needed to show a text.
function namesOf(client) {
  return {
    get me() {
      return client.me.id;
    },
    user: (id) => client.people.name(id),
    channel: (id) => client.channels.get(id)?.name,
  };
}
