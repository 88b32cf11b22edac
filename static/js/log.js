// The messages of the room on the page: one path of its tree, from the first to the latest.

import { showAuthor, showModel } from "./authors.js";
import { errorSentence, sentence } from "./i18n.js";
import { Reply } from "./reply.js";
import { setTime, showTimes } from "./times.js";
import { addVersion } from "./versions.js";

const SENDING_MS = 1000;
const UNSENT = '.message[data-message-id=""]';

export class Log {
  #element = document.getElementById("log");
  #replies = new Map();
  #onBlockClosed;

  constructor({ onBlockClosed }) {
    this.#onBlockClosed = onBlockClosed;
    for (const element of this.#element.querySelectorAll('[data-role="assistant"]')) this.#adopt(element);
    const observer = new MutationObserver(() => this.#element.toggleAttribute("data-is-empty", this.isEmpty));
    observer.observe(this.#element, { childList: true });
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

  /** The latest message that is saved. */
  get lastMessageId() {
    return [...this.#element.children].findLast((element) => element.dataset.messageId)?.dataset.messageId;
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
    Object.assign(element.dataset, { messageId: message.id, parentId: message.parent_id ?? "", status: message.status });
    this.#say(element, "");
    setTime(element, message.created_at);
    this.#place(element, message.parent_id);
  }

  /** Show a prompt from elsewhere: another tab, another person. Returns false if it follows nothing that is shown. */
  addPrompt(message) {
    if (message.parent_id && !this.message(message.parent_id)) return false;
    const element = this.addOwnPrompt(message.client_id ?? "", message.text);
    this.confirmPrompt(element, message);
    if (message.author !== document.body.dataset.user) showAuthor(element, message.author);
    return true;
  }

  /** Show a reply that begins, in the place of whatever followed its prompt. */
  addReply({ inference_id: inferenceId, message_id: messageId, parent_id: parentId, client_id: clientId, model }) {
    const element = this.#copy("reply-template");
    showModel(element, model);
    element.querySelector("[data-reference]").textContent = inferenceId;
    Object.assign(element.dataset, { inferenceId, messageId, clientId: clientId ?? "" });
    setTime(element);
    this.#place(element, parentId);
    return this.#adopt(element);
  }

  /** Show messages in the place of the button that has loaded them. */
  addEarlier(elements) {
    this.#element.querySelector(".earlier").replaceWith(...elements);
    for (const element of elements) {
      showTimes(element);
      if (element.dataset.role === "assistant") this.#adopt(element);
    }
  }

  /** Take this message away and what follows it, and return them. Unsent prompts stay. */
  cutFrom(element) {
    const messages = [...this.#element.children];
    const cut = messages.slice(messages.indexOf(element)).filter((each) => each === element || !isUnsent(each));
    for (const each of cut) each.remove();
    return cut;
  }

  /** Show messages again that `cutFrom` has returned. */
  putBack(elements) {
    for (const element of elements) this.#element.insertBefore(element, this.#firstUnsent);
  }

  // It takes the place of the version of its turn that was shown, with all that followed; what is not sent yet stays
  // behind it.
  #place(element, parentId) {
    const parent = this.message(parentId);
    const following = parent ? parent.nextElementSibling : this.#element.firstElementChild;
    const isReplaced = (parent || !parentId) && following && following !== element && !isUnsent(following);
    if (isReplaced) {
      element.dataset.versions ||= following.dataset.versions ?? "";
      element.remove();
      this.cutFrom(following);
    }
    const unsent = this.#firstUnsent;
    if (!element.isConnected || element.nextElementSibling !== unsent) this.#element.insertBefore(element, unsent);
    addVersion(element);
  }

  get #firstUnsent() {
    return this.#element.querySelector(UNSENT);
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

function isUnsent(element) {
  return element.matches(UNSENT);
}
