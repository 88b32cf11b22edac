// What the owner of the room can set up: its title, its model, its instructions; and whether it stays.

import { askWhetherToDelete } from "./dialogs.js";
import { sentence } from "./i18n.js";
import { rename } from "./renaming.js";
import { get, post } from "./requests.js";
import { showTitle } from "./title.js";

export class RoomSettings {
  #title = document.getElementById("title");
  #menu = document.getElementById("room-menu");
  #form = document.getElementById("settings");
  #models = document.getElementById("model");
  #onProblem;

  /** `onProblem(sentence)` says that something could not be saved. */
  constructor({ onProblem }) {
    this.#onProblem = onProblem;
  }

  start() {
    if (!this.#form) return;
    this.#menu.addEventListener("click", ({ target }) => this.#act(target.closest("[data-room-action]")));
    this.#title.addEventListener("dblclick", () => this.#rename());
    this.#form.addEventListener("submit", (event) => this.#saveInstructions(event));
    this.#form.parentElement.addEventListener("close", () => this.#form.reset());
    this.#models.addEventListener("change", () => this.#saveModel());
    this.#listModels();
  }

  #act(button) {
    if (!button) return;
    if (button.dataset.roomAction === "rename") return this.#rename();
    return askWhetherToDelete(document.body.dataset.roomId, this.#title.textContent);
  }

  async #rename() {
    const title = await rename(this.#title, { address: this.#form.action, title: this.#title.textContent });
    if (title !== null) showTitle(title);
  }

  async #saveInstructions(event) {
    event.preventDefault();
    const [box, problem] = [this.#form.querySelector("textarea"), this.#form.querySelector(".field-errors")];
    const isSaved = await post(this.#form.action, { system_prompt: box.value });
    problem.hidden = isSaved;
    problem.textContent = isSaved ? "" : sentence("not_saved");
    if (!isSaved) return;
    // What `reset` goes back to.
    box.defaultValue = box.value;
    this.#form.parentElement.close();
  }

  async #saveModel() {
    const saved = this.#models.dataset.saved ?? this.#models.options[0].value;
    if (await post(this.#form.action, { model: this.#models.value })) {
      this.#models.dataset.saved = this.#models.value;
      return;
    }
    this.#models.value = saved;
    this.#onProblem(sentence("not_saved"));
  }

  async #listModels() {
    const saved = this.#models.value;
    this.#models.dataset.saved = saved;
    try {
      const { models, default: usual } = await (await get(this.#models.dataset.address)).json();
      const first = new Option(usual ? sentence("default_is", { name: usual }) : sentence("default_model"), "");
      const others = [...new Set([...models, saved])].filter(Boolean).map((name) => new Option(name, name));
      this.#models.replaceChildren(first, ...others);
      this.#models.value = saved;
    } catch {
      // The choice then is what it is; sending does not depend on it.
    }
  }
}
