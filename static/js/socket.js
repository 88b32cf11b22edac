// The room's WebSocket: the only thing that opens, closes and reopens it.

const PING_MS = 25_000;
const PINGS_UNANSWERED = 2;
const DELAY_MIN_MS = 250;
const DELAY_STEP_MS = 500;
const DELAY_MAX_MS = 20_000;
const CROWDED_DELAY_MS = 30_000;

export class RoomSocket {
  #url;
  #onFrame;
  #onLink;
  #socket = null;
  #attempts = 0;
  #reconnectTimer;
  #pingTimer;
  #pingsUnanswered = 0;
  #isStopped = true;
  #isGreeted = false;
  #wake = () => this.#reconnectNow();
  #sleep = () => this.#onLink("offline");

  /** `onLink(state)`: open, reconnecting, offline, crowded; signed_out and gone are final. */
  constructor(url, { onFrame, onLink }) {
    this.#url = url;
    this.#onFrame = onFrame;
    this.#onLink = onLink;
  }

  start() {
    if (!this.#isStopped) return;
    this.#isStopped = false;
    addEventListener("online", this.#wake);
    addEventListener("offline", this.#sleep);
    document.addEventListener("visibilitychange", this.#wake);
    this.#connect();
  }

  stop() {
    this.#isStopped = true;
    removeEventListener("online", this.#wake);
    removeEventListener("offline", this.#sleep);
    document.removeEventListener("visibilitychange", this.#wake);
    clearTimeout(this.#reconnectTimer);
    this.#abandon();
  }

  /** Returns false when there is no link, or no `hello` on it yet; nothing is queued here. */
  send(frame) {
    if (!this.#isGreeted || this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(frame));
    return true;
  }

  #connect() {
    clearTimeout(this.#reconnectTimer);
    this.#socket = new WebSocket(this.#url);
    this.#socket.onmessage = ({ data }) => this.#receive(JSON.parse(data));
    this.#socket.onclose = ({ code }) => this.#lost(code);
    this.#pingsUnanswered = 0;
    this.#pingTimer = setInterval(() => this.#ping(), PING_MS);
  }

  #receive(frame) {
    this.#pingsUnanswered = 0;
    if (frame.type === "ping") this.send({ type: "pong", n: frame.n });
    if (frame.type === "hello") {
      // Not at `open`: a server that refuses us does so after accepting.
      this.#attempts = 0;
      this.#isGreeted = true;
      this.#onLink("open");
    }
    this.#onFrame(frame);
  }

  #ping() {
    if (this.#pingsUnanswered++ >= PINGS_UNANSWERED) return this.#lost();
    this.send({ type: "ping" });
  }

  #lost(code) {
    this.#abandon();
    if (code === 4401 || code === 4404) {
      this.stop();
      return this.#onLink(code === 4401 ? "signed_out" : "gone");
    }
    this.#onLink(code === 4429 ? "crowded" : navigator.onLine ? "reconnecting" : "offline");
    const delay = code === 4429 ? CROWDED_DELAY_MS : this.#nextDelay();
    this.#reconnectTimer = setTimeout(() => this.#connect(), delay);
  }

  // Full jitter: all browsers lose a restarting server at the same moment, and must not come back at the same moment.
  #nextDelay() {
    return DELAY_MIN_MS + Math.random() * Math.min(DELAY_MAX_MS, DELAY_STEP_MS * 2 ** this.#attempts++);
  }

  #reconnectNow() {
    if (document.hidden || this.#socket) return;
    this.#attempts = 0;
    this.#connect();
  }

  #abandon() {
    clearInterval(this.#pingTimer);
    this.#isGreeted = false;
    if (!this.#socket) return;
    this.#socket.onmessage = this.#socket.onclose = null;
    this.#socket.close();
    this.#socket = null;
  }
}
