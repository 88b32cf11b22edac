// Requests beside the socket: forms and parts of a page.

/** POST `fields` to `address`. Returns whether they were taken. */
export async function post(address, fields) {
  const token = document.querySelector("[name=csrfmiddlewaretoken]").value;
  const headers = { "X-CSRFToken": token };
  try {
    const response = await fetch(address, { method: "POST", headers, body: new URLSearchParams(fields) });
    return response.ok && !response.redirected;
  } catch {
    return false;
  }
}

/** GET `address`. Throws when it doesn't answer as it should; a redirect leads to the login page. */
export async function get(address, options) {
  const response = await fetch(address, options);
  if (!response.ok || response.redirected) throw new Error(`${address}: ${response.status}`);
  return response;
}
