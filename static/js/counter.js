// How much of what a box may hold is in it, told from nine tenths on.

const TOLD_FROM = 0.9;

export class Counter {
  #box;
  #element;
  #limit;

  /** `box` has its limit in `data-max-characters`; without one it has none. */
  constructor(box, element) {
    this.#box = box;
    this.#element = element;
    this.#limit = Number(box.dataset.maxCharacters) || Infinity;
  }

  get isOver() {
    return this.#length > this.#limit;
  }

  show() {
    const length = this.#length;
    this.#element.hidden = length < TOLD_FROM * this.#limit;
    this.#element.textContent = this.#element.hidden ? "" : `${length} / ${this.#limit}`;
    this.#element.classList.toggle("is-over", length > this.#limit);
  }

  // The server counts code points, a string UTF-16 code units.
  get #length() {
    return this.#limit === Infinity ? 0 : [...this.#box.value.trim()].length;
  }
}
