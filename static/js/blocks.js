// One part of one reply: the HTML of its blocks as the server has sent it, and what of it is on the screen.

import { decorate } from "./clipboard.js";
import { setHtml } from "./html.js";

export class BlockList {
  #element;
  #html = [];
  #closed = new Set();
  #changed = new Set();
  #onBlockClosed;

  /** `element` holds the blocks that the server rendered. `onBlockClosed(block)` is called once a block is final. */
  constructor(element, onBlockClosed) {
    this.#element = element;
    this.#onBlockClosed = onBlockClosed;
    for (const block of element.children) {
      this.#html.push(block.dataset.html ?? "");
      delete block.dataset.html;
      decorate(block);
    }
  }

  get isEmpty() {
    return this.#html.length === 0;
  }

  /** Forget what came, not what is shown: the server tells it all again. */
  reset() {
    this.#html = [];
    this.#closed.clear();
  }

  /** Take patches `[index, keep, tail, isClosed]` in. `keep` counts UTF-16 code units, as strings here do. */
  apply(patches) {
    for (const [index, keep, tail, isClosed] of patches) {
      this.#html[index] = (this.#html[index] ?? "").slice(0, keep) + tail;
      this.#changed.add(index);
      if (isClosed) this.#closed.add(index);
    }
  }

  /** Drop the blocks from number `count` on. */
  truncate(count) {
    this.#html.length = Math.min(this.#html.length, count);
  }

  /** Put on the screen what has changed. */
  paint() {
    while (this.#element.children.length > this.#html.length) this.#element.lastElementChild.remove();
    for (const index of [...this.#changed].sort((one, other) => one - other)) {
      if (index < this.#html.length) this.#paintBlock(index);
    }
    this.#changed.clear();
  }

  #paintBlock(index) {
    const block = this.#element.children[index] ?? this.#addBlock();
    if (block.shownHtml !== this.#html[index]) {
      block.shownHtml = this.#html[index];
      setHtml(block, this.#html[index]);
      decorate(block);
    }
    if (this.#closed.has(index) && !block.isAnnounced) {
      block.isAnnounced = true;
      this.#onBlockClosed(block);
    }
  }

  #addBlock() {
    const block = document.createElement("div");
    block.className = "block";
    this.#element.append(block);
    return block;
  }
}
