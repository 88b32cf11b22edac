// What this tab asks for: prompts, and other tries at a reply. Each is in the outbox until the server has taken it.

import { Outbox } from "./outbox.js";

const FIRST_PROMPT_KEY = "first-prompt";

export class Asking {
  #log;
  #announcer;
  #outbox;
  #send;
  // What an edited prompt has taken the place of, by its client_id, until the server has taken it.
  #replaced = new Map();

  /** `send(frame)` returns whether there was a link. */
  constructor(roomId, { log, announcer, send }) {
    this.#outbox = new Outbox(roomId);
    this.#log = log;
    this.#announcer = announcer;
    this.#send = send;
  }

  /** Show what a reload found in the outbox, and ask what was typed before the room existed. */
  start() {
    for (const entry of this.#outbox.all) {
      if (this.#log.messageOfClient(entry.client_id)) this.#outbox.delete(entry.client_id);
      else this.#show(entry);
    }
    const text = takeFirstPrompt();
    if (text && this.#log.isEmpty) this.prompt(text);
  }

  /** Something that has not been answered by the beginning of a reply or by an error yet, or undefined. */
  get waiting() {
    return this.#outbox.waiting[0];
  }

  /** Ask `text`. `branch` is {} for what follows the newest message, or {parent_id}. Returns the prompt on the page. */
  prompt(text, branch = {}) {
    const entry = this.#outbox.add({ type: "send", text, ...branch });
    const element = this.#show(entry);
    this.#transmit(entry);
    return element;
  }

  /** Ask `text` in place of the prompt in `element` and all that followed it. */
  edit(element, text) {
    const { parentId, versions } = element.dataset;
    const replaced = this.#log.cutFrom(element);
    const edited = this.prompt(text, { parent_id: parentId || null });
    edited.dataset.versions = versions;
    this.#replaced.set(edited.dataset.clientId, replaced);
  }

  /** Ask for another reply in place of the one in `element`; `type` is regenerate or continue. */
  again(type, element) {
    this.#transmit(this.#outbox.add({ type, message_id: element.dataset.messageId }));
  }

  /** Send again what may not have arrived: the server knows a `client_id` it has seen. */
  resend() {
    for (const entry of this.#outbox.waiting) this.#transmit(entry);
  }

  /** A message of ours has been saved; its reply is still to begin. Returns whether it is from this tab. */
  confirm(message) {
    const element = this.#outbox.get(message.client_id) && this.#log.messageOfClient(message.client_id);
    if (element) this.#log.confirmPrompt(element, message);
    this.#replaced.delete(message.client_id);
    return Boolean(element);
  }

  /** A reply has begun. Returns whether this tab asked for it. */
  started(clientId) {
    return this.#outbox.delete(clientId);
  }

  /** Returns whether `error` answers something of ours. */
  fail(error) {
    const entry = this.#outbox.get(error.client_id);
    if (!entry) return false;
    if (entry.frame.type === "send") {
      this.#outbox.update(entry, { error });
      this.#putBack(entry.client_id);
      this.#log.markNotSent(this.#log.messageOfClient(entry.client_id), error);
    } else {
      this.#outbox.delete(entry.client_id);
      this.#announcer.complain(error);
    }
    return true;
  }

  retry(element) {
    const entry = this.#outbox.get(element.dataset.clientId);
    this.#outbox.update(entry, { error: null });
    this.#log.markSending(element);
    this.#transmit(entry);
  }

  /** Take a prompt that was not sent back. Returns its text. */
  takeBack(element) {
    const { client_id: clientId, frame } = this.#outbox.get(element.dataset.clientId);
    this.#outbox.delete(clientId);
    element.remove();
    return frame.text;
  }

  // A prompt that was refused replaces nothing: it stands below what is still the newest path.
  #putBack(clientId) {
    this.#log.putBack(this.#replaced.get(clientId) ?? []);
    this.#replaced.delete(clientId);
  }

  #show({ client_id: clientId, frame, error }) {
    if (frame.type !== "send") return null;
    const element = this.#log.addOwnPrompt(clientId, frame.text);
    if (error) this.#log.markNotSent(element, error);
    return element;
  }

  #transmit(entry) {
    const isSent = this.#send({ ...entry.frame, client_id: entry.client_id });
    if (isSent) this.#outbox.update(entry, { isSent });
  }
}

/** Keep what was typed on the page without a room, for the room that is being made. */
export function keepFirstPrompt(text) {
  sessionStorage.setItem(FIRST_PROMPT_KEY, text);
}

/** Take it: into the new room, or back onto the page when no room was made. Null when there is none. */
export function takeFirstPrompt() {
  try {
    const text = sessionStorage.getItem(FIRST_PROMPT_KEY);
    sessionStorage.removeItem(FIRST_PROMPT_KEY);
    return text;
  } catch {
    return null;
  }
}
