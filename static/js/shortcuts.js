// The keys of rooms/_dialogs.html, help-sheet. By `code`, since with a Korean layout `key` is a Korean letter.

import { openDialog } from "./dialogs.js";

const CONTROL = { KeyK: search, Slash: () => openDialog("help-sheet") };
const CONTROL_SHIFT = { KeyO: openNewRoom, KeyC: copyLastReply };
const SHIFT = { Escape: focusComposer };

/** Listen for all shortcuts but Esc and Enter, which are the composer's. */
export function listenForShortcuts() {
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.altKey || document.querySelector("dialog[open]")) return;
    const action = keysFor(event)[event.code];
    if (!action) return;
    event.preventDefault();
    action();
  });
}

function keysFor({ ctrlKey, metaKey, shiftKey }) {
  if (ctrlKey || metaKey) return shiftKey ? CONTROL_SHIFT : CONTROL;
  return shiftKey ? SHIFT : {};
}

function search() {
  const box = document.getElementById("search");
  if (!box.checkVisibility()) document.getElementById("sidebar").showPopover();
  box.focus();
  box.select();
}

function focusComposer() {
  document.getElementById("prompt")?.focus();
}

function openNewRoom() {
  document.getElementById("new-room").click();
}

function copyLastReply() {
  [...document.querySelectorAll('#log > [data-role="assistant"] [data-action="copy"]')].at(-1)?.click();
}
