// SPDX-License-Identifier: Apache-2.0
// A list of messages, of a channel or of a thread: rows by day and author, those on their way at the end.
import { el, icon, reconcile, set, setText } from "./dom.js";
import { palette, reactionButtons } from "./reactions.js";
import { authorOf, messageText, plainText, repliesText, textNodes } from "./text.js";

const GROUP_MS = 5 * 60 * 1000;
const TINTS = 8;
const NEAR_PX = 40;
const KEEP = "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 10.5a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3z";
const REPLY = "M10 8V4l-7 7 7 7v-4c5 0 8 1.5 10 5 0-6-3-10-10-11z";
const REACT = "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM8.5 10h.1M15.5 10h.1M8 14c2 3 6 3 8 0";
const PIN = "M9 3h6l-1 7 3 3v2H7v-2l3-3zM12 15v6";
const CLOCK = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat([], { weekday: "long", day: "numeric", month: "long" });

export class Messages {
  // `options`: channel(); onThread(message), onUnread(message), undefined where there are none; onOlder(); onSettled(),
  // when a person has decided on a message that failed.
  constructor(device, label, options) {
    this.device = device;
    this.options = options;
    this.list = el("ol");
    this.none = el("p", { class: "empty" });
    this.newest = el("button", { class: "plain newest", type: "button", onclick: () => this.#toNewest() });
    this.older = el("button", { class: "plain older", type: "button", onclick: options.onOlder }, "Earlier messages");
    this.element = el("div", { class: "scroller", tabindex: "0", role: "group", "aria-label": label, onscroll: () => this.#scrolled() },
      el("div", { class: "spring" }), this.none, this.older, this.list, this.newest);
    this.isAtEnd = true;
    this.sought = null; // ts of the message that is to be shown when it is there
    this.shown = null;
    new ResizeObserver(() => this.#stick()).observe(this.element);
  }

  // Whether the newest message is in sight.
  get isSeen() {
    return this.isAtEnd && this.element.checkVisibility({ visibilityProperty: true });
  }

  // `posts`: those on their way. `unread`: how many of the messages are.
  draw(timeline, posts, unread) {
    const isOther = this.shown !== timeline;
    const first = this.shown?.sorted.length ? this.first : undefined;
    const height = this.element.scrollHeight;
    this.shown = timeline;
    this.older.hidden = !timeline.hasMore;
    this.older.disabled = timeline.isLoading;
    setText(this.older, timeline.hasFailed ? "Try again to read earlier messages" : "Earlier messages");
    const rows = this.#rows(timeline, posts);
    this.none.hidden = rows.length > 0 || !timeline.isLoaded;
    setText(this.none, timeline.hasFailed ? "The messages could not be read." : "No messages yet.");
    reconcile(this.list, rows, {
      key: (row) => row.key,
      make: (row) => this.#make(row),
      update: (element, row) => this.#update(element, row),
      same: (one, other) => one.stamp === other.stamp && one.message === other.message,
    });
    this.first = timeline.sorted[0]?.ts;
    if (isOther) this.isAtEnd = this.sought === null;
    const grewAbove = !isOther && first !== undefined && first !== this.first;
    if (grewAbove && !this.isAtEnd) this.element.scrollTop += this.element.scrollHeight - height;
    this.#stick();
    this.newest.hidden = this.isAtEnd;
    setText(this.newest, unread > 0 ? `${unread} new, below` : "To the newest");
  }

  seek(ts) {
    this.sought = ts;
    this.isAtEnd = false;
  }

  // All that could be read is there. If what is sought is not, the newest is shown.
  showSought() {
    const row = this.list.querySelector(`[data-ts="${this.sought}"]`);
    this.sought = null;
    if (row === null) return this.toEnd();
    set(row, "aria-current", "true");
    row.scrollIntoView({ block: "center" });
    this.#scrolled();
  }

  toEnd() {
    this.isAtEnd = true;
    this.#stick();
    this.device.client.markSoon();
  }

  #toNewest() {
    this.toEnd();
    this.element.focus();
  }

  #stick() {
    if (this.isAtEnd) this.element.scrollTop = this.element.scrollHeight;
  }

  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.element;
    const wasAtEnd = this.isAtEnd;
    this.isAtEnd = scrollTop + clientHeight >= scrollHeight - NEAR_PX;
    this.newest.hidden = this.isAtEnd;
    if (this.isAtEnd && !wasAtEnd) this.device.client.markSoon();
    if (scrollTop < NEAR_PX && scrollHeight > clientHeight) this.options.onOlder?.();
  }

  #rows(timeline, posts) {
    const { client } = this.device;
    const rows = [];
    let last = { day: "", user: "", name: "", at: 0 };
    let isDivided = timeline.dividerTs === null;
    const add = (message, post) => {
      const at = post ? Math.max(Date.now(), last.at) : Number(message.ts) * 1000; // this clock may be behind
      const day = DAY.format(at);
      if (day !== last.day) rows.push({ key: `day ${day}`, kind: "day", text: day, stamp: "" });
      const isNew = !isDivided && !isSystem(message) && message.ts > timeline.dividerTs && message.user !== client.me.id;
      if (isNew) rows.push({ key: "new", kind: "new", text: "New", stamp: "" });
      isDivided ||= isNew;
      const name = authorOf(message, this.device.names);
      const isSame = message.user === last.user && name === last.name;
      const isGrouped = !isNew && isSame && day === last.day && at - last.at < GROUP_MS;
      const key = message.user === client.me.id && message.client_msg_id ? message.client_msg_id : message.ts;
      rows.push({ key, kind: "message", message, post, at, isGrouped, name, stamp: `${isGrouped} ${name} ${client.people.version}` });
      last = { day, user: isSystem(message) ? "" : message.user, name, at };
    };
    for (const message of timeline.sorted) add(message);
    for (const post of posts) add({ ...post, user: client.me.id }, post);
    return rows;
  }

  #make(row) {
    if (row.kind !== "message") return el("li", { class: row.kind }, el("span", {}, row.text));
    const react = el("button", { class: "react", type: "button", title: "Add reaction", "aria-expanded": "false" }, icon(REACT));
    return el("li", { class: "message" },
      el("span", { class: "avatar", "aria-hidden": "true" }),
      el("div", { class: "body" },
        el("p", { class: "who" }, el("span", { class: "name", dir: "auto" }), el("span", { class: "app", hidden: true }, "app"), el("time")),
        el("div", { class: "text", dir: "auto" }),
        el("p", { class: "meta" })),
      el("div", { class: "actions" },
        react,
        el("button", { class: "pin", type: "button" }, icon(PIN)),
        this.options.onThread ? [
          el("button", { class: "keep", type: "button", title: "Mark unread from here" }, icon(KEEP)),
          el("button", { class: "reply", type: "button", title: "Reply in thread" }, icon(REPLY))] : null,
        palette(react)));
  }

  #update(element, row) {
    if (row.kind !== "message") return;
    const { message, post } = row;
    set(element, "data-ts", message.ts);
    element.classList.toggle("grouped", row.isGrouped);
    element.classList.toggle("system", isSystem(message));
    element.classList.toggle("pending", post !== undefined && !post.isFailed);
    const avatar = element.querySelector(".avatar");
    setText(avatar, row.isGrouped ? "" : [...row.name][0].toUpperCase());
    set(avatar, "data-tint", tint(message.user));
    setText(element.querySelector(".name"), row.name);
    element.querySelector(".app").hidden = !message.bot_id;
    const time = element.querySelector("time");
    setText(time, CLOCK.format(row.at));
    set(time, "datetime", new Date(row.at).toISOString());
    element.querySelector(".text").replaceChildren(...this.#text(message));
    this.#updateMeta(element.querySelector(".meta"), row);
    this.#updateActions(element.querySelector(".actions"), row);
  }

  // A reaction that is pressed keeps the focus.
  #updateMeta(meta, row) {
    const name = meta.contains(document.activeElement) ? document.activeElement.dataset.name : undefined;
    meta.replaceChildren(...this.#meta(row));
    [...meta.children].find((node) => name !== undefined && node.dataset.name === name)?.focus();
  }

  #updateActions(actions, { message, post, name }) {
    const [, pin, keep, reply] = actions.querySelectorAll(":scope > button");
    actions.querySelector(".palette").onChoose = (name) => this.#react(message, name);
    const isPinned = message.pinned_to !== undefined;
    set(pin, "title", isPinned ? "Remove pin" : "Pin to channel");
    pin.onclick = () => this.device.client.pin(this.options.channel(), message.ts, isPinned);
    actions.hidden = post !== undefined || isSystem(message) || message.subtype === "tombstone";
    if (reply === undefined) return;
    set(reply, "aria-label", `Reply in thread to ${name}`);
    reply.onclick = () => this.options.onThread(message);
    keep.hidden = message.user === this.device.client.me.id;
    keep.onclick = () => this.options.onUnread(message);
  }

  // Once more removes it.
  #react(message, name) {
    const { client } = this.device;
    const isOwn = message.reactions?.some((one) => one.name === name && one.users.includes(client.me.id)) ?? false;
    client.react(this.options.channel(), message.ts, name, isOwn);
  }

  #text(message) {
    const { names } = this.device;
    if (message.subtype === "tombstone") return [el("span", { class: "quiet" }, "This message was deleted.")];
    if (isSystem(message)) return [plainText(message.text ?? "", names).replace(/^@/, "")];
    const nodes = textNodes(messageText(message), names);
    return message.subtype === "me_message" ? [el("em", {}, nodes)] : nodes;
  }

  // What stands below a message: edited, its thread, its failure.
  #meta({ message, post }) {
    const { outbox } = this.device.client;
    if (post?.isFailed) {
      return [el("span", { class: "error", role: "alert" }, post.isFailed === "passing" ? "Not sent." : `Not sent: ${post.isFailed.replaceAll("_", " ")}.`),
        el("button", { class: "plain", type: "button", onclick: () => this.#settle(() => outbox.retry([post])) }, "Try again"),
        el("button", { class: "plain", type: "button", onclick: () => this.#settle(() => outbox.discard(post)) }, "Discard")];
    }
    const nodes = [];
    if (message.edited) nodes.push(el("span", { class: "quiet" }, "edited"));
    if (message.pinned_to) nodes.push(el("span", { class: "quiet" }, "pinned"));
    nodes.push(...reactionButtons(message, this.device.names, this.device.client.me.id, (name) => this.#react(message, name)));
    if (message.reply_count > 0 && this.options.onThread) {
      nodes.push(el("button", { class: "thread", type: "button", onclick: () => this.options.onThread(message) }, repliesText(message)));
    }
    return nodes;
  }

  // The button that was pressed goes away; the focus is not to go with it.
  #settle(decide) {
    this.options.onSettled();
    decide();
  }
}

function isSystem(message) {
  return /^(channel|group|mpim|im)_/.test(message.subtype ?? "");
}

function tint(user = "") {
  let sum = 0;
  for (const character of user) sum = (sum * 31 + character.codePointAt(0)) % 9973;
  return sum % TINTS;
}
