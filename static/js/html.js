// The one place where text becomes HTML. The server has sanitized it; the browser lets only this policy do it.

const policy = window.trustedTypes?.createPolicy("chat", { createHTML: (html) => html });

/** Put rendered Markdown from the server into `element`. */
export function setHtml(element, html) {
  element.innerHTML = policy ? policy.createHTML(html) : html;
}
