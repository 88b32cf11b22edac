// Long rooms come with their newest messages; those before them are loaded by a button above.

import { setHtml } from "./html.js";
import { sentence } from "./i18n.js";
import { get } from "./requests.js";

/** Load what the pressed `button` offers and hand it to `onLoaded(elements)`, which puts it in the button's place. */
export async function loadEarlier(button, { onLoaded, onProblem }) {
  if (button.getAttribute("aria-disabled") === "true") return;
  const firstShown = button.closest("#log").querySelector(".message");
  button.setAttribute("aria-disabled", "true");
  try {
    const response = await get(`${button.dataset.earlier}?before=${firstShown.dataset.messageId}`);
    const holder = document.createElement("div");
    setHtml(holder, await response.text());
    onLoaded([...holder.children]);
  } catch {
    button.setAttribute("aria-disabled", "false");
    onProblem(sentence("not_loaded"));
  }
}
