// One reply on the screen. Deltas go into memory at once and onto the screen with the next animation frame, until
// Stop freezes it: from then on it shows what the person saw at the press, up to the end that the server sends.

import { BlockList } from "./blocks.js";
import { engineSentence, sentence } from "./i18n.js";

const WAITING_MS = 5000;
const LIVE = new Set(["pending", "streaming", "stopping"]);

export class Reply {
  #element;
  #parts = {};
  #state;
  #position;
  #shownPosition;
  #ending = null;
  #isFrozen = false;
  #animationFrame = 0;
  #waitingTimer;
  #hasContent;

  constructor(element, { onBlockClosed }) {
    this.#element = element;
    this.#state = element.querySelector(".state");
    this.#position = this.#shownPosition = Number(element.dataset.position);
    for (const part of element.querySelectorAll("[data-part]")) {
      this.#parts[part.dataset.part] = new BlockList(part, onBlockClosed);
    }
    this.#hasContent = !this.#parts.content.isEmpty;
    if (this.isLive) this.#waitingTimer = setTimeout(() => this.say(sentence("waiting")), WAITING_MS);
  }

  get element() {
    return this.#element;
  }

  get inferenceId() {
    return this.#element.dataset.inferenceId;
  }

  get status() {
    return this.#element.dataset.status;
  }

  get isLive() {
    return LIVE.has(this.status);
  }

  /** How far the reply has been received; a frozen screen shows less. */
  get position() {
    return this.#position;
  }

  /** Expect everything from the beginning again: the link broke, and the server starts with an empty screen in mind. */
  reset() {
    this.#position = 0;
    for (const part of Object.values(this.#parts)) part.reset();
  }

  applyDelta({ part, patches, position }) {
    clearTimeout(this.#waitingTimer);
    this.#parts[part].apply(patches);
    this.#position = position;
    this.#animationFrame ||= requestAnimationFrame(() => this.#paintDeltas());
  }

  /** Let the screen stand still. Returns the position of the last delta on it. */
  freeze() {
    this.#isFrozen = true;
    cancelAnimationFrame(this.#animationFrame);
    this.#element.dataset.status = "stopping";
    return this.#shownPosition;
  }

  /** Show what has come meanwhile, the end included. */
  thaw() {
    this.#isFrozen = false;
    this.#element.dataset.status = "streaming";
    this.say("");
    if (this.#ending) this.#paintEnding();
    else this.#paintDeltas();
  }

  /** Take an `end` in. A later one replaces an earlier one. */
  end(frame) {
    clearTimeout(this.#waitingTimer);
    this.#ending = frame;
    this.#position = frame.position;
    for (const [name, blocks] of Object.entries(this.#parts)) {
      const { patches, blocks: count } = frame.parts[name] ?? { patches: [], blocks: 0 };
      blocks.apply(patches);
      blocks.truncate(count);
    }
    if (!this.#isFrozen) this.#paintEnding();
  }

  /** Say something in the line below the text. */
  say(text) {
    this.#state.textContent = text;
  }

  #paintDeltas() {
    this.#animationFrame = 0;
    if (this.#isFrozen) return;
    this.#paint();
    if (this.status !== "streaming") this.#element.dataset.status = "streaming";
    this.say("");
  }

  #paintEnding() {
    const { status, finish_reason: reason, error } = this.#ending;
    cancelAnimationFrame(this.#animationFrame);
    this.#animationFrame = 0;
    this.#paint();
    this.#element.dataset.status = status;
    this.#element.dataset.finishReason = reason ?? "";
    if (status === "failed" && error) this.say(engineSentence(error));
    else this.say(sentence(status === "completed" ? `reason_${reason}` : status));
  }

  #paint() {
    for (const part of Object.values(this.#parts)) part.paint();
    this.#shownPosition = this.#position;
    this.#element.toggleAttribute("data-is-empty", this.#parts.content.isEmpty);
    this.#showReasoning();
  }

  // Reasoning is open while there is nothing else to read, and folds when the answer begins.
  #showReasoning() {
    const details = this.#element.querySelector(".reasoning");
    details.hidden = this.#parts.reasoning.isEmpty;
    if (!this.#parts.content.isEmpty && !this.#hasContent) {
      this.#hasContent = true;
      details.open = false;
    }
  }
}
