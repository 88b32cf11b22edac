// Asking the server to go on with replies where this page stands, and again while it can't tell.

const RETRY_MS = 1000;
const RETRY_MAX_MS = 15_000;

export class Following {
  #log;
  #send;
  #isReconnected = false;
  #attempts = 0;
  #timers = new Set();

  /** `send(frame)` returns whether there was a link. */
  constructor(log, send) {
    this.#log = log;
    this.#send = send;
  }

  /** The link is there. After a break the last reply too: it may have been cut back by a late stop from elsewhere. */
  start() {
    this.#forgetRetries();
    const replies = new Set(this.#log.liveReplies);
    if (this.#isReconnected && this.#log.lastReply) replies.add(this.#log.lastReply);
    for (const reply of replies) {
      if (this.#isReconnected) reply.reset();
      this.#follow(reply);
    }
    this.#isReconnected = true;
  }

  /** An `error` frame. Returns whether it says that a `follow` could not be answered now, which is then sent again. */
  failed({ inference_id: inferenceId, code }) {
    const reply = this.#log.reply(inferenceId);
    if (code !== "unavailable" || !reply) return false;
    const delay = Math.min(RETRY_MAX_MS, RETRY_MS * 2 ** this.#attempts++);
    this.#timers.add(setTimeout(() => this.#follow(reply), delay));
    return true;
  }

  #follow(reply) {
    this.#send({ type: "follow", inference_id: reply.inferenceId, position: reply.position });
  }

  #forgetRetries() {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.#attempts = 0;
  }
}
