// One press of Stop: from the frozen screen to the end that the server has saved. It outlives lost links, and a reload.

import { sentence } from "./i18n.js";

const SLOW_MS = 3000;
const RETRY_MS = 500;
const RETRY_MAX_MS = 8000;
const LATE_RESULT_MS = 3000;
// Outcomes after which the reply is, or will be, saved as stopped: the `end` that says so is the one to show.
const CUT = new Set(["stopped", "already_stopped", "cut_after_finish"]);

export class Stopping {
  #reply;
  #position;
  #send;
  #onSettled;
  #outcome = null;
  #ending = null;
  #attempts = 0;
  #timers = new Set();

  /** `send(frame)` returns whether there was a link; `onSettled(outcome, ending)` is called once the screen is true. */
  constructor(reply, position, { send, onSettled }) {
    this.#reply = reply;
    this.#position = position;
    this.#send = send;
    this.#onSettled = onSettled;
  }

  get inferenceId() {
    return this.#reply.inferenceId;
  }

  get position() {
    return this.#position;
  }

  start() {
    this.#reply.say(sentence("stopping"));
    this.#after(SLOW_MS, () => this.#outcome ?? this.#reply.say(sentence("still_stopping")));
    this.send();
  }

  /** Send the stop, the first time or again after the link broke: stopping twice stops once. */
  send() {
    if (!this.#send({ type: "stop", inference_id: this.inferenceId, position: this.#position })) {
      this.#reply.say(sentence("stop_offline"));
    }
  }

  /** The server's answer. */
  result({ outcome }) {
    this.#outcome = outcome;
    if (outcome === "unavailable") this.#retry();
    else if (outcome === "recorded") this.#reply.say(sentence("still_stopping"));
    else if (outcome === "not_found") return this.#settle();
    this.#check();
  }

  /** An `end` has come; it may be one from before the stop. */
  end(frame) {
    this.#ending = frame;
    this.#check();
    this.#after(LATE_RESULT_MS, () => this.#settle());
  }

  #check() {
    if (!this.#ending) return;
    const isCut = this.#ending.status === "stopped";
    if (isCut || (this.#outcome && this.#outcome !== "unavailable" && !CUT.has(this.#outcome))) this.#settle();
  }

  #retry() {
    this.#reply.say(sentence("stop_unavailable"));
    this.#after(Math.min(RETRY_MAX_MS, RETRY_MS * 2 ** this.#attempts++), () => this.send());
  }

  #settle() {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    const onSettled = this.#onSettled;
    this.#onSettled = () => {};
    onSettled(this.#outcome, this.#ending);
  }

  #after(milliseconds, action) {
    this.#timers.add(setTimeout(action, milliseconds));
  }
}
