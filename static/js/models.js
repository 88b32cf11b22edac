// The model of the room: chosen by everybody who may write in it, named to those who may only read.

import { sentence } from "./i18n.js";
import { get, post } from "./requests.js";

export class Models {
  #select = document.getElementById("model");
  #name = document.getElementById("model-name");
  #saved;
  #onProblem;

  /** `onProblem(sentence)` says that a choice could not be saved. */
  constructor({ onProblem }) {
    this.#onProblem = onProblem;
    this.#saved = this.#select?.value;
  }

  start() {
    if (!this.#select) return;
    this.#select.addEventListener("change", () => this.#save());
    this.#list();
  }

  /** The room has another model now; "" is the default one. */
  show(model) {
    if (this.#name) this.#name.textContent = model || sentence("default_model");
    if (!this.#select) return;
    this.#saved = model;
    const isListed = Array.from(this.#select.options, ({ value }) => value).includes(model);
    if (!isListed) this.#select.add(new Option(model || sentence("default_model"), model));
    this.#select.value = model;
  }

  async #save() {
    const chosen = this.#select.value;
    if (await post(this.#select.dataset.change, { model: chosen })) {
      this.#saved = chosen;
      return;
    }
    this.#select.value = this.#saved;
    this.#onProblem(sentence("not_saved"));
  }

  async #list() {
    try {
      const { models, default: usual } = await (await get(this.#select.dataset.models)).json();
      const first = new Option(usual ? sentence("default_is", { name: usual }) : sentence("default_model"), "");
      const others = [...new Set([...models, this.#saved])].filter(Boolean).map((name) => new Option(name, name));
      this.#select.replaceChildren(first, ...others);
      this.#select.value = this.#saved;
    } catch {
      // The choice then is what it is; sending does not depend on it.
    }
  }
}
