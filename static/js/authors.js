// Who has written a message: another person, a model.

/** Say who wrote `element`, which is not to be edited here then. */
export function showAuthor(element, author) {
  const heading = element.querySelector("h2");
  heading.textContent = author;
  heading.classList.remove("visually-hidden");
  element.querySelector('[data-action="edit"]')?.remove();
}

/** Say which model writes the reply `element`. */
export function showModel(element, model) {
  element.querySelector("[data-model]").textContent = model;
}
