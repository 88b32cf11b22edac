// The rooms beside the page: found, renamed, deleted.

import { askWhetherToDelete } from "./dialogs.js";
import { rename } from "./renaming.js";
import { Search } from "./search.js";
import { showTitle, showTitleInSidebar } from "./heading.js";

const GAP_PIXELS = 4;
const STEPS = { ArrowDown: 1, ArrowUp: -1 };

export class Sidebar {
  #element = document.getElementById("sidebar");
  #rooms = document.getElementById("rooms");
  #menu = document.getElementById("row-menu");
  #search = new Search({ onListed: () => this.#markCurrent() });
  #link = null;

  start() {
    this.#search.start();
    this.#rooms.addEventListener("click", ({ target }) => {
      const button = target.closest("[data-room-options]");
      if (button) this.#openMenu(button);
    });
    this.#menu.addEventListener("click", ({ target }) => this.#act(target.closest("[data-row-action]")));
    this.#element.addEventListener("keydown", (event) => this.#walk(event));
    this.#markCurrent();
  }

  #openMenu(button) {
    this.#link = button.parentElement.querySelector("a");
    this.#menu.showPopover();
    const { right, bottom, top } = button.getBoundingClientRect();
    const { offsetWidth, offsetHeight } = this.#menu;
    const isBelow = bottom + GAP_PIXELS + offsetHeight < innerHeight;
    this.#menu.style.left = `${Math.max(GAP_PIXELS, right - offsetWidth)}px`;
    this.#menu.style.top = `${isBelow ? bottom + GAP_PIXELS : top - GAP_PIXELS - offsetHeight}px`;
    this.#menu.querySelector("button").focus();
  }

  async #act(button) {
    if (!button) return;
    const [link, roomId] = [this.#link, this.#link.dataset.roomLink];
    if (button.dataset.rowAction === "delete") return askWhetherToDelete(roomId, link.textContent);
    const title = await rename(link, { address: `${link.pathname}change/`, title: link.textContent });
    if (title === null) return link.focus();
    if (roomId === document.body.dataset.roomId) showTitle(title);
    else showTitleInSidebar(roomId, title);
    link.focus();
  }

  // The arrow keys go from the search through the rooms.
  #walk(event) {
    const step = STEPS[event.key];
    if (!step || event.isComposing || !event.target.matches("#search, [data-room-link]")) return;
    const stops = [document.getElementById("search"), ...this.#rooms.querySelectorAll("[data-room-link]")];
    event.preventDefault();
    stops[stops.indexOf(event.target) + step]?.focus();
  }

  #markCurrent() {
    const link = this.#rooms.querySelector(`[data-room-link="${document.body.dataset.roomId}"]`);
    link?.setAttribute("aria-current", "page");
    link?.scrollIntoView({ block: "nearest" });
  }
}
