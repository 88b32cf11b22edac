// One part of one reply: the HTML of its blocks as the server has sent it, and what of it is on the screen.

import { decorate } from "./clipboard.js";
import { grow } from "./growing.js";
import { setHtml } from "./html.js";

// As many as chat/shown.py puts into one group. A group out of sight costs nothing while the reply grows.
const GROUP_BLOCKS = 20;

export class BlockList {
  #element;
  #blocks;
  #html = [];
  #closed = new Set();
  // How much of its beginning each block still has that has changed since it was painted.
  #changed = new Map();
  #onBlockClosed;

  /** `element` holds the blocks that the server rendered. `onBlockClosed(block)` is called once a block is final. */
  constructor(element, onBlockClosed) {
    this.#element = element;
    this.#onBlockClosed = onBlockClosed;
    this.#blocks = [...element.querySelectorAll(":scope > .group > .block")];
    for (const block of this.#blocks) {
      block.shownHtml = block.dataset.html;
      this.#html.push(block.shownHtml ?? "");
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
      this.#changed.set(index, Math.min(keep, this.#changed.get(index) ?? keep));
      if (isClosed) this.#closed.add(index);
    }
  }

  /** Drop the blocks from number `count` on. */
  truncate(count) {
    this.#html.length = Math.min(this.#html.length, count);
  }

  /** Put on the screen what has changed. */
  paint() {
    while (this.#blocks.length > this.#html.length) this.#removeBlock();
    const changed = [...this.#changed].sort(([one], [other]) => one - other);
    for (const [index, keep] of changed) if (index < this.#html.length) this.#paintBlock(index, keep);
    this.#changed.clear();
  }

  #paintBlock(index, keep) {
    const block = this.#blocks[index] ?? this.#addBlock();
    const [shown, html] = [block.shownHtml, this.#html[index]];
    if (shown !== html && !(shown && grow(block, shown, html, keep))) {
      setHtml(block, html);
      decorate(block);
    }
    block.shownHtml = html;
    if (this.#closed.has(index) && !block.isAnnounced) {
      block.isAnnounced = true;
      this.#onBlockClosed(block);
    }
  }

  #addBlock() {
    const block = newBox("block");
    if (this.#blocks.length % GROUP_BLOCKS === 0) this.#element.append(newBox("group"));
    this.#element.lastElementChild.append(block);
    this.#blocks.push(block);
    return block;
  }

  #removeBlock() {
    const block = this.#blocks.pop();
    const group = block.parentElement;
    block.remove();
    if (!group.firstElementChild) group.remove();
  }
}

function newBox(className) {
  const box = document.createElement("div");
  box.className = className;
  return box;
}
