// Notices (toasts) and the confirmation dialog.

import { h, icon, keepFocusInside, uniqueId } from "./dom.js";
import { textObject } from "./blocks/mrkdwn.js";

const SHOW_MS = 9000;
const MOST = 4;

/**
 * Show a notice in the corner. `level` is info, success, warning or error; errors stay until closed.
 * `action` is {label, run}.
 */
export function notice(text, level = "info", action = null) {
  const host = document.getElementById("notices");
  host.style.top = `${document.getElementById("columns").getBoundingClientRect().top + 8}px`;
  const kind = ["success", "warning", "error"].includes(level) ? level : "info";
  const sign = { success: "check", warning: "warn", error: "warn" }[kind] ?? "info";
  const remove = () => node.remove();
  const close = h("button", { type: "button", class: "icon-button", "aria-label": "Close notice", on: { click: remove } }, icon("close"));
  const more = action && h("button", {
    type: "button", class: "notice-action", on: { click: () => { remove(); action.run(); } },
  }, action.label);
  const body = h("div", { class: "notice-body" }, h("span", {}, text), more);
  const node = h("div", { class: `notice notice-${kind}`, role: kind === "error" ? "alert" : "status", data: { testid: "notice" } },
    icon(sign), body, close);
  host.append(node);
  while (host.children.length > MOST) host.firstElementChild.remove();
  if (kind !== "error") hideLater(node, remove);
}

function hideLater(node, remove) {
  let timer = setTimeout(remove, SHOW_MS);
  const hold = () => clearTimeout(timer);
  const go = () => { clearTimeout(timer); timer = setTimeout(remove, SHOW_MS / 2); };
  node.addEventListener("pointerenter", hold);
  node.addEventListener("focusin", hold);
  node.addEventListener("pointerleave", go);
  node.addEventListener("focusout", go);
}

/** Ask as a Block Kit `confirm` object says. Resolves to true when the person confirms. */
export function confirmDialog(confirm, names) {
  const before = /** @type {HTMLElement | null} */ (document.activeElement);
  const ids = { title: uniqueId("ct"), text: uniqueId("cx") };
  return new Promise((resolve) => {
    const finish = (answer) => {
      overlay.remove();
      before?.focus?.();
      resolve(answer);
    };
    const style = confirm.style === "danger" ? "danger" : "primary";
    const deny = h("button", { type: "button", class: "button", data: { testid: "confirm-deny" }, on: { click: () => finish(false) } },
      textObject(confirm.deny ?? "Cancel", names));
    const accept = h("button", { type: "button", class: `button ${style}`, data: { testid: "confirm-accept" }, on: { click: () => finish(true) } },
      textObject(confirm.confirm ?? "Yes", names));
    const box = h("div", {
      class: "modal confirm", role: "alertdialog", "aria-modal": "true", "aria-labelledby": ids.title,
      "aria-describedby": ids.text, data: { testid: "confirm" },
    },
    h("div", { class: "modal-head" }, h("h2", { id: ids.title }, textObject(confirm.title ?? "Are you sure?", names))),
    h("div", { class: "modal-body", id: ids.text }, textObject(confirm.text, names)),
    h("div", { class: "modal-foot" }, deny, accept));
    const overlay = h("div", { class: "overlay overlay-top" }, box);
    overlay.addEventListener("keydown", (event) => {
      keepFocusInside(box, event);
      if (event.key !== "Escape") return;
      event.stopPropagation();
      finish(false);
    });
    document.getElementById("layers").append(overlay);
    accept.focus();
  });
}

/** Let somebody change a text. Resolves to the new one, or to null. */
export function editDialog(text) {
  const before = /** @type {HTMLElement | null} */ (document.activeElement);
  const title = uniqueId("et");
  return new Promise((resolve) => {
    const finish = (answer) => {
      overlay.remove();
      before?.focus?.();
      resolve(answer);
    };
    const area = h("textarea", { class: "field", rows: 4, "aria-labelledby": title, value: text, data: { testid: "edit-text" } });
    const save = h("button", {
      type: "button", class: "button primary", data: { testid: "edit-save" }, on: { click: () => finish(area.value.trim() || null) },
    }, "Save");
    const cancel = h("button", { type: "button", class: "button", on: { click: () => finish(null) } }, "Cancel");
    const box = h("div", { class: "modal confirm", role: "dialog", "aria-modal": "true", "aria-labelledby": title },
      h("div", { class: "modal-head" }, h("h2", { id: title }, "Edit message")),
      h("div", { class: "modal-body" }, area), h("div", { class: "modal-foot" }, cancel, save));
    const overlay = h("div", { class: "overlay overlay-top" }, box);
    overlay.addEventListener("keydown", (event) => {
      keepFocusInside(box, event);
      if (event.key !== "Escape") return;
      event.stopPropagation();
      finish(null);
    });
    document.getElementById("layers").append(overlay);
    area.focus();
  });
}
