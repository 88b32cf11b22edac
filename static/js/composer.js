// The box to write in and its one button, which is Send, Stop, or waits for a stop to settle.

import { Counter } from "./counter.js";
import { hasTouchKeyboard, listenForEnter } from "./enter.js";
import { sentence } from "./i18n.js";

export class Composer {
  #form;
  #box;
  #button;
  #counter;
  #draftKey;
  #onSend;
  #onStop;

  /** `onSend(text)` takes the text; `onStop()` is called at the press. `draftKey` names the draft in localStorage. */
  constructor(form, { draftKey, onSend, onStop }) {
    this.#form = form;
    this.#box = form.querySelector("textarea");
    this.#button = form.querySelector(".go");
    this.#counter = new Counter(this.#box, form.querySelector(".counter"));
    this.#draftKey = draftKey;
    this.#onSend = onSend;
    this.#onStop = onStop;
  }

  start() {
    listenForEnter(this.#box, () => this.state === "send" && this.#send());
    this.#box.addEventListener("input", () => this.#changed());
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#press();
    });
    // The second half of a double click must not stop what the first has sent.
    this.#button.addEventListener("click", (event) => event.detail > 1 && event.preventDefault());
    document.addEventListener("keydown", (event) => this.#escape(event));
    this.text ||= readDraft(this.#draftKey);
    this.state = this.state;
    if (!hasTouchKeyboard()) this.focus();
  }

  get text() {
    return this.#box.value;
  }

  set text(text) {
    this.#box.value = text;
    this.#changed();
  }

  /** send, stop or stopping */
  get state() {
    return this.#button.dataset.state;
  }

  set state(state) {
    this.#button.dataset.state = state;
    const label = sentence(state);
    this.#button.setAttribute("aria-label", label);
    this.#button.title = label;
    this.#showWhetherItActs();
  }

  focus() {
    this.#box.focus();
  }

  #press() {
    if (this.state === "stop") this.#onStop();
    else if (this.state === "send") this.#send();
  }

  #escape(event) {
    if (event.key !== "Escape" || event.shiftKey || event.isComposing || event.defaultPrevented) return;
    if (this.state === "stop" && !document.querySelector(":popover-open, dialog[open]")) this.#onStop();
  }

  #send() {
    const text = this.text.trim();
    if (!text || this.#counter.isOver) return;
    this.#onSend(text);
    this.text = "";
    // On a phone the keyboard would hide the reply.
    if (hasTouchKeyboard()) this.#box.blur();
    else this.focus();
  }

  #changed() {
    writeDraft(this.#draftKey, this.text);
    if (!CSS.supports("field-sizing", "content")) {
      this.#box.rows = Math.min(8, this.text.split("\n").length);
    }
    this.#counter.show();
    this.#showWhetherItActs();
  }

  // aria-disabled keeps the focus where it is; `disabled` would throw it away.
  #showWhetherItActs() {
    const canSend = this.text.trim() !== "" && !this.#counter.isOver;
    const acts = this.state === "stop" || (this.state === "send" && canSend);
    this.#button.setAttribute("aria-disabled", String(!acts));
  }
}

function readDraft(key) {
  try {
    return localStorage.getItem(key) ?? "";
  } catch {
    return "";
  }
}

function writeDraft(key, text) {
  try {
    if (text) localStorage.setItem(key, text);
    else localStorage.removeItem(key);
  } catch {
    // Storage is full or switched off: the draft then lasts as long as the page does.
  }
}
