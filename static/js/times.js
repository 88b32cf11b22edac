// Times in the person's own zone and language.

const language = document.documentElement.lang;
const full = new Intl.DateTimeFormat(language, { dateStyle: "full", timeStyle: "short" });
const timeOnly = new Intl.DateTimeFormat(language, { timeStyle: "short" });
const withDay = new Intl.DateTimeFormat(language, { month: "short", day: "numeric", hour: "numeric", minute: "numeric" });
const withYear = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" });

/** Write every `<time>` in `root` out. */
export function showTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]")) show(element);
}

/** Write the time of a new message; `moment` is an ISO 8601 time, now when there is none. */
export function setTime(message, moment = new Date().toISOString()) {
  const element = message.querySelector("time");
  element.dateTime = moment;
  show(element);
}

/** Let the server know the zone, for the days in the sidebar. */
export function rememberZone() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  document.cookie = `zone=${zone}; path=/; max-age=31536000; samesite=lax`;
}

function show(element) {
  const moment = new Date(element.dateTime);
  if (Number.isNaN(moment.getTime())) return;
  element.textContent = format(moment, new Date());
  element.title = full.format(moment);
}

function format(moment, now) {
  if (moment.toDateString() === now.toDateString()) return timeOnly.format(moment);
  return (moment.getFullYear() === now.getFullYear() ? withDay : withYear).format(moment);
}
