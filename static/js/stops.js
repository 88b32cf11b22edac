// All stops of this tab that have not settled: of replies, and of a reply that has yet to begin.

import { Stopping } from "./stopping.js";

export class Stops {
  #key;
  #stoppings = new Map();
  #awaitedClientId = null;
  #send;
  #onSettled;

  /** `onSettled(outcome, ending)` is called when the screen shows what is saved. */
  constructor(roomId, { send, onSettled }) {
    this.#key = `stops:${roomId}`;
    this.#send = send;
    this.#onSettled = onSettled;
  }

  get isEmpty() {
    return this.#stoppings.size === 0 && !this.#awaitedClientId;
  }

  /** Take up the stops that a reload has interrupted. */
  start(liveReplies) {
    const kept = new Map(read(this.#key));
    for (const reply of liveReplies) {
      if (kept.has(reply.inferenceId)) this.stop(reply, kept.get(reply.inferenceId));
    }
    this.#save();
  }

  /** Freeze `reply` and stop it at what it shows. */
  stop(reply, keptPosition) {
    if (this.#stoppings.has(reply.inferenceId)) return;
    const shownPosition = reply.freeze();
    const stopping = new Stopping(reply, keptPosition ?? shownPosition, {
      send: this.#send,
      onSettled: (outcome, ending) => this.#settled(reply, outcome, ending),
    });
    this.#stoppings.set(reply.inferenceId, stopping);
    this.#save();
    stopping.start();
  }

  /** Stop the reply to `clientId` as soon as it begins. */
  await(clientId) {
    this.#awaitedClientId = clientId;
  }

  /** `reply` has begun, asked for by `clientId`. */
  started(reply, clientId) {
    if (!clientId || clientId !== this.#awaitedClientId) return;
    this.#awaitedClientId = null;
    this.stop(reply);
  }

  /** The request named `clientId` has failed, so no reply will come. */
  failed(clientId) {
    if (clientId === this.#awaitedClientId) this.#awaitedClientId = null;
  }

  /** The link is back. */
  resend() {
    for (const stopping of this.#stoppings.values()) stopping.send();
  }

  result(frame) {
    this.#stoppings.get(frame.inference_id)?.result(frame);
  }

  end(frame) {
    this.#stoppings.get(frame.inference_id)?.end(frame);
  }

  /** An `error` frame for a stop: the server could not take it now. Returns whether there is such a stop. */
  refused({ inference_id: inferenceId, code }) {
    const outcome = code === "not_found" ? "not_found" : "unavailable";
    this.#stoppings.get(inferenceId)?.result({ outcome });
    return this.#stoppings.has(inferenceId);
  }

  #settled(reply, outcome, ending) {
    this.#stoppings.delete(reply.inferenceId);
    this.#save();
    reply.thaw();
    this.#onSettled(outcome, ending);
  }

  #save() {
    const kept = Array.from(this.#stoppings.values(), (each) => [each.inferenceId, each.position]);
    try {
      sessionStorage.setItem(this.#key, JSON.stringify(kept));
    } catch {
      // Storage is full or switched off: a stop then does not outlive a reload before it is answered.
    }
  }
}

function read(key) {
  try {
    return JSON.parse(sessionStorage.getItem(key)) ?? [];
  } catch {
    return [];
  }
}
