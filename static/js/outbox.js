// What this tab has asked for and no reply has begun to yet. It survives a reload; the server takes each once.

import { newId } from "./identifiers.js";

export class Outbox {
  #key;
  #entries;

  constructor(roomId) {
    this.#key = `outbox:${roomId}`;
    this.#entries = new Map(read(this.#key).map((entry) => [entry.client_id, entry]));
  }

  /** Add a `send`, `regenerate` or `continue` frame without its `client_id`. Returns the entry. */
  add(frame) {
    const entry = { client_id: newId(), frame, error: null, isSent: false };
    this.#entries.set(entry.client_id, entry);
    this.#save();
    return entry;
  }

  get(clientId) {
    return this.#entries.get(clientId);
  }

  /** Those to send again after a reconnect. */
  get waiting() {
    return [...this.#entries.values()].filter((entry) => !entry.error);
  }

  get all() {
    return [...this.#entries.values()];
  }

  update(entry, values) {
    Object.assign(entry, values);
    this.#save();
  }

  /** Returns whether there was such an entry. */
  delete(clientId) {
    const isThere = this.#entries.delete(clientId);
    if (isThere) this.#save();
    return isThere;
  }

  #save() {
    try {
      sessionStorage.setItem(this.#key, JSON.stringify(this.all));
    } catch {
      // Storage is full or switched off: it then lasts as long as the page does.
    }
  }
}

function read(key) {
  try {
    return JSON.parse(sessionStorage.getItem(key)) ?? [];
  } catch {
    return [];
  }
}
