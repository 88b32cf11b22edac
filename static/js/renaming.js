// A new title for a room, typed where the old one stands.

import { sentence } from "./i18n.js";
import { post } from "./requests.js";

const MAX_CHARACTERS = 200;

/** Put a box in the place of `element`, which shows the title. Returns the new title, or null when nothing changed. */
export function rename(element, { address, title }) {
  const box = makeBox(title);
  element.hidden = true;
  element.after(box);
  box.select();
  return new Promise((resolve) => {
    listen(box, async (isKept) => {
      const wanted = box.value.trim();
      const isChanged = isKept && wanted && wanted !== title;
      const isSaved = isChanged && (await post(address, { title: wanted }));
      box.remove();
      element.hidden = false;
      if (isChanged && !isSaved) document.getElementById("rooms-problem").textContent = sentence("not_saved");
      resolve(isSaved ? wanted : null);
    });
  });
}

function makeBox(title) {
  const box = document.createElement("input");
  box.className = "rename";
  box.value = title;
  box.maxLength = MAX_CHARACTERS;
  box.setAttribute("aria-label", sentence("rename"));
  return box;
}

function listen(box, onDone) {
  let isDone = false;
  const finish = (isKept) => {
    if (isDone) return;
    isDone = true;
    onDone(isKept);
  };
  box.addEventListener("blur", () => finish(true));
  box.addEventListener("keydown", (event) => {
    if (event.isComposing || (event.key !== "Enter" && event.key !== "Escape")) return;
    event.preventDefault();
    finish(event.key === "Enter");
  });
}
