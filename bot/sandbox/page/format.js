// Times, names, avatars and emoji.

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

const EMOJI = {
  "+1": 0x1f44d, "-1": 0x1f44e, thumbsup: 0x1f44d, thumbsdown: 0x1f44e, white_check_mark: 0x2705,
  heavy_check_mark: 0x2714, ballot_box_with_check: 0x2611, x: 0x274c, no_entry: 0x26d4, no_entry_sign: 0x1f6ab,
  warning: 0x26a0, rocket: 0x1f680, hourglass: 0x231b, hourglass_flowing_sand: 0x23f3, alarm_clock: 0x23f0,
  bell: 0x1f514, tada: 0x1f389, eyes: 0x1f440, lock: 0x1f512, unlock: 0x1f513, key: 0x1f511, memo: 0x1f4dd,
  pencil: 0x1f4dd, pencil2: 0x270f, question: 0x2753, grey_question: 0x2754, exclamation: 0x2757, bulb: 0x1f4a1,
  information_source: 0x2139, robot_face: 0x1f916, wave: 0x1f44b, large_green_circle: 0x1f7e2, red_circle: 0x1f534,
  large_yellow_circle: 0x1f7e1, large_blue_circle: 0x1f535, stopwatch: 0x23f1, fire: 0x1f525, moneybag: 0x1f4b0,
  package: 0x1f4e6, wrench: 0x1f527, gear: 0x2699, mag: 0x1f50d, link: 0x1f517, speech_balloon: 0x1f4ac,
  calendar: 0x1f4c5, date: 0x1f4c5, zap: 0x26a1, sparkles: 0x2728, smile: 0x1f604, slightly_smiling_face: 0x1f642,
  ok_hand: 0x1f44c, raised_hands: 0x1f64c, pray: 0x1f64f, heart: 0x2764, checkered_flag: 0x1f3c1,
  octagonal_sign: 0x1f6d1, arrow_right: 0x27a1, page_facing_up: 0x1f4c4, scroll: 0x1f4dc, repeat: 0x1f501,
  credit_card: 0x1f4b3, email: 0x2709, star: 0x2b50, hammer: 0x1f528, mega: 0x1f4e3, shield: 0x1f6e1,
};

/** The character of an emoji name, or its name in colons. */
export function emoji(name) {
  const code = Object.hasOwn(EMOJI, name) ? EMOJI[name] : null;
  return code === null ? `:${name}:` : String.fromCodePoint(code) + (code < 0x2fff ? "\ufe0f" : "");
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
