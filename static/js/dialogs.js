// What opens over the page.

/** Let every `data-dialog` button open its dialog, and every `data-close` button close the one it is in. */
export function listenForDialogs() {
  document.addEventListener("click", ({ target }) => {
    const opener = target.closest("[data-dialog]");
    if (opener) openDialog(opener.dataset.dialog);
    if (target.closest("[data-close]")) target.closest("dialog").close();
    // A click beside a dialog hits the dialog itself; inside it hits what is in it.
    if (target instanceof HTMLDialogElement) target.close();
  });
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
