// The buttons on messages.

/** Call `handlers[name](message, button)` for a press on a `data-action` button in `log`. */
export function listenForActions(log, handlers) {
  log.addEventListener("click", ({ target }) => {
    const button = target.closest("[data-action]");
    handlers[button?.dataset.action]?.(button.closest(".message"), button);
  });
}
