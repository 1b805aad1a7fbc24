// SPDX-License-Identifier: Apache-2.0
// Names of users: a first page of them at the start, others when they are first met.

const PAGE = 500;

export class People {
  #api;
  #onChange;
  #names = new Map();
  #ids = new Map();
  #asked = new Set();

  version = 0; // rises with each name: what shows names is drawn anew then

  constructor(api, onChange) {
    this.#api = api;
    this.#onChange = onChange;
  }

  know(id, name) {
    this.#names.set(id, name);
    this.#ids.set(name, id);
    this.version++;
  }

  async load() {
    try {
      const reply = await this.#api.call("users.list", { limit: PAGE });
      for (const user of reply.members) this.know(user.id, user.name);
      this.#onChange();
    } catch {
      // They are asked for one by one as they are met.
    }
  }

  idOf(name) {
    return this.#ids.get(name);
  }

  name(id) {
    if (id === undefined) return "somebody";
    if (!this.#names.has(id)) this.#ask(id);
    return this.#names.get(id) ?? id;
  }

  async #ask(id) {
    if (this.#asked.has(id)) return;
    this.#asked.add(id);
    try {
      const reply = await this.#api.call("users.info", { user: id });
      this.know(id, reply.user.name);
      this.#onChange();
    } catch (error) {
      if (error.isPassing) this.#asked.delete(id); // asked for again when it is next drawn; until then the id stands for the name
    }
  }
}
