// Copy buttons: of a code block, and of a whole reply.

import { sentence } from "./i18n.js";

const COPIED_MS = 2000;

/** Give the code blocks in `block` their Copy button, and its tables a name for screen readers. */
export function decorate(block) {
  for (const bar of block.querySelectorAll(".code-bar:not(:has(button))")) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.action = "copy-code";
    button.textContent = sentence("copy");
    bar.append(button);
  }
  for (const table of block.querySelectorAll(".table")) {
    table.tabIndex = 0;
    table.setAttribute("role", "group");
    table.setAttribute("aria-label", sentence("table"));
  }
}

/** Copy the code under the bar that `button` is in. */
export function copyCode(button, announce) {
  copy(button.closest(".code").querySelector("pre").textContent, button, announce);
}

/** Copy what a reply says, without its reasoning. */
export function copyReply(button, announce) {
  const blocks = button.closest(".message").querySelectorAll('[data-part="content"] .block');
  const text = Array.from(blocks, plainText).join("\n\n");
  copy(text, button.querySelector("[data-label]"), announce);
}

function plainText(block) {
  const clone = block.cloneNode(true);
  for (const bar of clone.querySelectorAll(".code-bar")) bar.remove();
  return clone.textContent.trim();
}

async function copy(text, label, announce) {
  if (!(await write(text))) return;
  label.textContent = sentence("copied");
  announce(sentence("copied"));
  setTimeout(() => (label.textContent = sentence("copy")), COPIED_MS);
}

async function write(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return writeBySelection(text);
  }
}

// The clipboard interface is missing over plain http, and may be refused.
function writeBySelection(text) {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  return isCopied;
}
