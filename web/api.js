// SPDX-License-Identifier: Apache-2.0
// Calls of methods. All that this client calls may be repeated safely (posts carry a client_msg_id), so
// a call that got no answer is tried again.

const CALL_TIMEOUT_MS = 15000;
const PAUSE_FIRST_MS = 300;
const PAUSE_MAX_MS = 8000;

export class ApiError extends Error {
  constructor(method, reply) {
    super(`${method}: ${reply.error}`);
    this.code = reply.error;
  }

  // Whether no answer came that another try would repeat.
  get isPassing() {
    return ["service_unavailable", "ratelimited", "no_connection", "internal_error"].includes(this.code);
  }
}

export function pause(ms) {
  return new Promise((done) => setTimeout(done, ms));
}

// Doubles from try to try, with chance, so that many clients do not come back at once.
export function backoff(tries) {
  return Math.min(PAUSE_MAX_MS, PAUSE_FIRST_MS * 2 ** tries) * (0.5 + Math.random() / 2);
}

export class Api {
  constructor(token) {
    this.token = token;
  }

  async call(method, args = {}, tries = 3) {
    for (let done = 1; ; done++) {
      const { reply, retryAfter } = await this.#once(method, args);
      if (reply.ok) return reply;
      const error = new ApiError(method, reply);
      if (!error.isPassing || done >= tries) throw error;
      await pause(Math.max(retryAfter * 1000, backoff(done)));
    }
  }

  async #once(method, args) {
    try {
      const response = await fetch(`/api/${method}`, {
        method: "POST",
        headers: { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json; charset=utf-8" },
        body: JSON.stringify(args),
        credentials: "omit",
        signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
      });
      return { reply: await response.json(), retryAfter: Number(response.headers.get("Retry-After")) || 0 };
    } catch {
      return { reply: { ok: false, error: "no_connection" }, retryAfter: 0 };
    }
  }
}
