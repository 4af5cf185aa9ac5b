// Times, names and avatars.

import { h, icon } from "./dom.js";

const locale = navigator.language || "en";
const time = new Intl.DateTimeFormat(locale, { hour: "numeric", minute: "2-digit" });
const timeSeconds = new Intl.DateTimeFormat(locale, { hour: "numeric", minute: "2-digit", second: "2-digit" });
const full = new Intl.DateTimeFormat(locale, { dateStyle: "full", timeStyle: "medium" });
const dates = {
  date: new Intl.DateTimeFormat(locale, { day: "numeric", month: "long", year: "numeric" }),
  date_short: new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", year: "numeric" }),
  date_long: new Intl.DateTimeFormat(locale, { weekday: "long", day: "numeric", month: "long", year: "numeric" }),
};
const dayOfWeek = new Intl.DateTimeFormat(locale, { weekday: "long", day: "numeric", month: "long" });

let aheadMs = 0;

/** Say by how many seconds the sandbox's clock is before this browser's. */
export function setAhead(seconds) {
  aheadMs = (seconds ?? 0) * 1000;
}

/** The sandbox's time: milliseconds since 1970. */
export function now() {
  return Date.now() + aheadMs;
}

/** Day and time of a moment, in seconds since 1970. */
export function moment(seconds) {
  const date = new Date(seconds * 1000);
  return `${dayOfWeek.format(date)}, ${time.format(date)}`;
}

const UNITS = [["day", "d", 86400], ["hour", "h", 3600], ["minute", "min", 60], ["second", "s", 1]];

/** How long so many seconds are, by their two largest units: "1 hour 15 minutes", or "1 h" as `short`. */
export function span(seconds, width = "long") {
  let left = Math.round(seconds);
  const words = [];
  for (const [name, sign, size] of UNITS) {
    const amount = Math.floor(left / size);
    left -= amount * size;
    if (amount > 0) words.push(width === "short" ? `${amount} ${sign}` : count(amount, name, `${name}s`));
  }
  return words.slice(0, width === "short" ? 1 : 2).join(" ") || "a moment";
}

/** The moment of a message id such as "1712345678.000100". */
export function tsDate(ts) {
  return new Date(Number.parseFloat(ts) * 1000);
}

/** Hour and minute of a message id. */
export function clockTime(ts) {
  return time.format(tsDate(ts));
}

/** The whole date of a message id, for a tool tip. */
export function fullTime(ts) {
  return full.format(tsDate(ts));
}

/** A key that is the same for two messages of one day. */
export function dayKey(ts) {
  return tsDate(ts).toDateString();
}

/** "Today", "Yesterday" or the date. */
export function dayName(ts) {
  const date = tsDate(ts);
  const near = nearDay(date);
  if (near) return near[0].toUpperCase() + near.slice(1);
  return date.getFullYear() === new Date(now()).getFullYear() ? dayOfWeek.format(date) : dates.date_long.format(date);
}

function nearDay(date) {
  for (const [offset, name] of [[0, "today"], [-1, "yesterday"], [1, "tomorrow"]]) {
    const day = new Date(now());
    day.setDate(day.getDate() + offset);
    if (day.toDateString() === date.toDateString()) return name;
  }
  return null;
}

function pad(number) {
  return String(number).padStart(2, "0");
}

/** "YYYY-MM-DD" in the viewer's zone. */
export function isoDate(date) {
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
}

/** "YYYY-MM-DDTHH:MM" in the viewer's zone, from seconds. */
export function localDateTime(seconds) {
  const date = new Date(seconds * 1000);
  return `${isoDate(date)}T${pad(date.getHours())}:${pad(date.getMinutes())}`;
}

/** Fill the date tokens of `<!date^seconds^format|fallback>`; null when it cannot be done. */
export function slackDate(seconds, format) {
  const date = new Date(Number(seconds) * 1000);
  if (!/^\d{1,12}$/.test(seconds) || Number.isNaN(date.getTime())) return null;
  return format.replace(/\{(\w+)\}/g, (whole, token) => dateToken(token, date) ?? whole);
}

function dateToken(token, date) {
  if (token === "time") return time.format(date);
  if (token === "time_secs") return timeSeconds.format(date);
  if (token === "date_num") return isoDate(date);
  if (token === "ago") return ago(date);
  if (token in dates) return dates[token].format(date);
  const plain = token.replace(/_pretty$/, "");
  if (token.endsWith("_pretty") && plain in dates) return nearDay(date) ?? dates[plain].format(date);
  return null;
}

function ago(date) {
  const seconds = Math.round((date.getTime() - now()) / 1000);
  const words = new Intl.RelativeTimeFormat(locale, { numeric: "auto" });
  for (const [unit, size] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
    if (Math.abs(seconds) >= size) return words.format(Math.trunc(seconds / size), unit);
  }
  return words.format(seconds, "second");
}

/** A person's or the app's square with initials. */
export function avatar(person, size = "") {
  const node = h("span", { class: `avatar ${size}`.trim(), "aria-hidden": "true" });
  if (!person) return node;
  if (person.bot) {
    node.classList.add("avatar-app");
    node.append(icon("app"));
    return node;
  }
  node.textContent = person.initials || initials(person.real_name || person.name);
  const colour = /^#?[0-9a-f]{6}$/i.test(person.color || "") ? `#${person.color.replace("#", "")}` : null;
  if (colour) node.style.setProperty("--avatar", colour);
  return node;
}

function initials(name) {
  return (name || "?").split(/\s+/).slice(0, 2).map((word) => word[0] || "").join("").toUpperCase();
}

/** "1 reply", "2 replies". */
export function count(number, one, many) {
  return `${number} ${number === 1 ? one : many}`;
}

/** Compare two message ids without losing digits. */
export function compareTs(a, b) {
  const [as, af = ""] = a.split(".");
  const [bs, bf = ""] = b.split(".");
  return Number(as) - Number(bs) || (af < bf ? -1 : Number(af > bf));
}
