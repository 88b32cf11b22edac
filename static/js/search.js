// The search over titles and messages in the sidebar.

import { setHtml } from "./html.js";
import { sentence } from "./i18n.js";
import { get } from "./requests.js";

const PAUSE_MS = 200;

export class Search {
  #box = document.getElementById("search");
  #rooms = document.getElementById("rooms");
  #status = document.getElementById("found");
  #all = null;
  #timer;
  #request = new AbortController();
  #onListed;

  /** `onListed()` is called when other rooms are listed. */
  constructor({ onListed }) {
    this.#onListed = onListed;
  }

  start() {
    this.#box.addEventListener("input", () => this.#typed());
    this.#box.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.isComposing || !this.#box.value) return;
      event.preventDefault();
      this.#box.value = "";
      this.#typed();
    });
  }

  #typed() {
    clearTimeout(this.#timer);
    this.#request.abort();
    if (this.#box.value.trim()) this.#timer = setTimeout(() => this.#find(this.#box.value), PAUSE_MS);
    else this.#listAll();
  }

  async #find(words) {
    this.#request = new AbortController();
    const { signal } = this.#request;
    try {
      const response = await get(`${this.#box.dataset.address}?q=${encodeURIComponent(words)}`, { signal });
      this.#list(await response.text());
    } catch {
      if (!signal.aborted) this.#status.textContent = sentence("not_loaded");
    }
  }

  #list(html) {
    this.#all ??= [...this.#rooms.childNodes];
    setHtml(this.#rooms, html);
    const count = this.#rooms.querySelectorAll("[data-room-link]").length;
    this.#status.textContent = sentence("found", { count });
    this.#onListed();
  }

  #listAll() {
    this.#status.textContent = "";
    if (!this.#all) return;
    this.#rooms.replaceChildren(...this.#all);
    this.#all = null;
    this.#onListed();
  }
}
