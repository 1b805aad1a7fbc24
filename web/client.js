// SPDX-License-Identifier: Apache-2.0
// One device: its calls, its socket, its state. Views read the state and are told of changes; they never
// write it but by the methods here.
import { Api, backoff, pause } from "./api.js";
import { Channel, Timeline } from "./channel.js";
import { applyFrame } from "./frames.js";
import { Outbox } from "./outbox.js";
import { Socket } from "./socket.js";
import { People } from "./people.js";

const PAGE = 50;
const SYNC_PAUSE_MS = 150;
const SYNC_RETRY_MS = 2000;
const EVENTS = 200; // of a channel at a time, or replies of a thread
const EVENTS_PAGES_MAX = 5;
const BACK_PAGES_MAX = 20;
const MARK_PAUSE_MS = 400;
const TYPING_SEND_MS = 3000;
const TYPING_SHOWN_MS = 6000;

export class Client {
  constructor(token, onChange, onNews, onRefused) {
    this.api = new Api(token);
    this.onChange = onChange; // something is to be drawn anew
    this.onNews = onNews; // (message): somebody else wrote, where one is looking
    this.onRefused = onRefused;
    this.me = { id: "", name: "", team: "" };
    this.state = "connecting"; // "online", "offline"
    this.channels = new Map();
    this.people = new People(this.api, onChange);
    this.outbox = new Outbox(this);
    this.open = null; // Channel
    this.thread = null; // {channel, ts, timeline, subscribed}
    this.threads = null; // list of followed threads, while it is shown
    this.threadsAsked = 0; // how often, so that an older answer is told from the newest
    this.threadsUnread = 0;
    this.threadsMentions = 0;
    this.sharedMentions = 0; // of threads, that their channels count, too
    this.notices = null; // notifications.get, once it was read
    this.typing = new Map(); // channel id → Map of user id → until when
    this.syncToken = undefined;
    this.waiting = []; // frames that came before the sync was answered
    this.marks = 0; // how often a mark was heard of
    this.isUp = false; // the socket
    this.isSynced = false; // since it is up
    this.isStopped = false;
    this.firstSync = new Promise((done) => (this.onFirstSync = done));
    this.syncTimer = null;
    this.syncing = null;
    this.markTimer = null;
    this.typedAt = 0;
    this.socket = new Socket(this.api, {
      onHello: () => this.#hello(),
      onFrame: (frame) => this.#frame(frame),
      onDown: () => this.#down(),
      onRefused: (error) => this.onRefused(error),
    });
  }

  // Until the channels are known. Throws when the token is no good.
  async start() {
    const self = await this.#whoAmI();
    this.me = { id: self.user_id, name: self.user, team: self.team };
    this.people.know(self.user_id, self.user);
    this.people.load();
    this.readNotices().catch(() => {}); // the badge is of mentions until then
    await this.socket.open();
    await this.firstSync;
  }

  async #whoAmI() {
    for (let tries = 0; ; tries++) {
      try {
        return await this.api.call("auth.test");
      } catch (error) {
        if (!error.isPassing || this.isStopped) throw error;
      }
      this.#down();
      await pause(backoff(tries));
    }
  }

  stop() {
    this.isStopped = true;
    this.socket.stop();
    clearTimeout(this.syncTimer);
    clearTimeout(this.markTimer);
  }

  // The number that a phone shows on the app's icon, and whether anything is unread at all.
  get badge() {
    const channels = [...this.channels.values()];
    const mentions = sumOf(channels, (channel) => channel.mentions) + this.threadsMentions - this.sharedMentions;
    const others = sumOf(channels, (channel) => (channel.isMuted ? 0 : channel.unread - channel.mentions));
    return { count: mentions + (this.notices?.badge === "all" ? others : 0), isUnread: mentions + others > 0 };
  }

  channel(id) {
    if (!this.channels.has(id)) this.channels.set(id, new Channel(id));
    return this.channels.get(id);
  }

  channelName(channel) {
    if (channel.kind === "im") return this.people.name(channel.user);
    if (channel.kind === "mpim") return groupName(channel.name, this.me.name);
    return channel.name;
  }

  // The same, as it stands at the head of something.
  channelTitle(channel) {
    return (channel.kind === "channel" ? "#" : "") + this.channelName(channel);
  }

  // The socket and what it says.

  #hello() {
    this.isUp = true;
    this.isSynced = false;
    this.sync();
  }

  #down() {
    this.isUp = false;
    this.state = "offline";
    this.isSynced = false;
    this.waiting = [];
    this.onChange();
  }

  #frame(frame) {
    if (!this.isSynced) {
      this.waiting.push(frame);
      return;
    }
    applyFrame(this, frame);
    this.onChange();
  }

  // Soon; frames that want it come in bursts.
  syncSoon(ms = SYNC_PAUSE_MS) {
    this.syncTimer ??= setTimeout(() => {
      this.syncTimer = null;
      this.sync();
    }, ms);
  }

  syncLater() {
    this.syncSoon(SYNC_RETRY_MS);
  }

  async sync() {
    if (this.syncing !== null) {
      this.syncSoon();
      return this.syncing;
    }
    this.syncing = this.#sync().catch((error) => {
      if (error.isPassing) this.syncLater();
      else this.onRefused(error);
    });
    await this.syncing;
    this.syncing = null;
  }

  async #sync() {
    const since = this.syncToken === undefined ? {} : { since: this.syncToken };
    const { marks } = this;
    const reply = await this.api.call("unread.sync", since);
    if (marks !== this.marks) this.syncSoon(); // the answer may be older than a mark
    if (reply.full) this.#keepOnly(reply);
    for (const [list, kind] of [[reply.channels, "channel"], [reply.mpims, "mpim"], [reply.ims, "im"]]) {
      for (const entry of list) {
        const channel = this.channel(entry.id);
        channel.kind = kind;
        channel.synced(entry);
      }
    }
    for (const id of reply.removed) this.#forget(id);
    this.threadsUnread = reply.threads.unread_count;
    this.threadsMentions = reply.threads.mention_count;
    this.sharedMentions = reply.totals.mention_count + this.threadsMentions - reply.totals.badge;
    this.syncToken = reply.sync_token;
    if (!this.isSynced) this.#startAnew();
    for (const frame of this.waiting.splice(0)) applyFrame(this, frame);
    this.onFirstSync();
    this.onChange();
    this.outbox.retry();
    this.markSoon();
    this.#fillOpen();
    if (this.threads) this.#readThreads();
  }

  // After a break. What happened in the open channel meanwhile is filled in; others are read anew when they are opened.
  #startAnew() {
    this.isSynced = true;
    if (this.isUp) this.state = "online";
    for (const channel of this.channels.values()) if (channel !== this.open) channel.timeline = null;
    if (this.thread) this.openThread(this.thread.channel, this.thread.ts);
  }

  #keepOnly(reply) {
    const ids = new Set([...reply.channels, ...reply.mpims, ...reply.ims].map((entry) => entry.id));
    for (const id of [...this.channels.keys()]) if (!ids.has(id)) this.#forget(id);
  }

  #forget(id) {
    this.channels.delete(id);
    if (this.open?.id === id) this.open = null;
    if (this.thread?.channel.id === id) this.thread = null;
  }

  // Reads what the open channel's timeline lacks: what a break has left out, or a call that failed.
  async #fillOpen() {
    const channel = this.open;
    const timeline = channel?.timeline;
    if (!timeline?.isLoaded) return;
    if (timeline.throughSeq === undefined) await this.#loadNewest(channel);
    else if (timeline.throughSeq < channel.seq) await this.#fill(channel);
  }

  // Applies the events that a channel's timeline lacks; when they are too many, its newest page is read instead.
  async #fill(channel) {
    const { timeline } = channel;
    try {
      for (let page = 0; page < EVENTS_PAGES_MAX; page++) {
        const after = { channel: channel.id, after_seq: timeline.throughSeq, limit: EVENTS };
        const reply = await this.api.call("channels.events", after);
        if (reply.truncated) break;
        for (const event of reply.events) applyFrame(this, event);
        timeline.throughSeq = Math.max(timeline.throughSeq, reply.through_seq);
        this.onChange();
        if (timeline.throughSeq >= channel.seq) return;
      }
    } catch (error) {
      if (error.isPassing) return this.syncLater();
    }
    channel.timeline = null;
    if (channel === this.open) await this.#loadNewest(channel);
  }

  // Channels.

  async openChannel(channel) {
    this.open = channel;
    channel.isKept = false;
    this.threads = null;
    channel.timeline ??= new Timeline();
    channel.timeline.dividerTs = channel.hasUnread ? channel.lastRead : null;
    this.onChange();
    this.#describe(channel);
    if (channel.timeline.isLoaded) await this.#fillOpen();
    else await this.#loadNewest(channel);
    this.markSoon();
  }

  closeChannel() {
    this.open = null;
    this.onChange();
  }

  async #describe(channel) {
    try {
      const { channel: info } = await this.api.call("channels.info", { channel: channel.id });
      channel.topic = info.topic?.value ?? "";
      channel.members = info.num_members ?? 0;
      this.onChange();
    } catch {
      // It is shown without.
    }
  }

  async #loadNewest(channel) {
    channel.timeline ??= new Timeline();
    await this.#load(channel, channel.timeline, {});
  }

  async loadOlder(channel) {
    const timeline = channel.timeline;
    if (!timeline?.hasMore || timeline.isLoading) return;
    await this.#load(channel, timeline, { latest: timeline.sorted[0]?.ts });
  }

  // Until the message of this ts is there, if it is not too old.
  async loadBackTo(channel, ts) {
    for (let page = 0; page < BACK_PAGES_MAX; page++) {
      const { timeline } = channel;
      if (!timeline?.hasMore || timeline.hasFailed || timeline.sorted[0]?.ts <= ts) return;
      await this.#load(channel, timeline, { latest: timeline.sorted[0]?.ts, limit: EVENTS });
    }
  }

  async #load(channel, timeline, args) {
    timeline.isLoading = true;
    timeline.hasFailed = false;
    this.onChange();
    const { seq } = channel;
    try {
      const reply = await this.api.call("channels.history", { channel: channel.id, limit: PAGE, ...args });
      timeline.add(reply.messages.filter((message) => !timeline.byTs.has(message.ts)));
      timeline.hasMore = reply.has_more;
      timeline.throughSeq = Math.min(timeline.throughSeq ?? seq, seq);
    } catch (error) {
      timeline.hasMore = error.isPassing;
      timeline.hasFailed = true;
    }
    timeline.isLoading = false;
    timeline.isLoaded = true;
    this.onChange();
    // What happened while it was read may be in it, or not.
    if (channel.timeline === timeline && timeline.throughSeq < channel.seq) await this.#fill(channel);
  }

  async toggleMute(channel) {
    channel.isMuted = !channel.isMuted;
    this.onChange();
    try {
      await this.api.call("channels.setNotifications", { channel: channel.id, muted: channel.isMuted });
    } catch {
      channel.isMuted = !channel.isMuted;
      this.onChange();
    }
  }

  // "default": as the level of the user says.
  async setLevel(channel, notify) {
    const before = channel.notify;
    channel.notify = notify;
    this.onChange();
    try {
      await this.api.call("channels.setNotifications", { channel: channel.id, notify });
    } catch {
      channel.notify = before;
      this.onChange();
    }
  }

  async readNotices() {
    return this.#takeNotices(await this.api.call("notifications.get"));
  }

  async setNotices(wanted) {
    return this.#takeNotices(await this.api.call("notifications.set", wanted));
  }

  #takeNotices(reply) {
    this.notices = reply;
    this.onChange();
    return reply;
  }

  // Reading.

  // Marks what is shown as read, soon. The views say whether its end is in sight.
  markSoon() {
    this.markTimer ??= setTimeout(() => {
      this.markTimer = null;
      this.#mark();
    }, MARK_PAUSE_MS);
  }

  async #mark() {
    if (document.visibilityState !== "visible") return;
    try {
      if (this.views?.room.isSeen) await this.#markChannel();
      if (this.views?.pane.isSeen) await this.#markThread();
    } catch (error) {
      if (error.isPassing) this.syncLater(); // and then marked again
    }
    this.onChange();
  }

  async #markChannel() {
    const channel = this.open;
    const newest = channel?.timeline?.newest;
    if (!newest || channel.isKept || !channel.hasUnread || newest.ts <= channel.lastRead) return;
    const args = { channel: channel.id, ts: newest.ts, read_epoch: channel.epoch };
    this.marked(channel, await this.api.call("channels.mark", args));
  }

  // What a mark has left unread, made here or elsewhere.
  marked(channel, read) {
    this.marks++;
    if (channel.marked(read)) this.syncSoon();
  }

  async markUnread(channel, ts) {
    try {
      this.marked(channel, await this.api.call("channels.markUnread", { channel: channel.id, ts }));
    } catch {
      // It stays as it was.
    }
    this.onChange();
  }

  // Adds the reader's own reaction, or removes it; a pin likewise. The frame shows it, on each device.
  react(channel, ts, name, isOwn) {
    return this.#note(`reactions.${isOwn ? "remove" : "add"}`, { channel: channel.id, timestamp: ts, name });
  }

  pin(channel, ts, isPinned) {
    return this.#note(`pins.${isPinned ? "remove" : "add"}`, { channel: channel.id, timestamp: ts });
  }

  async #note(method, args) {
    try {
      await this.api.call(method, args);
    } catch {
      // It stays as it was, or is so already.
    }
  }

  async #markThread() {
    const thread = this.thread;
    const newest = thread?.timeline.newest;
    if (!thread?.subscribed || !newest || newest.ts <= thread.lastRead || newest.ts === thread.markedTs) return;
    const args = { channel: thread.channel.id, thread_ts: thread.ts, ts: newest.ts };
    const reply = await this.api.call("threads.mark", args);
    thread.lastRead = reply.last_read;
    thread.markedTs = newest.ts;
    this.syncSoon();
  }

  // Threads.

  async showThreads() {
    this.threads ??= [];
    this.onChange();
    await this.#readThreads();
  }

  async #readThreads() {
    const asked = ++this.threadsAsked;
    try {
      const reply = await this.api.call("threads.list", { limit: PAGE });
      if (this.threads === null || asked !== this.threadsAsked) return;
      this.threads = reply.threads;
      this.threadsUnread = reply.totals.unread_count;
      this.onChange();
    } catch (error) {
      if (error.isPassing) this.syncLater(); // what is shown stays
    }
  }

  hideThreads() {
    this.threads = null;
    this.onChange();
  }

  async openThread(channel, ts) {
    const known = this.thread?.channel === channel && this.thread?.ts === ts;
    const thread = known ? this.thread : { channel, ts, timeline: new Timeline(), subscribed: false, lastRead: "" };
    this.thread = thread;
    this.onChange();
    try {
      await this.#loadThread(thread);
      const root = thread.timeline.byTs.get(ts);
      thread.subscribed = root?.subscribed ?? false;
      thread.lastRead = root?.last_read ?? "";
    } catch {
      if (this.thread === thread && !thread.timeline.isLoaded) this.closeThread();
    }
    this.onChange();
    this.markSoon();
  }

  async #loadThread({ channel, ts, timeline }) {
    const messages = [];
    let cursor = "";
    do {
      const reply = await this.api.call("channels.replies", { channel: channel.id, ts, limit: EVENTS, cursor });
      messages.push(...reply.messages);
      cursor = reply.response_metadata?.next_cursor ?? "";
    } while (cursor !== "");
    timeline.agree(messages);
    timeline.isLoaded = true;
  }

  closeThread() {
    this.thread = null;
    this.onChange();
  }

  // Writing.

  post(channel, text, threadTs) {
    this.outbox.post(channel, text, threadTs);
  }

  // The service's word on one's own post.
  posted(channel, message) {
    const isReply = message.thread_ts !== undefined && message.thread_ts !== message.ts;
    if (!isReply) channel.timeline?.add([message]);
    if (isReply && this.thread?.channel === channel && this.thread.ts === message.thread_ts) {
      this.thread.timeline.add([message]);
      this.thread.subscribed = true;
    }
  }

  typed(channel) {
    if (Date.now() - this.typedAt < TYPING_SEND_MS) return;
    this.typedAt = Date.now();
    this.socket.send({ type: "typing", channel: channel.id });
  }

  isTyping(channelId, userId) {
    if (!this.typing.has(channelId)) this.typing.set(channelId, new Map());
    this.typing.get(channelId).set(userId, Date.now() + TYPING_SHOWN_MS);
    setTimeout(() => this.onChange(), TYPING_SHOWN_MS + 50);
  }

  stoppedTyping(channelId, userId) {
    this.typing.get(channelId)?.delete(userId);
  }

  whoTypes(channel) {
    const users = [...(this.typing.get(channel.id) ?? [])];
    return users.filter(([, until]) => until > Date.now()).map(([user]) => this.people.name(user));
  }
}

function sumOf(list, numberOf) {
  return list.reduce((sum, one) => sum + numberOf(one), 0);
}

// A group's name is made of those in it: "mpdm-ann--bob--cid-1".
function groupName(name, me) {
  const others = name.replace(/^mpdm-|-\d+$/g, "").split("--").filter((one) => one !== me);
  return others.join(", ");
}
