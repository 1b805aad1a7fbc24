// SPDX-License-Identifier: Apache-2.0
// What a device knows of one channel. The count of unread messages is what the service said last (good
// through some `seq`) and the messages heard since; so whatever order replies and frames arrive in, no
// message is counted twice.

const HEARD_MAX = 200;
const KEPT_MAX = 400; // messages of a channel, but for who reads above
const KEPT_LEAST = 200;
const NEVER = "0000000000.000000";

export class Channel {
  constructor(id) {
    this.id = id;
    this.name = id;
    this.user = undefined; // the other one of a direct conversation
    this.kind = "channel"; // or "im", "mpim"
    this.isPrivate = false;
    this.isMuted = false;
    this.notify = "default"; // about what, if not as the user's level says
    this.isKept = false; // it was marked unread, and stays so until it is opened again
    this.topic = "";
    this.members = 0;
    this.seq = 0; // of the last event seen
    this.lastRead = NEVER;
    this.epoch = 0;
    this.said = { seq: 0, unread: 0, mentions: 0, dot: false };
    this.heard = []; // {seq, ts, isMention} of counted messages since
    this.timeline = null; // once it was opened
  }

  get unread() {
    return this.said.unread + this.#since().length;
  }

  // In a direct conversation every message is meant for who reads it.
  get mentions() {
    if (this.kind !== "channel" && !this.isMuted) return this.unread;
    return this.said.mentions + this.#since().filter((one) => one.isMention).length;
  }

  get hasUnread() {
    return this.said.dot || this.unread > 0;
  }

  #since() {
    return this.heard.filter((one) => one.seq > this.said.seq && one.ts > this.lastRead);
  }

  // An entry of unread.sync.
  synced(entry) {
    this.name = entry.name ?? this.name;
    this.user = entry.user;
    this.isPrivate = entry.is_private;
    this.seq = Math.max(this.seq, entry.seq);
    this.#takeRead(entry);
    this.#say(entry, entry.seq);
    this.heard = this.heard.filter((one) => one.seq > entry.seq);
  }

  // A frame or reply with absolute counts, which does not tell through which message. Returns whether
  // only unread.sync can say for sure.
  marked(read) {
    const isOld = read.read_epoch < this.epoch || (read.read_epoch === this.epoch && read.last_read < this.lastRead);
    if (isOld) return false;
    this.#takeRead(read);
    this.#say(read, read.has_unreads ? this.seq : this.said.seq);
    return read.has_unreads;
  }

  #keep(lastRead) {
    this.isKept = true;
    if (this.timeline) this.timeline.dividerTs = lastRead;
  }

  #takeRead(read) {
    if (read.read_epoch > this.epoch) this.#keep(read.last_read);
    this.lastRead = read.last_read;
    this.epoch = read.read_epoch;
    this.isMuted = read.is_muted;
    this.notify = read.notify;
  }

  #say(read, seq) {
    const unread = read.unread_count ?? 0; // a bitmap channel has none
    this.said = { seq, unread, mentions: read.mention_count, dot: read.has_unreads && unread === 0 };
  }

  // A new message that counts for this user. Returns whether so many were heard that the service should
  // be asked before the first are forgotten.
  count(seq, ts, isMention) {
    if (this.heard.some((one) => one.seq === seq)) return false;
    this.heard.push({ seq, ts, isMention });
    if (this.heard.length > HEARD_MAX) this.heard.shift();
    return this.heard.length > HEARD_MAX / 2;
  }

  // A message was deleted. What the service said of it is for the service to correct.
  forget(ts) {
    this.heard = this.heard.filter((one) => one.ts !== ts);
  }
}

// Messages of a channel or of a thread, oldest first.
export class Timeline {
  constructor() {
    this.byTs = new Map();
    this.sorted = [];
    this.throughSeq = undefined; // all events up to this one are in it
    this.hasMore = false;
    this.isLoading = false;
    this.isLoaded = false;
    this.hasFailed = false;
    this.dividerTs = null; // what is after it was unread when this was opened
  }

  get newest() {
    return this.sorted.at(-1);
  }

  add(messages) {
    for (const message of messages) this.byTs.set(message.ts, message);
    this.#sort();
  }

  // An event was applied.
  heard(seq) {
    if (seq === this.throughSeq + 1) this.throughSeq = seq;
  }

  // What was read from its beginning: a message that is not among these was deleted, but for newer ones.
  agree(messages) {
    const newest = messages.at(-1)?.ts ?? "";
    const there = new Set(messages.map((message) => message.ts));
    for (const { ts } of this.sorted) if (ts <= newest && !there.has(ts)) this.byTs.delete(ts);
    this.add(messages);
  }

  // Forgets old messages when there are many; they are read again when they are wanted.
  trim() {
    if (this.sorted.length <= KEPT_MAX) return;
    for (const message of this.sorted.splice(0, this.sorted.length - KEPT_LEAST)) this.byTs.delete(message.ts);
    this.hasMore = true;
  }

  change(ts, changes) {
    const message = this.byTs.get(ts);
    if (message !== undefined) this.add([{ ...message, ...changes(message) }]);
  }

  remove(ts) {
    this.byTs.delete(ts);
    this.#sort();
  }

  #sort() {
    this.sorted = [...this.byTs.values()].sort((one, other) => (one.ts < other.ts ? -1 : 1));
  }
}
