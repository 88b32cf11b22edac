// The messages of the room on the page: one path of its tree, from the first to the latest.

import { errorSentence, sentence } from "./i18n.js";
import { Reply } from "./reply.js";

const SENDING_MS = 1000;

export class Log {
  #element = document.getElementById("log");
  #replies = new Map();
  #onBlockClosed;

  constructor({ onBlockClosed }) {
    this.#onBlockClosed = onBlockClosed;
    for (const element of this.#element.querySelectorAll('[data-role="assistant"]')) this.#adopt(element);
  }

  get element() {
    return this.#element;
  }

  get isEmpty() {
    return this.#element.children.length === 0;
  }

  get liveReplies() {
    return [...this.#replies.values()].filter((reply) => reply.isLive);
  }

  /** The latest reply if the path ends with it. */
  get lastReply() {
    return this.reply(this.#element.lastElementChild?.dataset.inferenceId);
  }

  reply(inferenceId) {
    return this.#replies.get(inferenceId);
  }

  message(messageId) {
    return this.#find("messageId", messageId);
  }

  messageOfClient(clientId) {
    return this.#find("clientId", clientId);
  }

  /** Show a prompt of this tab before the server has it. */
  addOwnPrompt(clientId, text) {
    const element = this.#copy("prompt-template");
    element.dataset.clientId = clientId;
    element.querySelector(".text").textContent = text;
    this.#element.append(element);
    this.markSending(element);
    return element;
  }

  markSending(element) {
    element.dataset.status = "sending";
    const isSending = () => element.dataset.status === "sending";
    setTimeout(() => isSending() && this.#say(element, sentence("sending")), SENDING_MS);
  }

  markNotSent(element, error) {
    element.dataset.status = "not-sent";
    this.#say(element, sentence("not_sent", { reason: errorSentence(error) }));
  }

  /** The server has it now. */
  confirmPrompt(element, message) {
    element.dataset.messageId = message.id;
    element.dataset.status = message.status;
    this.#say(element, "");
    this.#place(element);
  }

  /** Show a prompt from elsewhere: another tab, another person. */
  addPrompt(message) {
    const element = this.addOwnPrompt(message.client_id ?? "", message.text);
    this.confirmPrompt(element, message);
    if (message.author === document.body.dataset.user) return;
    const heading = element.querySelector("h2");
    heading.textContent = message.author;
    heading.classList.remove("visually-hidden");
  }

  /** Show a reply that begins, in the place of whatever followed its prompt. */
  addReply({ inference_id: inferenceId, message_id: messageId, parent_id: parentId, client_id: clientId }) {
    const parent = this.message(parentId);
    if (parent) this.cutAfter(parent);
    const element = this.#copy("reply-template");
    Object.assign(element.dataset, { inferenceId, messageId, clientId: clientId ?? "" });
    this.#place(element);
    return this.#adopt(element);
  }

  /** Take away what follows `element`: another branch of the tree is shown from here on. Unsent prompts stay. */
  cutAfter(element) {
    while (element.nextElementSibling?.dataset.messageId) element.nextElementSibling.remove();
  }

  // What is saved stands before what is not sent yet.
  #place(element) {
    const firstUnsent = [...this.#element.children].find((other) => other !== element && !other.dataset.messageId);
    if (element.nextElementSibling !== (firstUnsent ?? null) || !element.isConnected) {
      this.#element.insertBefore(element, firstUnsent ?? null);
    }
  }

  #adopt(element) {
    const reply = new Reply(element, { onBlockClosed: this.#onBlockClosed });
    this.#replies.set(reply.inferenceId, reply);
    return reply;
  }

  #find(name, value) {
    return value ? [...this.#element.children].find((element) => element.dataset[name] === value) : undefined;
  }

  #copy(id) {
    return document.getElementById(id).content.firstElementChild.cloneNode(true);
  }

  #say(element, text) {
    element.querySelector(".state").textContent = text;
  }
}
