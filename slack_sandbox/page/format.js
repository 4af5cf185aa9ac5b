// Times, names and avatars.

import { h, icon } from "./dom.js";

const locale = navigator.language || "en";
const FORMATS = {
  time: { hour: "numeric", minute: "2-digit" },
  time_secs: { hour: "numeric", minute: "2-digit", second: "2-digit" },
  full: { dateStyle: "full", timeStyle: "medium" },
  date: { day: "numeric", month: "long", year: "numeric" },
  date_short: { day: "numeric", month: "short", year: "numeric" },
  date_long: { weekday: "long", day: "numeric", month: "long", year: "numeric" },
  day: { weekday: "long", day: "numeric", month: "long" },
  parts: { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
};
const DATES = ["date", "date_short", "date_long"];
const made = new Map();
let zone;

/** Say in which time zone the person of this window is. @param {string | undefined} name */
export function setZone(name) {
  zone = name || undefined;
}

function format(kind, date, where = zone) {
  const key = `${kind} ${where}`;
  if (!made.has(key)) made.set(key, new Intl.DateTimeFormat(kind === "parts" ? "en-GB" : locale, { ...FORMATS[kind], timeZone: where }));
  return kind === "parts" ? made.get(key).formatToParts(date) : made.get(key).format(date);
}

/** The time of day in some zone, such as "9:41 AM". @param {string} where */
export function timeIn(where) {
  return format("time", new Date(now()), where);
}

/** Year, month, day, hour and minute of a moment in the person's zone, as two-digit texts. */
function parts(date) {
  return Object.fromEntries(format("parts", date).map((part) => [part.type, part.value]));
}

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
  return `${format("day", date)}, ${format("time", date)}`;
}

/** @type {[string, string, number][]} */
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
  return format("time", tsDate(ts));
}

/** The whole date of a message id, for a tool tip. */
export function fullTime(ts) {
  return format("full", tsDate(ts));
}

/** A key that is the same for two messages of one day. */
export function dayKey(ts) {
  return isoDate(tsDate(ts));
}

/** "Today", "Yesterday" or the date. */
export function dayName(ts) {
  const date = tsDate(ts);
  const near = nearDay(date);
  if (near) return near[0].toUpperCase() + near.slice(1);
  return parts(date).year === parts(new Date(now())).year ? format("day", date) : format("date_long", date);
}

/** @type {[number, string][]} */
const NEAR = [[0, "today"], [-1, "yesterday"], [1, "tomorrow"]];
/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const STEPS = [["day", 86400], ["hour", 3600], ["minute", 60]];

function nearDay(date) {
  for (const [offset, name] of NEAR) {
    const day = new Date(now() + offset * 86400000);
    if (isoDate(day) === isoDate(date)) return name;
  }
  return null;
}

/** "YYYY-MM-DD" in the person's zone. */
export function isoDate(date) {
  const { year, month, day } = parts(date);
  return `${year}-${month}-${day}`;
}

/** "YYYY-MM-DDTHH:MM" in the person's zone, from seconds. */
export function localDateTime(seconds) {
  const date = new Date(seconds * 1000);
  const { hour, minute } = parts(date);
  return `${isoDate(date)}T${hour}:${minute}`;
}

/** Seconds, from "YYYY-MM-DDTHH:MM" in the person's zone. @param {string} text */
export function secondsOf(text) {
  const wanted = Date.parse(`${text}:00Z`);
  let guess = wanted;
  // Twice, as the first guess may lie on the other side of a change of the clocks.
  for (let turn = 0; turn < 2; turn += 1) guess += wanted - Date.parse(`${localDateTime(guess / 1000)}:00Z`);
  return Math.floor(guess / 1000);
}

/** Fill the date tokens of `<!date^seconds^format|fallback>`; null when it cannot be done. */
export function slackDate(seconds, pattern) {
  const date = new Date(Number(seconds) * 1000);
  if (!/^\d{1,12}$/.test(seconds) || Number.isNaN(date.getTime())) return null;
  return pattern.replace(/\{(\w+)\}/g, (whole, token) => dateToken(token, date) ?? whole);
}

function dateToken(token, date) {
  if (token === "time" || token === "time_secs" || DATES.includes(token)) return format(token, date);
  if (token === "date_num") return isoDate(date);
  if (token === "ago") return ago(date);
  const plain = token.replace(/_pretty$/, "");
  if (token.endsWith("_pretty") && DATES.includes(plain)) return nearDay(date) ?? format(plain, date);
  return null;
}

function ago(date) {
  const seconds = Math.round((date.getTime() - now()) / 1000);
  const words = new Intl.RelativeTimeFormat(locale, { numeric: "auto" });
  for (const [unit, size] of STEPS) {
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
