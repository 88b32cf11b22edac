// A block that grows at its end. What stands there stays: it is neither parsed again nor laid out anew, and what a
// reader has selected stays selected.

import { setHtml } from "./html.js";

// All that a block's HTML can end with after its last letter.
const END_UNITS = 200;
const CLOSING = /\s*(?:<\/[a-z0-9]+>\s*)*$/;

/**
 * Add to `block`, which shows the HTML `shown`, what `html` has more. The first `keep` code units of both are the same.
 * Returns false, and changes nothing, if that is more than text at the end.
 */
export function grow(block, shown, html, keep) {
  const closing = CLOSING.exec(shown.slice(-END_UNITS))[0];
  const end = shown.length - closing.length;
  const added = html.slice(end, html.length - closing.length);
  if (keep < end || html.length <= shown.length || added.includes("<") || !html.endsWith(closing)) return false;
  const text = lastText(block, closing.split("</").length - 1);
  if (!text) return false;
  const space = closing.length - closing.trimStart().length;
  text.insertData(text.length - space, plain(added));
  return true;
}

// The text in which an element ends that is the last one so many levels down.
function lastText(element, depth) {
  let last = element;
  for (let level = 0; level < depth; level++) last = last?.lastElementChild;
  return last?.lastChild instanceof Text ? last.lastChild : null;
}

function plain(html) {
  if (!html.includes("&")) return html;
  const holder = document.createElement("span");
  setHtml(holder, html);
  return holder.textContent;
}
