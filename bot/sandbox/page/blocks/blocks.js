// Block Kit: one function for each block type.

import { h, icon, uniqueId } from "../dom.js";
import { button, overflow } from "./elements.js";
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
  task_card: task,
  plan: (block, ctx) => h("div", { class: "block-plan" },
    h("div", { class: "block-header" }, titleOf(block)), (block.tasks ?? []).map((item) => task(item, ctx))),
};

function plain(text) {
  return text ? { ...text, type: "plain_text" } : text;
}

/** A grey box for what this page cannot draw. */
export function unsupported(type) {
  return h("div", { class: "unsupported" }, `Unsupported block: ${type ?? "nothing"}`);
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
