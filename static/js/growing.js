// A block that changes at its end. What stands before the change stays: it is neither parsed again nor laid out anew,
// what a reader has selected there stays selected, and a button there keeps the focus.

import { decorate } from "./clipboard.js";
import { setHtml } from "./html.js";

// The server's HTML has no < and > but those of tags, and closes what it opens, save these two.
const TOKEN = /<(\/?)([a-z0-9]+)[^>]*>|[^<]+/g;
const VOID = new Set(["br", "hr"]);
const ENTITY = /&[a-z]+;/g;
const HALF_ENTITY = /&[a-z]*$/;
const ENTITY_UNITS = 8;

/**
 * Let `block`, which shows the HTML `shown`, show `html`. Their first `keep` code units are the same, and what of the
 * page stands for these is left alone. Returns false if that can't be done: the block must be written whole then.
 */
export function grow(block, shown, html, keep) {
  const start = tokenStart(shown, keep);
  const open = cut(block, shown.slice(start));
  if (!open) return false;
  const holder = document.createElement("div");
  const opening = open.slice(1).map(({ localName }) => `<${localName}>`);
  setHtml(holder, opening.join("") + html.slice(start));
  decorate(holder);
  append(block, holder, opening.length);
  return true;
}

// `position`, or where the tag or the character begins in the midst of which it is.
function tokenStart(html, position) {
  const before = html.slice(0, position);
  const tag = before.lastIndexOf("<");
  if (tag > before.lastIndexOf(">")) return tag;
  return position - (HALF_ENTITY.exec(before.slice(-ENTITY_UNITS))?.[0].length ?? 0);
}

// Take off the page what `rest`, the end of its HTML, stands for. Returns the elements that are open then, `block`
// first; null if the page is not what the HTML says, or if one of them has got something at its end from us.
function cut(block, rest) {
  const open = [];
  for (const { name, nodes } of ends(rest)) {
    const element = open.length ? open.at(-1).lastChild : block;
    if (open.length && (element?.localName !== name || element.className === "code-bar")) return null;
    if (!nodes.every((node) => takeLast(element, node))) return null;
    open.push(element);
  }
  return open;
}

// For each element that is open where `rest` begins, the outermost first: its name, and what `rest` has in it, the last
// first: names of elements, and of texts the length.
function ends(rest) {
  const levels = [{ nodes: [] }];
  let depth = 0;
  for (const [token, slash, name] of rest.matchAll(TOKEN)) {
    const isInside = depth > 0;
    if (name && !VOID.has(name)) depth += slash ? -1 : 1;
    if (isInside) continue;
    if (!slash) levels[0].nodes.unshift(name ?? token.replace(ENTITY, " ").length);
    else {
      depth = 0;
      levels[0].name = name;
      levels.unshift({ nodes: [] });
    }
  }
  return levels;
}

function takeLast(element, node) {
  if (typeof node === "number") return takeText(element, node);
  const isThere = element.lastChild?.localName === node;
  if (isThere) element.lastChild.remove();
  return isThere;
}

// A browser makes several texts of a very long one.
function takeText(element, length) {
  const { lastChild: text } = element;
  if (!(text instanceof Text)) return false;
  const left = text.length - length;
  if (left > 0) text.deleteData(left, length);
  else text.remove();
  return left >= 0 || takeText(element, -left);
}

// Move into `element` what `holder` has. The first child of `holder`, and the first of that one, and so on `depth`
// levels down, stand for the elements that `element` ends with already.
function append(element, holder, depth) {
  const first = holder.firstChild;
  if (depth > 0) {
    append(element.lastChild, first, depth - 1);
    first.remove();
  } else if (first instanceof Text && element.lastChild instanceof Text) {
    element.lastChild.appendData(first.data);
    first.remove();
  }
  while (holder.firstChild) element.append(holder.firstChild);
}
