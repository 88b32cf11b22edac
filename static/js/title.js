// The room's title: on top, in the sidebar, on the browser's tab.

import { sentence } from "./i18n.js";

/** Show the title of the room that is open; an empty one is a new chat. */
export function showTitle(title) {
  const text = title || sentence("new_chat");
  const link = document.querySelector(`[data-room-link="${document.body.dataset.roomId}"]`);
  document.getElementById("title").textContent = text;
  document.title = `${text} · Chatsite`;
  if (link) link.textContent = text;
}
