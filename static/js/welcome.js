// The page without a room yet: what is typed here becomes the first prompt of a new room.

import { keepFirstPrompt, takeFirstPrompt } from "./asking.js";
import { Composer } from "./composer.js";

export class Welcome {
  #form;
  #composer;

  constructor(form) {
    this.#form = form;
    this.#composer = new Composer(form, { draftKey: "draft:new", onSend: (text) => this.#open(text), onStop() {} });
  }

  start() {
    this.#composer.start();
    // Still there when no room was made for it.
    const refused = takeFirstPrompt();
    if (refused) this.#composer.text = refused;
    document.addEventListener("click", ({ target }) => {
      const starter = target.closest("[data-starter]")?.dataset.starter;
      if (!starter) return;
      this.#composer.text = starter;
      this.#composer.focus();
    });
  }

  #open(text) {
    keepFirstPrompt(text);
    // Past our own handler of the form's `submit`, which would send again.
    this.#form.submit();
  }
}
