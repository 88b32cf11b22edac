// The page's sentences, in the reader's language. The template rooms/_strings.html holds them by key.

const strings = new Map();
for (const element of document.getElementById("strings")?.content.children ?? []) {
  strings.set(element.dataset.key, element.textContent);
}

/** The sentence for `key`; each {name} in it is replaced from `values`. An unknown key gives "". */
export function sentence(key, values = {}) {
  const text = strings.get(key) ?? "";
  return text.replace(/\{(\w+)\}/g, (whole, name) => String(values[name] ?? whole));
}

/** What to say about an `error` frame: our sentence for its code, or the server's. */
export function errorSentence({ code, detail, retry_after: seconds }) {
  return sentence(`error_${code}`, { seconds: Math.ceil(seconds ?? 1) }) || detail || sentence("error_internal");
}

/** What to say about the `error` in an `end` frame. */
export function engineSentence({ code, detail }) {
  return sentence(`engine_${code}`) || detail;
}
