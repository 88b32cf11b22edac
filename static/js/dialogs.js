// What opens over the page.

/** Let every `data-dialog` button open its dialog, every `data-close` button and every choice in a menu close it. */
export function listenForDialogs() {
  // Before the listeners of the menus, which may give the focus to something else.
  addEventListener("click", ({ target }) => closeOrOpen(target), { capture: true });
}

function closeOrOpen(target) {
  target.closest(".menu-item")?.closest("[popover]").hidePopover();
  const opener = target.closest("[data-dialog]");
  if (opener) openDialog(opener.dataset.dialog);
  if (target.closest("[data-close]")) target.closest("dialog").close();
}

/** Open a dialog; the one that is open stays alone. */
export function openDialog(id) {
  if (document.querySelector("dialog[open]")) return;
  document.getElementById(id).showModal();
}

/** Nothing is deleted at the first press. */
export function askWhetherToDelete(roomId, title) {
  const form = document.querySelector("#delete-dialog form");
  form.action = `${form.dataset.roomsUrl}${roomId}/delete/`;
  form.querySelector("[data-title]").textContent = title;
  openDialog("delete-dialog");
}
