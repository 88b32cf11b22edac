// A prompt that is written anew where it stands, to be sent as another version of its turn.

import { listenForEnter } from "./enter.js";

/** Put a box in the place of the text of `message`. `onSend(text)` returns whether the text was taken. */
export function editPrompt(message, { onSend }) {
  if (message.querySelector(".edit")) return;
  const text = message.querySelector(".text");
  const form = document.getElementById("edit-template").content.firstElementChild.cloneNode(true);
  const box = form.querySelector("textarea");
  box.value = text.textContent;
  message.dataset.isEdited = "";
  text.after(form);
  listen(form, box, {
    send: () => box.value.trim() && onSend(box.value.trim()),
    cancel: () => close(message, form),
  });
  box.focus();
}

function listen(form, box, { send, cancel }) {
  listenForEnter(box, send);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  form.querySelector("[data-cancel]").addEventListener("click", cancel);
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.isComposing || event.shiftKey) return;
    // The composer's Esc would stop a reply.
    event.preventDefault();
    cancel();
  });
}

function close(message, form) {
  form.remove();
  delete message.dataset.isEdited;
  message.querySelector('[data-action="edit"]').focus();
}
