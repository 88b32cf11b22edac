// The buttons on messages.

import { copyCode, copyReply } from "./clipboard.js";
import { loadEarlier } from "./earlier.js";
import { editPrompt } from "./editing.js";

export class Actions {
  #log;
  #asking;
  #composer;
  #announcer;
  #follower;
  #ask;

  /** `ask(action)` does what asks the model for something. */
  constructor({ log, asking, composer, announcer, follower, ask }) {
    this.#log = log;
    this.#asking = asking;
    this.#composer = composer;
    this.#announcer = announcer;
    this.#follower = follower;
    this.#ask = ask;
  }

  start() {
    this.#log.element.addEventListener("click", ({ target }) => {
      const button = target.closest("[data-action]");
      this.#handlers[button?.dataset.action]?.(button.closest(".message"), button);
    });
  }

  #announce = (text) => this.#announcer.say(text);

  #handlers = {
    copy: (message, button) => copyReply(button, this.#announce),
    "copy-code": (message, button) => copyCode(button, this.#announce),
    regenerate: (message) => this.#askIfIdle(() => this.#asking.again("regenerate", message)),
    continue: (message) => this.#askIfIdle(() => this.#asking.again("continue", message)),
    retry: (message) => this.#ask(() => this.#asking.retry(message)),
    "take-back": (message) => this.#takeBack(message),
    edit: (message) => this.#edit(message),
    earlier: (message, button) => this.#loadEarlier(button),
  };

  // While a reply is being written nothing can take its place.
  #askIfIdle(action) {
    if (this.#composer.state === "send") this.#ask(action);
  }

  #edit(message) {
    editPrompt(message, { onSend: (text) => this.#askIfIdle(() => this.#asking.edit(message, text)) });
  }

  #takeBack(message) {
    const draft = this.#composer.text;
    const text = this.#asking.takeBack(message);
    this.#composer.text = draft ? `${text}\n\n${draft}` : text;
    this.#composer.focus();
  }

  #loadEarlier(button) {
    loadEarlier(button, {
      onLoaded: (elements) => this.#follower.keepPlace(() => this.#log.addEarlier(elements)),
      onProblem: (text) => this.#announcer.warn(text),
    });
  }
}
