// Emoji: drawn by this page where it can, by the machine's font where that has them, and else by name.

import { h } from "../dom.js";
import { DRAWN, EMOJI } from "./emoji_data.js";

const SYMBOLS = "/page/symbols.svg";
const PICTURE = /(\p{Regional_Indicator}{2}|\p{Extended_Pictographic}\ufe0f?(?:[\u{1f3fb}-\u{1f3ff}])?(?:\u200d\p{Extended_Pictographic}\ufe0f?)*)/u;
const NAME = /:([a-z0-9_+-]+(?:::skin-tone-[2-6])?):/;
const FIRST_TONE = 0x1f3fb - 2; // Slack counts skin tones from 2 to 6
const NAMES = new Map(Object.entries(EMOJI).map(([name, characters]) => [code(characters), name]));

/** Whether there is an emoji of that name. @param {string} name */
export function isEmoji(name) {
  return Object.hasOwn(EMOJI, name);
}

/** All names that begin with, or else hold, some letters. @param {string} letters */
export function emojiNames(letters, most = 40) {
  const all = Object.keys(EMOJI);
  const first = all.filter((name) => name.startsWith(letters));
  return [...first, ...all.filter((name) => !name.startsWith(letters) && name.includes(letters))].slice(0, most);
}

/** An emoji by its name, or the name in colons. @param {string} name @param {number} tone from 2 to 6; 0 without one */
export function emoji(name, tone = 0) {
  const [plain, , ownTone] = name.split(/(::skin-tone-)/);
  if (!isEmoji(plain)) return document.createTextNode(`:${name}:`);
  return draw(toned(EMOJI[plain], Number(ownTone ?? tone)), plain);
}

/** The skin tone takes the place of the selector of a colored picture. */
function toned(characters, tone) {
  if (!(tone >= 2 && tone <= 6)) return characters;
  const [first, ...rest] = characters;
  return first + String.fromCodePoint(FIRST_TONE + tone) + rest.join("").replace(/^\ufe0f/, "");
}

/** Text in which each emoji character can be seen, whatever fonts there are; names only when asked. */
export function withSymbols(text, withNames = false) {
  const out = document.createDocumentFragment();
  const parts = withNames ? split(text, NAME) : [[text, null]];
  for (const [plain, name] of parts) {
    for (const [before, characters] of split(plain, PICTURE)) {
      out.append(before, ...(characters ? [picture(characters)] : []));
    }
    if (name !== null) out.append(emoji(name));
  }
  return out;
}

/** The text before each match and what was matched; the last one has no match. */
function split(text, pattern) {
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(new RegExp(pattern.source, `${pattern.flags}g`))) {
    parts.push([text.slice(at, match.index), match[1]]);
    at = match.index + match[0].length;
  }
  parts.push([text.slice(at), null]);
  return parts;
}

function picture(characters) {
  const name = NAMES.get(code(characters));
  return name === undefined ? characters : draw(characters, name);
}

/** The characters stay in the page, so that what is copied or searched is what was written. */
function draw(characters, name) {
  const id = code(characters);
  const props = { class: "emoji", title: `:${name}:` };
  if (DRAWN.has(id)) {
    return h("span", props, symbol(id), h("span", { class: "emoji-text" }, characters));
  }
  if (hasGlyph(characters)) return h("span", props, characters);
  return h("span", { class: "emoji emoji-name" }, `:${name}:`);
}

function symbol(id) {
  const template = /** @type {HTMLTemplateElement} */ (document.getElementById("emoji-symbol"));
  const node = /** @type {DocumentFragment} */ (template.content.cloneNode(true));
  node.querySelector("use").setAttribute("href", `${SYMBOLS}#${id}`);
  return node;
}

function code(characters) {
  return [...characters].map((character) => character.codePointAt(0).toString(16)).filter((character) => character !== "fe0f").join("-");
}

const glyphs = new Map();

/** Whether a font of this machine has its first character: what no font has looks like what cannot exist. */
function hasGlyph(characters) {
  const [first] = characters;
  if (!glyphs.has(first)) glyphs.set(first, look(first) !== look("\u{10fffe}"));
  return glyphs.get(first);
}

function look(characters) {
  const canvas = document.createElement("canvas");
  canvas.width = 24;
  canvas.height = 24;
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  if (!pen) return "";
  pen.font = "16px sans-serif";
  pen.fillText(characters, 2, 18);
  return pen.getImageData(0, 0, 24, 24).data.join();
}
