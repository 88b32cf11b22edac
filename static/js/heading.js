// What is said of a room beside its messages: its title on top, in the sidebar, on the browser's tab; what is left out;
// how many people are in it.

import { sentence } from "./i18n.js";

/** Show the title of the room that is open; an empty one is a new chat. */
export function showTitle(title) {
  const text = title || sentence("new_chat");
  document.getElementById("title").textContent = text;
  document.title = `${text} · Chatsite`;
  showTitleInSidebar(document.body.dataset.roomId, text);
}

/** A reply begins, maybe on a shorter path; a `room` frame behind its `start` says what is left out of this one. */
export function leaveNothingOut() {
  document.getElementById("left-out").hidden = true;
}

/** What a `room` frame tells. Whoever may do something else here now gets the page for it. */
export function showRoom({ title, role, left_out: leftOut, member_count: memberCount }) {
  if (role && role !== document.body.dataset.role) return location.reload();
  showTitle(title);
  if (leftOut) showLeftOut(leftOut);
  if (memberCount) showMembers(memberCount);
}

/** Show the title of any room that the sidebar lists. */
export function showTitleInSidebar(roomId, title) {
  const link = document.querySelector(`[data-room-link="${roomId}"]`);
  if (!link) return;
  link.textContent = title;
  link.parentElement.querySelector("button")?.setAttribute("aria-label", `${sentence("options")}: ${title}`);
}

function showLeftOut(count) {
  const note = document.getElementById("left-out");
  note.textContent = sentence("left_out", { count });
  note.hidden = false;
}

function showMembers(count) {
  const mark = document.getElementById("shared");
  mark.hidden = count < 2;
  mark.querySelector("[data-count]").textContent = count;
}
