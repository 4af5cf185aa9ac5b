// The `markdown` block: a small, safe subset of Markdown, drawn with text nodes only.

import { h } from "../dom.js";
import { emoji, withSymbols } from "./emoji.js";
import { channelMention, isSafeUrl, link, ping, unescapeText, userMention } from "./mrkdwn.js";

/** Draw Markdown text. Images are shown as their alternative text; nothing is loaded. */
export function markdown(text, names) {
  const root = h("div", { class: "markdown" });
  const lines = String(text ?? "").replaceAll("\r\n", "\n").split("\n");
  let at = 0;
  while (at < lines.length) {
    const block = fence(lines, at) || heading(lines, at, names) || rule(lines, at) || table(lines, at, names)
      || quote(lines, at, names) || list(lines, at, names) || paragraph(lines, at, names);
    if (block.node) root.append(block.node);
    at += block.used;
  }
  return root;
}

function fence(lines, at) {
  if (!/^\s*```/.test(lines[at])) return null;
  const rest = lines.slice(at + 1);
  const end = rest.findIndex((line) => /^\s*```\s*$/.test(line));
  const body = end < 0 ? rest : rest.slice(0, end);
  return { node: h("pre", { class: "code-block" }, body.join("\n")), used: body.length + (end < 0 ? 1 : 2) };
}

function heading(lines, at, names) {
  const match = /^(#{1,6})\s+(.*?)\s*#*$/.exec(lines[at]);
  if (!match) return null;
  const props = { class: "markdown-heading", role: "heading", "aria-level": Math.min(match[1].length + 2, 6) };
  return { node: h("div", props, spans(match[2], names)), used: 1 };
}

function rule(lines, at) {
  return /^\s*(?:-{3,}|\*{3,}|_{3,})\s*$/.test(lines[at]) ? { node: h("hr", { class: "divider" }), used: 1 } : null;
}

function quote(lines, at, names) {
  const body = takeWhile(lines, at, (line) => /^\s*>/.test(line));
  if (body.length === 0) return null;
  const inner = body.map((line) => line.replace(/^\s*>\s?/, "")).join("\n");
  return { node: h("blockquote", { class: "quote" }, markdown(inner, names)), used: body.length };
}

const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;

function list(lines, at, names) {
  const body = takeWhile(lines, at, (line) => ITEM.test(line) || /^\s{2,}\S/.test(line));
  if (body.length === 0 || !ITEM.test(body[0])) return null;
  const items = [];
  for (const line of body) {
    const match = ITEM.exec(line);
    if (match) items.push({ depth: match[1].replaceAll("\t", "  ").length, ordered: /\d/.test(match[2]), start: match[2], text: match[3] });
    else items[items.length - 1].text += ` ${line.trim()}`;
  }
  return { node: nest(items, names), used: body.length };
}

function nest(items, names) {
  const node = listNode(items[0]);
  for (let at = 0; at < items.length;) {
    const item = h("li", {}, spans(items[at].text, names));
    let next = at + 1;
    while (next < items.length && items[next].depth > items[0].depth + 1) next += 1;
    if (next > at + 1) item.append(nest(items.slice(at + 1, next), names));
    node.append(item);
    at = next;
  }
  return node;
}

function listNode(item) {
  if (!item.ordered) return h("ul", {});
  return h("ol", { start: Number.parseInt(item.start, 10) });
}

function table(lines, at, names) {
  if (!/\|/.test(lines[at]) || !/^\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*$/.test(lines[at + 1] ?? "")) return null;
  const rows = takeWhile(lines, at, (line) => line.includes("|"));
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());
  const head = h("tr", {}, cells(rows[0]).map((cell) => h("th", { scope: "col" }, spans(cell, names))));
  const body = rows.slice(2).map((row) => h("tr", {}, cells(row).map((cell) => h("td", {}, spans(cell, names)))));
  const node = h("div", { class: "table-scroll" }, h("table", {}, h("thead", {}, head), h("tbody", {}, body)));
  return { node, used: rows.length };
}

function paragraph(lines, at, names) {
  if (lines[at].trim() === "") return { node: null, used: 1 };
  const starts = (line) => /^\s*(```|>|#{1,6}\s)/.test(line) || ITEM.test(line);
  const body = [lines[at], ...takeWhile(lines, at + 1, (line) => line.trim() !== "" && !starts(line))];
  const node = h("p", {});
  body.forEach((line, index) => {
    if (index > 0) node.append(h("br"));
    node.append(spans(line, names));
  });
  return { node, used: body.length };
}

function takeWhile(lines, at, test) {
  const end = lines.slice(at).findIndex((line) => !test(line));
  return lines.slice(at, end < 0 ? lines.length : at + end);
}

/** @type {[RegExp, (match: RegExpExecArray, names: any) => any][]} */
const SPANS = [
  [/^\\([\\`*_{}[\]()#+\-.!~>|])/, (m) => m[1]],
  [/^(`+)(.+?)\1(?!`)/, (m) => h("code", { class: "code" }, m[2].trim() || m[2])],
  [/^!\[([^\]]*)\]\([^)\s]*\)/, (m) => h("span", { class: "image-alt" }, m[1] || "image")],
  [/^\[([^\]]+)\]\(([^)\s]+)\)/, (m, names) => link(m[2], spans(m[1], names))],
  [/^<@([UW][A-Z0-9]+)>/, (m, names) => userMention(m[1], names)],
  [/^<#(C[A-Z0-9]+)(?:\|[^>]*)?>/, (m, names) => channelMention(m[1], null, names)],
  [/^<!(here|channel|everyone)(?:\|[^>]*)?>/, (m) => ping(`@${m[1]}`)],
  [/^<(https?:[^\s<>|]+)>/, (m) => link(m[1])],
  [/^(\*\*|__)(?=\S)(.+?)(?<=\S)\1/, (m, names) => h("strong", {}, spans(m[2], names))],
  [/^~~(?=\S)(.+?)(?<=\S)~~/, (m, names) => h("s", {}, spans(m[1], names))],
  [/^\*(?=\S)([^*]+?)(?<=\S)\*/, (m, names) => h("em", {}, spans(m[1], names))],
  [/^_(?=\S)([^_]+?)(?<=\S)_(?![\p{L}\p{N}])/u, (m, names) => h("em", {}, spans(m[1], names))],
  [/^:([a-z0-9_+-]+):/, (m) => emoji(m[1])],
  [/^https?:\/\/[^\s<>|]+[^\s<>|.,;:!?)\]'"*_~]/, (m) => (isSafeUrl(m[0]) ? link(m[0]) : m[0])],
];

function spans(text, names) {
  const out = document.createDocumentFragment();
  let plain = "";
  let at = 0;
  while (at < text.length) {
    const hit = spanAt(text, at, names);
    if (hit) {
      out.append(withSymbols(unescapeText(plain)), hit.node);
      plain = "";
      at += hit.length;
    } else {
      plain += text[at];
      at += 1;
    }
  }
  out.append(withSymbols(unescapeText(plain)));
  return out;
}

function spanAt(text, at, names) {
  if (!/[\\`!*_~[<:h]/.test(text[at])) return null;
  if (/[_h]/.test(text[at]) && at > 0 && /[\p{L}\p{N}]/u.test(text[at - 1])) return null;
  const rest = text.slice(at);
  for (const [pattern, draw] of SPANS) {
    const match = pattern.exec(rest);
    if (match) return { node: draw(match, names), length: match[0].length };
  }
  return null;
}
