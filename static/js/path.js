// Which path of the room's tree the page shows, and what the newest message of the room is.

const page = document.body.dataset;

export class Path {
  lastMessageId = page.lastMessageId;
  #isOlder = "isOlderPath" in page;

  /** Whether the page shows another path than the one that grows. */
  get isOlder() {
    return this.#isOlder;
  }

  /** The message that the address leads to, or null. */
  get wantedMessageId() {
    return new URLSearchParams(location.search).get("at");
  }

  /** What the page shows from now on is the newest path, which needs no mark in the address. */
  becomeNewest() {
    this.#isOlder = false;
    if (this.wantedMessageId) history.replaceState(null, "", location.pathname);
  }
}
