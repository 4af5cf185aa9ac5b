// Everything a person can fill in: text, numbers, choices, dates.
//
// Each field keeps its value in `ctx.values` in the shape of Slack's view state, and reports a
// choice to the app when it stands outside an input block (or the block asks for it).

import { append, h, icon } from "../dom.js";
import { localDateTime, secondsOf } from "../format.js";
import { textObject } from "./mrkdwn.js";
import { searchField } from "./search.js";
import { confirmDialog } from "../notices.js";

const FIELDS = {
  plain_text_input: textField,
  number_input: (item, use) => lineField(item, use, item.is_decimal_allowed === false ? "numeric" : "decimal"),
  email_text_input: (item, use) => lineField(item, use, "email"),
  url_text_input: (item, use) => lineField(item, use, "url"),
  static_select: selectField,
  external_select: searchField,
  users_select: (item, use) => pickField(item, use, people(use), "selected_user", item.initial_user),
  channels_select: (item, use) => pickField(item, use, channels(use), "selected_channel", item.initial_channel),
  conversations_select: (item, use) =>
    pickField(item, use, channels(use), "selected_conversation", item.initial_conversation),
  multi_static_select: (item, use) => multiField(item, use, optionsOf(item), "selected_options", item.initial_options),
  multi_channels_select: (item, use) => multiField(item, use, channels(use), "selected_channels", item.initial_channels),
  multi_conversations_select: (item, use) => multiField(item, use, channels(use), "selected_conversations", item.initial_conversations),
  multi_users_select: (item, use) => multiField(item, use, people(use), "selected_users", item.initial_users),
  checkboxes: (item, use) => choiceField(item, use, "checkbox"),
  radio_buttons: (item, use) => choiceField(item, use, "radio"),
  datepicker: (item, use) => nativeField(item, use, "date", "selected_date", item.initial_date),
  timepicker: (item, use) => nativeField(item, use, "time", "selected_time", item.initial_time),
  datetimepicker: dateTimeField,
};

/** Whether this page can draw an element of that type as a field. */
export function isField(type) {
  return Object.hasOwn(FIELDS, type);
}

/**
 * Draw one field.
 *
 * `options`: id, labelledBy, describedBy, label, optional, invalid, inInput, dispatch.
 */
export function field(item, blockId, ctx, options = {}) {
  const kept = ctx.values.get(blockId, item.action_id);
  /** @type {any} */
  const use = { ...options, ctx, kept, blockId, start: (shape) => start(item, blockId, ctx, shape) };
  use.props = common(item, use);
  use.save = (shape, done = true) => save(item, blockId, use, shape, done);
  return FIELDS[item.type](item, use);
}

/** The value a field begins with: what was typed before a redraw, or what the app gave. */
function start(item, blockId, ctx, initial) {
  const kept = ctx.values.get(blockId, item.action_id);
  if (kept && kept.type === item.type) return kept;
  const value = { type: item.type, ...initial };
  ctx.values.set(blockId, item.action_id, value);
  return value;
}

async function save(item, blockId, use, shape, done) {
  const { ctx } = use;
  const before = ctx.values.get(blockId, item.action_id);
  ctx.values.set(blockId, item.action_id, { type: item.type, ...shape });
  if (!done || (use.inInput && !use.dispatch)) return;
  if (item.confirm && !await confirmDialog(item.confirm, ctx.names)) {
    ctx.values.set(blockId, item.action_id, before);
    ctx.redraw?.();
    return;
  }
  await ctx.act(item, blockId, shape);
}

/** Attributes that all fields have. */
function common(item, use) {
  return {
    id: use.id,
    placeholder: item.placeholder?.text,
    "aria-label": use.labelledBy ? null : use.label,
    "aria-describedby": use.describedBy || null,
    "aria-invalid": use.invalid ? "true" : null,
    "aria-required": use.inInput && !use.optional ? "true" : null,
    data: { actionId: item.action_id, autofocus: item.focus_on_load ? "yes" : undefined },
  };
}

/* ---- text ------------------------------------------------------------------------------- */

function textField(item, use) {
  if (!item.multiline) return lineField(item, use, "text");
  const value = use.start({ value: item.initial_value || null });
  const area = h("textarea", { ...common(item, use), class: "field", rows: 4, value: value.value ?? "" });
  return typed(area, item, use);
}

function lineField(item, use, mode) {
  const value = use.start({ value: item.initial_value || null });
  const props = { ...common(item, use), class: "field", type: "text", inputmode: mode, autocomplete: "off", value: value.value ?? "" };
  // Always a text box: a wrong number must reach the app, which says what is wrong with it.
  return typed(h("input", props), item, use);
}

function typed(control, item, use) {
  const counter = h("span", { class: "counter", "aria-live": "polite" });
  const show = () => {
    const left = item.max_length ? item.max_length - control.value.length : null;
    const near = left !== null && left <= Math.max(20, item.max_length * 0.1);
    counter.textContent = near ? (left < 0 ? `${-left} too many` : `${left} left`) : "";
    counter.classList.toggle("over", left !== null && left < 0);
  };
  control.addEventListener("input", () => {
    use.save({ value: control.value === "" ? null : control.value }, false);
    show();
  });
  const onEnter = item.dispatch_action_config?.trigger_actions_on?.includes("on_character_entered");
  control.addEventListener(onEnter ? "input" : "change", () => {
    if (use.dispatch || !use.inInput) use.save({ value: control.value === "" ? null : control.value });
  });
  show();
  return item.max_length ? h("div", { class: "counted" }, control, counter) : control;
}

/* ---- one of several --------------------------------------------------------------------- */

function optionsOf(item) {
  return item.options ?? (item.option_groups ?? []).flatMap((group) => group.options);
}

function people(use) {
  return use.ctx.names.people().map((p) => ({ value: p.id, text: { type: "plain_text", text: p.real_name || p.name } }));
}

function channels(use) {
  return use.ctx.names.channels().map((c) => ({ value: c.id, text: { type: "plain_text", text: `#${c.name}` } }));
}

function selectField(item, use) {
  const value = use.start({ selected_option: item.initial_option ?? null });
  const options = optionsOf(item);
  const control = dropDown(item, use, value.selected_option?.value);
  control.addEventListener("change", () => {
    const chosen = options.find((option) => option.value === control.value) ?? null;
    use.save({ selected_option: chosen });
  });
  return h("span", { class: "select" }, control, icon("down"));
}

function pickField(item, use, options, key, initial) {
  const value = use.start({ [key]: initial ?? null });
  const control = dropDown({ ...item, options }, use, value[key]);
  control.addEventListener("change", () => use.save({ [key]: control.value || null }));
  return h("span", { class: "select" }, control, icon("down"));
}

function dropDown(item, use, chosen) {
  const control = h("select", { ...common(item, use), class: "field", placeholder: null });
  const empty = h("option", { value: "" }, item.placeholder?.text ?? "Choose an option");
  if (chosen && use.inInput && !use.optional) empty.hidden = true;
  control.append(empty);
  const draw = (option) => h("option", { value: option.value }, option.text?.text ?? option.value);
  if (item.option_groups && !item.options) {
    for (const group of item.option_groups) {
      control.append(h("optgroup", { label: group.label?.text }, group.options.map(draw)));
    }
  } else {
    append(control, (item.options ?? []).map(draw));
  }
  control.value = chosen ?? "";
  return control;
}

function choiceField(item, use, kind) {
  const many = kind === "checkbox";
  const initial = many ? { selected_options: item.initial_options ?? [] } : { selected_option: item.initial_option ?? null };
  const value = use.start(initial);
  const chosen = new Set((many ? value.selected_options : [value.selected_option]).filter(Boolean).map((o) => o.value));
  const name = `${use.id ?? "choice"}-${item.action_id}-${Math.random().toString(36).slice(2)}`;
  const boxes = (item.options ?? []).map((option) => {
    const box = h("input", { type: kind, name, value: option.value });
    box.checked = chosen.has(option.value);
    return box;
  });
  const group = h("div", {
    ...common(item, use), class: "choices", role: many ? "group" : "radiogroup", placeholder: null,
    "aria-labelledby": use.labelledBy, "aria-required": null,
  }, (item.options ?? []).map((option, index) => choice(option, boxes[index], use)));
  group.addEventListener("change", () => {
    const options = item.options.filter((_, index) => boxes[index].checked);
    use.save(many ? { selected_options: options } : { selected_option: options[0] ?? null });
  });
  return group;
}

function choice(option, box, use) {
  const text = h("span", { class: "choice-text" }, h("span", {}, textObject(option.text, use.ctx.names)),
    option.description && h("span", { class: "choice-note" }, textObject(option.description, use.ctx.names)));
  return h("label", { class: "choice" }, box, text);
}

/* ---- several of several ----------------------------------------------------------------- */

function multiField(item, use, options, key, initial) {
  const ids = key !== "selected_options";
  const value = use.start({ [key]: initial ?? [] });
  const chosen = new Set((value[key] ?? []).map((entry) => (ids ? entry : entry.value)));
  const label = h("span", { class: "chips" });
  const opener = h("button", {
    ...common(item, use), type: "button", class: "field multi-button", placeholder: null, "aria-required": null,
    "aria-expanded": "false",
  }, label, icon("down"));
  const list = h("div", { class: "multi-list", role: "group", "aria-labelledby": use.labelledBy, hidden: true });
  const show = () => {
    const names = options.filter((option) => chosen.has(option.value)).map((option) => h("span", { class: "chip" }, option.text.text));
    label.replaceChildren(...(names.length > 0 ? names : [item.placeholder?.text ?? "Choose options"]));
    label.classList.toggle("empty", names.length === 0);
  };
  const toggle = (open) => {
    list.hidden = !open;
    opener.setAttribute("aria-expanded", String(open));
  };
  append(list, options.map((option) => {
    const box = h("input", { type: "checkbox", value: option.value });
    box.checked = chosen.has(option.value);
    return choice(option, box, use);
  }));
  list.addEventListener("change", (event) => {
    const most = item.max_selected_items ?? Infinity;
    if (event.target.checked && chosen.size >= most) event.target.checked = false;
    if (event.target.checked) chosen.add(event.target.value);
    else chosen.delete(event.target.value);
    show();
    const picked = options.filter((option) => chosen.has(option.value));
    use.save({ [key]: ids ? picked.map((option) => option.value) : picked });
  });
  opener.addEventListener("click", () => toggle(list.hidden));
  const root = h("div", { class: "multi" }, opener, list);
  root.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || list.hidden) return;
    event.stopPropagation();
    toggle(false);
    opener.focus();
  });
  show();
  return root;
}

/* ---- dates and times -------------------------------------------------------------------- */

function nativeField(item, use, type, key, initial) {
  const value = use.start({ [key]: initial ?? null });
  const control = h("input", { ...common(item, use), class: "field", type, value: value[key] ?? "" });
  control.addEventListener("change", () => use.save({ [key]: control.value || null }));
  control.addEventListener("input", () => { if (use.inInput) use.save({ [key]: control.value || null }, false); });
  return control;
}

function dateTimeField(item, use) {
  const key = "selected_date_time";
  const value = use.start({ [key]: item.initial_date_time ?? null });
  const begin = value[key] === null ? "" : localDateTime(value[key]);
  const control = h("input", { ...common(item, use), class: "field", type: "datetime-local", value: begin });
  const seconds = () => (control.value ? secondsOf(control.value) : null);
  control.addEventListener("change", () => use.save({ [key]: seconds() }));
  control.addEventListener("input", () => { if (use.inInput) use.save({ [key]: seconds() }, false); });
  return control;
}
