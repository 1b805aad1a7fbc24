// SPDX-License-Identifier: Apache-2.0
// The WebSocket of a device: opened by rtm.connect, watched by pings, opened again when it ends.
import { backoff } from "./api.js";

const PING_MS = 15000;
const ANSWER_MAX_MS = 25000;

export class Socket {
  #api;
  #handlers; // onHello(), onFrame(frame), onDown(), onRefused(error)
  #socket = null;
  #timer = null;
  #tries = 0;
  #asked = 0; // since when an answer is waited for
  #id = 0;
  #stopped = false;

  constructor(api, handlers) {
    this.#api = api;
    this.#handlers = handlers;
    this.wake = () => this.#wake();
    addEventListener("online", this.wake);
    this.beats = setInterval(() => this.#beat(), PING_MS);
  }

  async open() {
    this.#timer = null;
    try {
      const reply = await this.#api.call("rtm.connect", { native: true }, 1);
      if (!this.#stopped) this.#attach(new WebSocket(socketUrl(reply.url)));
    } catch (error) {
      if (error.isPassing) this.#again();
      else this.#handlers.onRefused(error);
    }
  }

  stop() {
    this.#stopped = true;
    clearTimeout(this.#timer);
    clearInterval(this.beats);
    removeEventListener("online", this.wake);
    this.#socket?.close();
  }

  // Sends a frame when the socket is open; else it is lost, as what is sent this way may be.
  send(frame) {
    if (this.#socket?.readyState === WebSocket.OPEN) {
      this.#socket.send(JSON.stringify({ id: ++this.#id, ...frame }));
    }
  }

  #attach(socket) {
    this.#socket = socket;
    this.#asked = Date.now();
    socket.onmessage = (event) => {
      this.#asked = 0;
      const frame = JSON.parse(event.data);
      if (frame.type === "hello") {
        this.#tries = 0;
        this.#handlers.onHello();
      } else {
        this.#handlers.onFrame(frame);
      }
    };
    socket.onclose = () => this.#lost(socket);
  }

  #lost(socket) {
    if (socket !== this.#socket) return;
    this.#socket = null;
    this.#again();
  }

  #again() {
    if (this.#stopped || this.#timer !== null) return;
    this.#handlers.onDown();
    this.#timer = setTimeout(() => this.open(), backoff(this.#tries++));
  }

  #wake() {
    if (this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#tries = 0;
    this.open();
  }

  // Silence by itself says nothing: in a tab in the background this is called once a minute.
  #beat() {
    const socket = this.#socket;
    if (socket === null || this.#stopped) return;
    if (this.#asked !== 0 && Date.now() - this.#asked > ANSWER_MAX_MS) {
      socket.close();
      this.#lost(socket); // a dead line may take minutes to close
    } else {
      this.#asked ||= Date.now();
      this.send({ type: "ping" });
    }
  }
}

// The ticket is the last segment of the path; the way there is the one that the page itself came by.
function socketUrl(url) {
  const here = new URL(new URL(url).pathname, location.href);
  here.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  return here.href;
}
