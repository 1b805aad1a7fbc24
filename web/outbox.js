// SPDX-License-Identifier: Apache-2.0
// Posts on their way. Each has a client_msg_id, so however often it is sent, it is posted once.

const TRIES = 5;

export class Outbox {
  #client;

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
    this.posts = [...this.posts, post];
    this.#client.onChange();
    this.#send(post);
  }

  // Sends again what failed, when a person asks for it or the service is back.
  retry(posts = this.posts.filter((post) => post.isFailed === "passing")) {
    for (const post of posts) {
      this.#replace(post, { ...post, isFailed: false });
      this.#send(this.posts.find((one) => one.client_msg_id === post.client_msg_id));
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

  async #send(post) {
    const { client_msg_id, channel, thread_ts, text } = post;
    const args = { channel: channel.id, text, client_msg_id, ...(thread_ts ? { thread_ts } : {}) };
    try {
      const reply = await this.#client.api.call("chat.postMessage", args, TRIES);
      this.heard({ ...reply.message, client_msg_id, user: this.#client.me.id });
      this.#client.posted(channel, { client_msg_id, ...reply.message, seq: reply.seq });
    } catch (error) {
      this.#replace(post, { ...post, isFailed: error.isPassing ? "passing" : error.code });
    }
    this.#client.onChange();
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
