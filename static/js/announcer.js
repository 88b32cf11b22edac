// What the page says besides the conversation: to screen readers, in the notice, and about the link.

import { errorSentence, sentence } from "./i18n.js";

const SPOKEN_KEPT = 3;
const PATIENCE_MS = 1000;

export class Announcer {
  #status = document.getElementById("status");
  #spoken = document.getElementById("spoken");
  #notice = document.getElementById("notice");
  #link = document.getElementById("link-state");
  #linkTimer;

  /** Tell screen readers what happens. */
  say(text) {
    this.#status.textContent = text;
  }

  /** Read a finished block out; tokens one by one would be noise. */
  speak(block) {
    const paragraph = document.createElement("p");
    paragraph.textContent = block.textContent;
    this.#spoken.append(paragraph);
    while (this.#spoken.children.length > SPOKEN_KEPT) this.#spoken.firstElementChild.remove();
  }

  /** Show what went wrong with something that has no place of its own on the page. */
  complain(error) {
    this.warn(errorSentence(error));
  }

  warn(text) {
    this.#notice.textContent = text;
    this.#notice.hidden = false;
  }

  clear() {
    this.#notice.hidden = true;
  }

  /** Show the state of the link. A short break is nobody's business. */
  link(state) {
    clearTimeout(this.#linkTimer);
    if (state === "open") this.#link.hidden = true;
    else if (state === "reconnecting") this.#linkTimer = setTimeout(() => this.#showLink(state), PATIENCE_MS);
    else this.#showLink(state);
  }

  #showLink(state) {
    const { loginUrl, roomsUrl } = document.body.dataset;
    this.#link.textContent = sentence(state === "crowded" ? "too_many" : state);
    if (state === "signed_out") {
      this.#addLink("sign_in", `${loginUrl}?next=${encodeURIComponent(location.pathname)}`);
    }
    if (state === "gone") this.#addLink("to_rooms", roomsUrl);
    this.#link.hidden = false;
  }

  #addLink(key, address) {
    const link = document.createElement("a");
    link.href = address;
    link.textContent = sentence(key);
    this.#link.append(" ", link);
  }
}
