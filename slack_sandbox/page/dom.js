// Small helpers to build the page. Everything a message contains goes through text nodes:
// no markup is ever parsed from data.

let counter = 0;

/** A fresh id for label/description relations. */
export function uniqueId(prefix = "x") {
  counter += 1;
  return `${prefix}-${counter}`;
}

/**
 * Build an element. Children are nodes or text; null, undefined and false are skipped.
 * Props: `class`, `data` (dataset), `on` (listeners), the rest are attributes.
 */
export function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    setProp(node, name, value);
  }
  append(node, children);
  return node;
}

function setProp(node, name, value) {
  if (value === undefined || value === null || value === false) return;
  if (name === "class") node.className = value;
  else if (name === "data") Object.assign(node.dataset, defined(value));
  else if (name === "on") Object.entries(value).forEach(([type, fn]) => node.addEventListener(type, fn));
  else if (name === "value") node.value = value;
  else node.setAttribute(name, value === true ? "" : String(value));
}

function defined(record) {
  return Object.fromEntries(Object.entries(record).filter(([, v]) => v !== undefined && v !== null));
}

/** Append nodes and text, flattening lists. */
export function append(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

/** Replace everything inside `node`. */
export function fill(node, ...children) {
  node.replaceChildren();
  return append(node, children);
}

/** A copy of one of the drawings in index.html. */
export function icon(name) {
  const template = /** @type {HTMLTemplateElement | null} */ (document.getElementById(`icon-${name}`));
  const slot = h("span", { class: `icon icon-${name}`, "aria-hidden": "true" });
  if (template) slot.append(template.content.cloneNode(true));
  return slot;
}

/** Put drawings into the empty slots of the static page. */
export function drawIconSlots(root) {
  root.querySelectorAll("[data-icon]").forEach((slot) => slot.append(icon(slot.dataset.icon)));
}

/** Tell screen readers something once. */
export function announce(text) {
  const region = document.getElementById("announcer");
  if (!region) return;
  region.textContent = "";
  setTimeout(() => { region.textContent = text; }, 30);
}

const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex='0']";

/** The elements inside `root` that Tab reaches. */
export function focusables(root) {
  return [...root.querySelectorAll(FOCUSABLE)].filter(
    (node) => !node.disabled && node.tabIndex >= 0 && node.getClientRects().length > 0,
  );
}

/** Whether a node takes room on the page. */
export function isShown(node) {
  return node.getClientRects().length > 0;
}

/** Keep Tab inside `root`; call from its keydown listener. */
export function keepFocusInside(root, event) {
  if (event.key !== "Tab") return;
  const nodes = focusables(root);
  if (nodes.length === 0) {
    event.preventDefault();
    return;
  }
  const first = nodes[0];
  const last = nodes[nodes.length - 1];
  const active = document.activeElement;
  if (event.shiftKey && (active === first || !root.contains(active) || active === root)) {
    event.preventDefault();
    last.focus();
  } else if (!event.shiftKey && (active === last || !root.contains(active))) {
    event.preventDefault();
    first.focus();
  }
}

/** Arrow keys, Home and End move between `items`; used by menus. */
export function moveWithArrows(items, event) {
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  const here = items.indexOf(document.activeElement);
  let next = -1;
  if (event.key in steps) next = (here + steps[event.key] + items.length) % items.length;
  if (event.key === "Home") next = 0;
  if (event.key === "End") next = items.length - 1;
  if (next < 0) return;
  event.preventDefault();
  items[next].focus();
}

/** Call `close` when the person clicks or moves the focus outside `root`, one node or several. Returns how to stop. */
export function onLeave(root, close) {
  const roots = [root].flat();
  const away = (event) => { if (!roots.some((node) => node.contains(event.target))) close(); };
  document.addEventListener("pointerdown", away, true);
  document.addEventListener("focusin", away, true);
  return () => {
    document.removeEventListener("pointerdown", away, true);
    document.removeEventListener("focusin", away, true);
  };
}

/** @typedef {HTMLElement & {name?: string, value?: string, selectionStart?: number, selectionEnd?: number}} Control */

/** Remember which control has the focus inside `node`, so that a redraw can give it back. */
export function rememberFocus(node) {
  const active = /** @type {Control | null} */ (document.activeElement);
  if (!active || !node.contains(active) || active === node) return null;
  const { actionId, testid } = active.dataset;
  const blockId = /** @type {HTMLElement} */ (active.closest("[data-block-id]"))?.dataset.blockId;
  const selection = typeof active.selectionStart === "number" ? [active.selectionStart, active.selectionEnd] : null;
  return { actionId, testid, blockId, name: active.name, value: active.value, selection };
}

/** Give the focus back after a redraw; returns whether a matching control was found. */
export function restoreFocus(node, memory) {
  if (!memory) return false;
  const target = [...node.querySelectorAll(FOCUSABLE)].find((item) => isSameControl(item, memory));
  if (!target) return false;
  target.focus({ preventScroll: true });
  if (memory.selection && target.setSelectionRange && ["text", "textarea"].includes(target.type)) {
    target.setSelectionRange(...memory.selection);
  }
  return true;
}

function isSameControl(item, memory) {
  if (memory.testid) return item.dataset.testid === memory.testid;
  if (memory.name) return item.name === memory.name && item.value === memory.value;
  if (!memory.actionId || item.dataset.actionId !== memory.actionId) return false;
  return item.closest("[data-block-id]")?.dataset.blockId === memory.blockId;
}

/** Read or write one small setting of this browser; a browser that refuses is no problem. */
export const memory = {
  get(key) {
    try { return localStorage.getItem(`countersign.${key}`); } catch { return null; }
  },
  /** The same for this window alone. */
  session(key) {
    try { return sessionStorage.getItem(`countersign.${key}`); } catch { return null; }
  },
  setSession(key, value) {
    try { sessionStorage.setItem(`countersign.${key}`, value); } catch { /* private window */ }
  },
  set(key, value) {
    try { localStorage.setItem(`countersign.${key}`, value); } catch { /* private window */ }
  },
};
