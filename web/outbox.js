// SPDX-License-Identifier: Apache-2.0
// Posts on their way. Each has a client_msg_id, so however often it is sent, it is posted once. Those of a
// conversation go one after the other, so they arrive as they were written.

const TRIES = 5;

export class Outbox {
  #client;
  #last = new Map(); // of a conversation: whether the one after its last post may go

  constructor(client) {
    this.#client = client;
    this.posts = []; // {client_msg_id, channel, thread_ts, text, isFailed}
  }

  // Those of a channel (outside of threads), or of one thread.
  of(channel, threadTs) {
    return this.posts.filter((post) => post.channel === channel && post.thread_ts === threadTs);
  }

  post(channel, text, threadTs) {
    const post = { client_msg_id: newId(), channel, thread_ts: threadTs, text, isFailed: false };
    this.retry(this.of(channel, threadTs).filter((one) => one.isFailed === "passing"));
    this.posts = [...this.posts, post];
    this.#client.onChange();
    this.#queue(post);
  }

  // Sends again what failed, when a person asks for it or the service is back.
  retry(posts = this.posts.filter((post) => post.isFailed === "passing")) {
    for (const post of posts) {
      this.#replace(post, { ...post, isFailed: false });
      this.#queue(this.posts.find((one) => one.client_msg_id === post.client_msg_id));
    }
  }

  discard(post) {
    this.posts = this.posts.filter((one) => one.client_msg_id !== post.client_msg_id);
    this.#client.onChange();
  }

  // A message came over the socket: perhaps one of these, before its own call was answered.
  heard(message) {
    if (message.user !== this.#client.me.id || message.client_msg_id === undefined) return;
    this.posts = this.posts.filter((post) => post.client_msg_id !== message.client_msg_id);
  }

  #queue(post) {
    const key = `${post.channel.id} ${post.thread_ts}`;
    const done = (this.#last.get(key) ?? Promise.resolve(true)).then((mayGo) => (mayGo ? this.#send(post) : this.#fail(post, "passing")));
    this.#last.set(key, done);
    done.then(() => this.#last.get(key) === done && this.#last.delete(key));
  }

  // This and #fail() tell whether the next may go: not where this one is sent again.
  async #send(post) {
    const { client_msg_id, channel, thread_ts, text } = post;
    const args = { channel: channel.id, text, client_msg_id, ...(thread_ts ? { thread_ts } : {}) };
    try {
      const reply = await this.#client.api.call("chat.postMessage", args, TRIES);
      this.heard({ ...reply.message, client_msg_id, user: this.#client.me.id });
      this.#client.posted(channel, { client_msg_id, ...reply.message, seq: reply.seq });
      this.#client.onChange();
      return true;
    } catch (error) {
      return this.#fail(post, error.isPassing ? "passing" : error.code);
    }
  }

  #fail(post, isFailed) {
    this.#replace(post, { ...post, isFailed });
    this.#client.onChange();
    if (isFailed === "passing") this.#client.syncLater(); // which tells when the service is back
    return isFailed !== "passing";
  }

  #replace(post, other) {
    this.posts = this.posts.map((one) => (one.client_msg_id === post.client_msg_id ? other : one));
  }
}

function newId() {
  // randomUUID() is for pages by HTTPS and of this machine alone.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
