// Keeps the end of the conversation in view while the reader is there, and never moves a reader who is not.

const NEAR_PIXELS = 48;
const KEYS_UP = new Set(["PageUp", "ArrowUp", "Home"]);

export class Follower {
  #box;
  #content;
  #jump;
  #isPinned = true;
  #lastTop = 0;
  #lastHeight = 0;

  /** `box` scrolls `content`; `jump` is the button that leads back to the end. */
  constructor(box, content, jump) {
    this.#box = box;
    this.#content = content;
    this.#jump = jump;
  }

  /** Begin at the end, or at the message `wanted`. */
  start(wanted) {
    const passive = { passive: true };
    this.#box.addEventListener("wheel", (event) => event.deltaY < 0 && this.#release(), passive);
    this.#box.addEventListener("touchmove", () => this.#isAtEnd || this.#release(), passive);
    this.#box.addEventListener("keydown", (event) => KEYS_UP.has(event.key) && this.#release());
    this.#box.addEventListener("scroll", () => this.#scrolled(), passive);
    this.#jump.addEventListener("click", () => this.#jumpToEnd());
    const observer = new ResizeObserver(() => this.#follow());
    observer.observe(this.#content);
    observer.observe(this.#box);
    if (!wanted) return;
    this.#isPinned = false;
    wanted.scrollIntoView({ block: "start" });
  }

  /** Let `change` add something above without moving what the reader sees. */
  keepPlace(change) {
    const { scrollTop, scrollHeight } = this.#box;
    this.#isPinned = false;
    this.#box.classList.remove("is-reading");
    change();
    this.#box.scrollTop = scrollTop + this.#box.scrollHeight - scrollHeight;
    this.#showJump();
  }

  /** Go to the end and stay there. */
  pin() {
    this.#isPinned = true;
    this.#follow();
  }

  get #isAtEnd() {
    return this.#box.scrollHeight - this.#box.scrollTop - this.#box.clientHeight <= NEAR_PIXELS;
  }

  #follow() {
    if (this.#isPinned) this.#box.scrollTop = this.#box.scrollHeight;
    this.#showJump();
  }

  // Upwards without the text getting shorter was the reader: a scroll bar dragged, a search in the page.
  #scrolled() {
    const { scrollTop, scrollHeight } = this.#box;
    const isUpwards = scrollTop < this.#lastTop - 1 && scrollHeight >= this.#lastHeight;
    this.#lastTop = scrollTop;
    this.#lastHeight = scrollHeight;
    if (this.#isAtEnd) this.#isPinned = true;
    else if (isUpwards) this.#isPinned = false;
    this.#showJump();
  }

  #release() {
    if (this.#box.scrollHeight <= this.#box.clientHeight) return;
    this.#isPinned = false;
    this.#showJump();
  }

  #jumpToEnd() {
    this.#isPinned = true;
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.#box.scrollTo({ top: this.#box.scrollHeight, behavior: isStill ? "instant" : "smooth" });
    this.#box.focus({ preventScroll: true });
  }

  #showJump() {
    // Messages above get their true heights only when they come near: the browser then keeps the reader's place.
    this.#box.classList.toggle("is-reading", !this.#isPinned);
    this.#jump.hidden = this.#isPinned || this.#isAtEnd;
  }
}
