// Block Kit: one function for each block type.

import { h, icon, uniqueId } from "../dom.js";
import { button, iconButton, overflow } from "./elements.js";
import { emoji } from "./emoji.js";
import { field, isField } from "./fields.js";
import { markdown } from "./markdown.js";
import { textObject } from "./mrkdwn.js";
import { richText } from "./richtext.js";

/**
 * Draw blocks.
 *
 * `ctx` says where they stand: `names` (people, channels, groups, me), `values` (what was typed),
 * `act(element, blockId, value, node)` (a click or choice) and `errors` (per block, in modals).
 */
export function renderBlocks(blocks, ctx) {
  return (blocks ?? []).map((block) => {
    const draw = block && BLOCKS[block.type];
    const node = draw ? draw(block, ctx) : unsupported(block?.type);
    node.classList.add("block");
    if (block?.block_id) node.dataset.blockId = block.block_id;
    return node;
  });
}

const BLOCKS = {
  header: (block) => h("div", { class: "block-header", role: "heading", "aria-level": "3" }, textObject(plain(block.text))),
  section,
  context,
  divider: () => h("hr", { class: "divider" }),
  actions: (block, ctx) => h("div", { class: "block-actions" }, (block.elements ?? []).map((e) => element(e, block, ctx))),
  input,
  rich_text: (block, ctx) => richText(block, ctx.names),
  image,
  markdown: (block, ctx) => markdown(block.text, ctx.names),
  table,
  alert,
  container,
  card,
  carousel: (block, ctx) => h("div", { class: "block-carousel", role: "group", "aria-label": "Cards", tabindex: "0" },
    (block.elements ?? []).map((element) => card(element, ctx))),
  data_table: dataTable,
  context_actions: (block, ctx) => h("div", { class: "block-context-actions" },
    (block.elements ?? []).map((item) => contextAction(item, block, ctx))),
  task_card: task,
  plan: (block, ctx) => h("div", { class: "block-plan" },
    h("div", { class: "block-header" }, titleOf(block)), (block.tasks ?? []).map((item) => task(item, ctx))),
};

function plain(text) {
  return text ? { ...text, type: "plain_text" } : text;
}

/** A grey box for what this page cannot draw. */
export function unsupported(type) {
  return h("div", { class: "unsupported", data: { testid: "unsupported" } }, icon("info"),
    `Slack shows something here that this page cannot draw: ${String(type ?? "nothing").replaceAll("_", " ")}.`);
}

function element(item, block, ctx) {
  if (item.type === "button" || item.type === "workflow_button") return button(item, block.block_id, ctx);
  if (item.type === "overflow") return overflow(item, block.block_id, ctx);
  if (item.type === "image") return imageBox(item);
  if (isField(item.type)) return field(item, block.block_id, ctx, { label: item.placeholder?.text ?? item.action_id });
  return unsupported(item.type);
}

function section(block, ctx) {
  const body = h("div", { class: "section-body" });
  if (block.text) body.append(h("div", { class: "section-text" }, textObject(block.text, ctx.names)));
  if (block.fields) {
    const cells = block.fields.map((text) => h("div", { class: "section-field" }, textObject(text, ctx.names)));
    body.append(h("div", { class: "section-fields" }, cells));
  }
  const accessory = block.accessory && h("div", { class: "section-accessory" }, element(block.accessory, block, ctx));
  return h("div", { class: "block-section" }, body, accessory);
}

function context(block, ctx) {
  const parts = (block.elements ?? []).map((item) =>
    item.type === "image" ? imageBox(item) : h("span", { class: "context-part" }, textObject(item, ctx.names)));
  return h("div", { class: "block-context" }, parts);
}

function imageBox(item) {
  return h("span", { class: "image-alt", title: "Images are not loaded here" }, icon("image"), item.alt_text || "Image");
}

function image(block) {
  const title = block.title && h("div", { class: "image-title" }, textObject(plain(block.title)));
  const note = h("span", { class: "image-note" }, "Images are not loaded here");
  return h("div", { class: "block-image" }, title, h("div", { class: "image-frame" }, imageBox(block), note));
}

function table(block, ctx) {
  const settings = block.column_settings ?? [];
  const rows = (block.rows ?? []).map((row, rowIndex) => {
    const cells = row.map((cell, index) => {
      const align = ["left", "center", "right"].includes(settings[index]?.align) ? settings[index].align : "left";
      return h(rowIndex === 0 ? "th" : "td", { class: `align-${align}` }, cellContent(cell, ctx));
    });
    return h("tr", {}, cells);
  });
  return h("div", { class: "table-scroll", tabindex: "0", role: "group", "aria-label": "Table" }, h("table", {}, rows));
}

function cellContent(cell, ctx) {
  if (cell?.type === "rich_text") return richText(cell, ctx.names);
  if (cell?.type === "raw_text") return cell.text ?? "";
  if (cell?.type === "raw_number") return String(cell.text ?? cell.value ?? "");
  return "";
}

/** The caption, then so many rows at a time as the app wants. */
function dataTable(block, ctx) {
  const [head, ...body] = block.rows ?? [];
  const size = block.page_size ?? 20;
  const pages = Math.max(1, Math.ceil(body.length / size));
  const rows = h("tbody", {});
  const place = h("span", { class: "pager-place", role: "status" });
  const cell = (tag, content, props = {}) => h(tag, props, cellContent(content, ctx));
  const row = (cells) => h("tr", {}, cells.map((content, index) =>
    (index === (block.row_header_column_index ?? 0) ? cell("th", content, { scope: "row" }) : cell("td", content))));
  let page = 0;
  const show = (next) => {
    page = Math.min(Math.max(next, 0), pages - 1);
    rows.replaceChildren(...body.slice(page * size, (page + 1) * size).map(row));
    place.textContent = `Page ${page + 1} of ${pages}`;
    back.disabled = page === 0;
    on.disabled = page === pages - 1;
  };
  const back = h("button", { type: "button", class: "button small", on: { click: () => show(page - 1) } }, "Back");
  const on = h("button", { type: "button", class: "button small", on: { click: () => show(page + 1) } }, "Next");
  show(0);
  const heads = h("thead", {}, h("tr", {}, (head ?? []).map((content) => cell("th", content, { scope: "col" }))));
  return h("div", { class: "block-data-table" },
    h("div", { class: "table-scroll", tabindex: "0", role: "group", "aria-label": block.caption ?? "Table" },
      h("table", {}, h("caption", {}, block.caption), heads, rows)),
    pages > 1 && h("div", { class: "pager" }, back, place, on));
}

function container(block, ctx) {
  const text = (part, look) => part && h("div", { class: look }, textObject(part, ctx.names));
  const head = [block.icon && imageBox(block.icon), h("div", {}, text(block.title, "card-title"), text(block.subtitle, "card-subtitle"))];
  const width = ["narrow", "standard", "wide", "full"].includes(block.width) ? block.width : "standard";
  const look = `block-container width-${width}`;
  const body = h("div", { class: "container-body" }, renderBlocks(block.child_blocks, ctx));
  if (!block.is_collapsible) return h("div", { class: look }, (block.title || block.subtitle || block.icon) && h("div", { class: "container-head" }, head), body);
  return h("details", { class: look, open: !block.default_collapsed }, h("summary", { class: "container-head" }, head), body);
}

function card(block, ctx) {
  const text = (part, look) => part && h("div", { class: look }, textObject(part, ctx.names));
  return h("div", { class: "block-card" },
    block.hero_image && h("div", { class: "card-hero" }, imageBox(block.hero_image)),
    h("div", { class: "card-head" }, block.icon && imageBox(block.icon),
      h("div", {}, text(block.title, "card-title"), text(block.subtitle, "card-subtitle"))),
    text(block.body, "card-body"), text(block.subtext, "card-subtitle"),
    block.actions && h("div", { class: "block-actions" }, block.actions.map((item) => element(item, block, ctx))));
}

function contextAction(item, block, ctx) {
  if (item.type === "icon_button") {
    const visible = !item.visible_to_user_ids || item.visible_to_user_ids.includes(ctx.names.me);
    return visible && iconButton(item, block.block_id, ctx, item.text, icon("trash"));
  }
  if (item.type !== "feedback_buttons") return unsupported(item.type);
  const faces = [[item.positive_button, emoji("+1")], [item.negative_button, emoji("-1")]];
  return faces.map(([one, face]) => iconButton({ ...item, ...one }, block.block_id, ctx, one.text, face));
}

function alert(block, ctx) {
  const level = ["info", "warning", "error", "success"].includes(block.level) ? block.level : "default";
  const sign = { warning: "warn", error: "warn", success: "check" }[level] ?? "info";
  return h("div", { class: `block-alert alert-${level}`, role: "note" }, icon(sign), h("div", {}, textObject(block.text, ctx.names)));
}

const TASK_WORDS = { pending: "waiting", in_progress: "at work", complete: "done", error: "failed" };

function titleOf(block) {
  return typeof block.title === "string" ? block.title : block.title?.text ?? "";
}

function task(block, ctx) {
  const status = Object.hasOwn(TASK_WORDS, block.status) ? block.status : "pending";
  const sign = { complete: icon("check"), error: icon("warn") }[status] ?? h("span", { class: `task-dot task-${status}` });
  const more = [block.details, block.output].filter((part) => part?.type === "rich_text").map((part) => richText(part, ctx.names));
  return h("div", { class: "block-task" }, sign,
    h("div", {}, h("span", {}, titleOf(block)), h("span", { class: "task-word" }, TASK_WORDS[status]), more));
}

function input(block, ctx) {
  const ids = { control: uniqueId("in"), hint: uniqueId("hint"), error: uniqueId("err"), label: uniqueId("label") };
  const error = ctx.errors?.[block.block_id];
  const optional = block.optional && h("span", { class: "optional" }, " (optional)");
  const label = h("label", { class: "input-label", for: ids.control, id: ids.label }, textObject(plain(block.label)), optional);
  const options = {
    id: ids.control, labelledBy: ids.label, optional: Boolean(block.optional), invalid: Boolean(error),
    describedBy: [error && ids.error, block.hint && ids.hint].filter(Boolean).join(" "),
    inInput: true, dispatch: Boolean(block.dispatch_action),
  };
  const known = block.element && isField(block.element.type);
  const control = known ? field(block.element, block.block_id, ctx, options) : unsupported(block.element?.type);
  return h("div", { class: error ? "block-input has-error" : "block-input" }, label, control,
    error && errorLine(error, ids.error),
    block.hint && h("div", { class: "input-hint", id: ids.hint }, textObject(plain(block.hint))));
}

/** The line under a field that says what is wrong with it. */
export function errorLine(text, id) {
  return h("div", { class: "field-error", id, role: "alert", data: { testid: "field-error" } }, icon("warn"), h("span", {}, text));
}
