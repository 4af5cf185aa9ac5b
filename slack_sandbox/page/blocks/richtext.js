// The `rich_text` block: text that is never parsed, with styles from its own structure.

import { h } from "../dom.js";
import { slackDate } from "../format.js";
import { emoji, withSymbols } from "./emoji.js";
import { channelMention, groupMention, link, ping, userMention } from "./mrkdwn.js";

const SECTIONS = {
  rich_text_section: (part, names) => h("div", { class: "rich-section" }, runs(part.elements, names)),
  rich_text_preformatted: (part, names) => h("pre", { class: "code-block" }, runs(part.elements, names)),
  rich_text_quote: (part, names) => h("blockquote", { class: "quote" }, runs(part.elements, names)),
  rich_text_list: list,
};

/** Draw a rich_text block. */
export function richText(block, names) {
  const root = h("div", { class: "rich-text" });
  for (const part of block.elements ?? []) {
    const draw = SECTIONS[part.type];
    root.append(draw ? draw(part, names) : h("span", { class: "unsupported" }, `Unsupported text part: ${part.type}`));
  }
  return root;
}

function list(part, names) {
  const ordered = part.style === "ordered";
  const depth = Math.min(Math.max(Number(part.indent) || 0, 0), 8);
  const props = { class: `rich-list indent-${depth}`, start: ordered ? (Number(part.offset) || 0) + 1 : null };
  const items = (part.elements ?? []).map((item) => h("li", {}, runs(item.elements, names)));
  return h(ordered ? "ol" : "ul", props, items);
}

const RUNS = {
  text: (run) => h("span", {}, withSymbols(run.text ?? "")),
  link: (run) => link(run.url ?? "", run.text || run.url || ""),
  user: (run, names) => userMention(run.user_id, names),
  usergroup: (run, names) => groupMention(run.usergroup_id, names),
  channel: (run, names) => channelMention(run.channel_id, null, names),
  broadcast: (run) => ping(`@${run.range}`),
  emoji: (run) => emoji(run.name ?? "", Number(run.skin_tone) || 0),
  date: (run) => document.createTextNode(slackDate(String(run.timestamp), run.format ?? "") ?? run.fallback ?? ""),
  color: (run) => document.createTextNode(run.value ?? ""),
};

function runs(elements, names) {
  return (elements ?? []).map((run) => {
    const draw = RUNS[run.type];
    const node = draw ? draw(run, names) : h("span", { class: "unsupported" }, `Unsupported: ${run.type}`);
    return styled(node, run.style ?? {});
  });
}

function styled(node, style) {
  let out = node;
  if (style.code) out = h("code", { class: "code" }, out);
  if (style.strike) out = h("s", {}, out);
  if (style.italic) out = h("em", {}, out);
  if (style.bold) out = h("strong", {}, out);
  if (style.underline) out = h("u", {}, out);
  return out;
}
