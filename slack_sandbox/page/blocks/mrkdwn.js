// Slack's mrkdwn, drawn with text nodes only.

import { h } from "../dom.js";
import { slackDate } from "../format.js";
import { emoji, isEmoji, withSymbols } from "./emoji.js";

/** Undo Slack's three escapes, once. */
export function unescapeText(text) {
  const plain = { "&amp;": "&", "&lt;": "<", "&gt;": ">" };
  return text.replace(/&(?:amp|lt|gt);/g, (entity) => plain[entity]);
}

/** Whether a link may be followed from the page. */
export function isSafeUrl(url) {
  try {
    return ["http:", "https:", "mailto:", "tel:"].includes(new URL(url).protocol);
  } catch {
    return false;
  }
}

/** A link, or plain text when the address is not one that may be opened. */
export function link(url, ...label) {
  const children = label.length > 0 ? label : [url];
  if (!isSafeUrl(url)) return h("span", {}, ...children);
  const props = { class: "link", href: url, target: "_blank", rel: "noopener noreferrer nofollow", title: url };
  return h("a", props, ...children);
}

/** A person's name as Slack shows a mention. */
export function userMention(id, names) {
  const person = names.person(id);
  const own = id === names.me;
  const label = person ? person.real_name || person.name : id;
  return h("span", { class: own ? "mention mention-me" : "mention", data: { userId: id } }, `@${label}`);
}

/** A ping of many people: shown loudly, because it would disturb them. */
export function ping(label) {
  return h("span", { class: "mention mention-ping" }, label);
}

/** Draw mrkdwn text: code blocks, quotes, then lines of inline marks. */
export function mrkdwn(text, names) {
  const root = document.createDocumentFragment();
  String(text ?? "").split(/```/).forEach((part, index, parts) => {
    const isCode = index % 2 === 1 && index < parts.length - 1;
    if (isCode) {
      root.append(h("pre", { class: "code-block" }, codeText(part.replace(/^\n|\n$/g, ""), names)));
    } else {
      // An odd fence has no partner: Slack shows it as it was typed.
      appendLines(root, index % 2 === 1 ? `\`\`\`${part}` : trimAroundCode(part, index, parts), names);
    }
  });
  return root;
}

function trimAroundCode(part, index, parts) {
  let text = part;
  if (index > 0) text = text.replace(/^\n/, "");
  if (index < parts.length - 1) text = text.replace(/\n$/, "");
  return text;
}

function appendLines(root, text, names) {
  if (text === "") return;
  let quote = null;
  let first = true;
  for (const line of text.split("\n")) {
    const quoted = /^(?:&gt;|>)\s?(.*)$/.exec(line);
    if (quoted) {
      if (quote) quote.append(h("br"));
      else root.append((quote = h("blockquote", { class: "quote" })));
      quote.append(inline(quoted[1], names));
    } else {
      if (!first && !quote) root.append(h("br"));
      quote = null;
      root.append(inline(line, names));
    }
    first = false;
  }
}

function codeText(text, names) {
  // Inside code only entities and <…> references are resolved, to their plain text.
  return unescapeText(text.replace(/<([^<>\n]+)>/g, (whole, body) => reference(body, names).textContent));
}

const WORD = /[\p{L}\p{N}_]/u;
const MARKS = { "*": "strong", _: "em", "~": "s" };
const URL_START = /^https?:\/\/[^\s<>|]+/;

/** Draw one line of inline marks. */
export function inline(text, names) {
  const out = document.createDocumentFragment();
  let plain = "";
  let at = 0;
  const flush = () => {
    if (plain) out.append(withSymbols(unescapeText(plain)));
    plain = "";
  };
  while (at < text.length) {
    const token = tokenAt(text, at, names);
    if (token) {
      flush();
      out.append(token.node);
      at += token.length;
    } else {
      plain += text[at];
      at += 1;
    }
  }
  flush();
  return out;
}

function tokenAt(text, at, names) {
  const char = text[at];
  if (char === "<") return referenceAt(text, at, names);
  if (char === "`") return codeAt(text, at, names);
  if (char in MARKS) return markAt(text, at, names);
  if (char === ":") return emojiAt(text, at);
  if (char === "h" && (at === 0 || !WORD.test(text[at - 1]))) return urlAt(text, at);
  return null;
}

function referenceAt(text, at, names) {
  const match = /^<([^<>\n]+)>/.exec(text.slice(at));
  return match && { node: reference(match[1], names), length: match[0].length };
}

function codeAt(text, at, names) {
  const match = /^`([^`\n]+)`/.exec(text.slice(at));
  return match && { node: h("code", { class: "code" }, codeText(match[1], names)), length: match[0].length };
}

function emojiAt(text, at) {
  const match = /^:([a-z0-9_+-]+):(?::skin-tone-([2-6]):)?/.exec(text.slice(at));
  if (!match) return null;
  return isEmoji(match[1]) ? { node: emoji(match[1], Number(match[2] ?? 0)), length: match[0].length } : null;
}

function urlAt(text, at) {
  const match = URL_START.exec(text.slice(at));
  if (!match) return null;
  const raw = match[0].replace(/(?:[.,;:!?)\]'"*_~]|&gt;|&lt;)+$/, "");
  return { node: link(unescapeText(raw)), length: raw.length };
}

function markAt(text, at, names) {
  const mark = text[at];
  if (at > 0 && (WORD.test(text[at - 1]) || text[at - 1] === mark)) return null;
  const end = closingMark(text, at, mark);
  if (end < 0) return null;
  const node = h(MARKS[mark], {}, inline(text.slice(at + 1, end), names));
  return { node, length: end - at + 1 };
}

function closingMark(text, at, mark) {
  if (/[\s]/.test(text[at + 1] ?? " ") || text[at + 1] === mark) return -1;
  for (let end = text.indexOf(mark, at + 2); end >= 0; end = text.indexOf(mark, end + 1)) {
    const after = text[end + 1];
    if (!/\s/.test(text[end - 1]) && (after === undefined || !WORD.test(after))) return end;
  }
  return -1;
}

function reference(body, names) {
  const bar = body.indexOf("|");
  const target = unescapeText(bar < 0 ? body : body.slice(0, bar));
  const label = bar < 0 ? null : unescapeText(body.slice(bar + 1));
  if (target.startsWith("@")) return userMention(target.slice(1), names);
  if (target.startsWith("#")) return channelMention(target.slice(1), label, names);
  if (target.startsWith("!")) return special(target.slice(1), label, names);
  if (!/^[a-z][a-z0-9+.-]*:/i.test(target)) return h("span", {}, `<${unescapeText(body)}>`);
  return link(target, label || target.replace(/^(?:mailto|tel):/, ""));
}

/** A channel's name as Slack shows a mention. */
export function channelMention(id, label, names) {
  const channel = names.channel(id);
  return h("span", { class: "mention" }, `#${channel ? channel.name : label || id}`);
}

/** A group's name as Slack shows a mention. */
export function groupMention(id, names, label) {
  const group = names.group(id);
  const own = group?.members?.includes(names.me);
  const text = group ? `@${group.handle}` : label || id;
  return h("span", { class: own ? "mention mention-me" : "mention" }, text);
}

function special(target, label, names) {
  const [kind, ...rest] = target.split("^");
  if (kind === "date") return dateReference(rest, label);
  if (kind === "subteam") return groupMention(rest[0], names, label);
  if (["here", "channel", "everyone"].includes(kind)) return ping(`@${kind}`);
  return h("span", {}, label ?? `<!${target}>`);
}

function dateReference([seconds, format, url], label) {
  const text = slackDate(seconds ?? "", format ?? "") ?? label ?? "";
  const title = slackDate(seconds ?? "", "{date_long} {time}");
  return url ? link(url, text) : h("time", { class: "date", title }, text);
}

/** A text object of Block Kit: mrkdwn is parsed, plain_text never is (but for emoji names, when asked). */
export function textObject(text, names) {
  if (!text) return document.createDocumentFragment();
  if (typeof text === "string") return plainText(text);
  if (text.type === "mrkdwn") return mrkdwn(text.text, names);
  return plainText(text.text, text.emoji === true);
}

/** Text as it is, with its line breaks. */
export function plainText(text, withEmoji = false) {
  return withSymbols(String(text ?? ""), withEmoji);
}

/** A text object or mrkdwn string as one line without marks, for labels and announcements. */
export function flatText(text, names) {
  const node = document.createElement("div");
  node.append(typeof text === "string" ? mrkdwn(text, names) : textObject(text, names));
  return node.textContent.replace(/\s+/g, " ").trim();
}
