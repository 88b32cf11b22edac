// The versions of a turn: other texts of a prompt, other replies to it. All but the one shown are a page away.

/** `message` has just been saved as a further version of the turn whose versions its `data-versions` lists. */
export function addVersion(message) {
  const ids = new Set((message.dataset.versions ?? "").split(" ").filter(Boolean));
  ids.add(message.dataset.messageId);
  message.dataset.versions = [...ids].join(" ");
  show(message, [...ids]);
}

function show(message, ids) {
  const index = ids.indexOf(message.dataset.messageId);
  const box = message.querySelector(".versions");
  box.hidden = ids.length < 2;
  box.querySelector("span").textContent = `${index + 1}/${ids.length}`;
  lead(box.querySelector('[data-version="previous"]'), ids[index - 1]);
  lead(box.querySelector('[data-version="next"]'), ids[index + 1]);
}

function lead(link, messageId) {
  if (messageId) link.href = `?at=${messageId}`;
  else link.removeAttribute("href");
}
