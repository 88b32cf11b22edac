// How the room is set up: its title, its model, its instructions; and whether it stays. Most of it is its owner's.

import { Counter } from "./counter.js";
import { askWhetherToDelete } from "./dialogs.js";
import { sentence } from "./i18n.js";
import { Models } from "./models.js";
import { rename } from "./renaming.js";
import { post } from "./requests.js";
import { showTitle } from "./heading.js";

export class RoomSettings {
  #title = document.getElementById("title");
  #menu = document.getElementById("room-menu");
  #form = document.getElementById("settings");
  #box = document.getElementById("system-prompt");
  #counter = this.#box && new Counter(this.#box, document.getElementById("system-prompt-counter"));
  #models;

  /** `onProblem(sentence)` says that something could not be saved. */
  constructor({ onProblem }) {
    this.#models = new Models({ onProblem });
  }

  start() {
    this.#models.start();
    if (!this.#form) return;
    this.#menu.addEventListener("click", ({ target }) => this.#act(target.closest("[data-room-action]")));
    this.#title.addEventListener("dblclick", () => this.#rename());
    this.#form.addEventListener("submit", (event) => this.#saveInstructions(event));
    this.#form.parentElement.addEventListener("close", () => this.#reset());
    this.#box.addEventListener("input", () => this.#counter.show());
  }

  /** What a `room` frame tells of it: what has changed, here or elsewhere. */
  show({ model, system_prompt: instructions }) {
    if (model !== undefined) this.#models.show(model);
    // Shown unless somebody is writing others at the moment.
    if (instructions !== undefined && this.#box) this.#box.defaultValue = instructions;
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
    if (this.#counter.isOver) return this.#say(sentence("instructions_too_long"));
    if (!(await post(this.#form.action, { system_prompt: this.#box.value }))) return this.#say(sentence("not_saved"));
    // What `reset` goes back to.
    this.#box.defaultValue = this.#box.value;
    this.#form.parentElement.close();
  }

  #reset() {
    this.#form.reset();
    this.#say("");
  }

  #say(problem) {
    const place = this.#form.querySelector(".field-errors");
    place.textContent = problem;
    place.hidden = !problem;
    this.#counter.show();
  }
}
