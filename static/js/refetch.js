// Loads the page again when the room has moved on without it.

const page = document.body.dataset;

/** The room has moved on to `messageId`, which the page doesn't show. Returns false if a reload did not help before. */
export function refetch(messageId) {
  const key = `refetched:${page.roomId}`;
  if (read(key) === messageId) return false;
  try {
    sessionStorage.setItem(key, messageId);
  } catch {
    // Without a memory of the last try there would be no end of reloads.
    return false;
  }
  location.reload();
  return true;
}

function read(key) {
  try {
    return sessionStorage.getItem(key);
  } catch {
    return null;
  }
}
