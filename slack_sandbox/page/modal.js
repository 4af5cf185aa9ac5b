// Modals: a stack of views, drawn as Slack does. Nothing typed is lost by an error or an update.

import { explain, send } from "./api.js";
import { errorLine, renderBlocks } from "./blocks/blocks.js";
import { announce, append, fill, focusables, h, icon, keepFocusInside, rememberFocus, restoreFocus, uniqueId } from "./dom.js";
import { flatText, textObject } from "./blocks/mrkdwn.js";
import { Values } from "./store.js";

/** The open views of the person of this window; only the topmost is shown. */
export class Modals {
  /** `store` for names and who acts; `home()` gives back the focus when nothing else can. */
  constructor(host, store, home) {
    this.host = host;
    this.store = store;
    this.home = home;
    this.stack = [];
    this.box = null;
    this.before = null;
  }

  get top() {
    return this.stack[this.stack.length - 1];
  }

  /** A view was opened, pushed or updated. */
  show(view) {
    if (view.type && view.type !== "modal") return;
    const open = this.stack.find((entry) => entry.view.id === view.id);
    if (open) {
      open.view = view;
      open.errors = {};
    } else {
      if (this.stack.length === 0) this.#remember();
      if (view.root_view_id === view.id || !view.previous_view_id) this.stack = [];
      this.stack.push({ view, values: new Values(), errors: {}, failure: "", busy: false });
      announce(`Dialog: ${flatText(view.title, this.store.names)}`);
    }
    this.#draw(open === undefined);
  }

  /** The app, or the sandbox, closed a view. */
  hide(viewId, all) {
    const known = this.stack.some((entry) => entry.view.id === viewId);
    if (all && (known || !viewId)) this.stack = [];
    else this.stack = this.stack.filter((entry) => entry.view.id !== viewId);
    this.#draw(true);
  }

  /** Errors for the fields of a view, keyed by block_id. */
  fail(viewId, errors) {
    const entry = this.stack.find((open) => open.view.id === viewId);
    if (!entry) return;
    entry.errors = { ...errors };
    this.#draw(false);
    if (entry === this.top) this.#focusError();
  }

  /** Forget all views, when the window becomes another person. */
  clear() {
    this.stack = [];
    this.#remove();
  }

  #remember() {
    const active = /** @type {HTMLElement | null} */ (document.activeElement);
    this.before = { node: active, memory: rememberFocus(document.body), ts: /** @type {HTMLElement | null} */ (active?.closest?.("[data-ts]"))?.dataset.ts };
  }

  #remove() {
    this.overlay?.remove();
    this.overlay = null;
    this.box = null;
    this.before = null;
  }

  #returnFocus() {
    const { node, memory, ts } = this.before ?? {};
    this.#remove();
    if (node?.isConnected && node !== document.body) return node.focus();
    const places = ts ? [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(`article[data-ts="${CSS.escape(ts)}"]`))] : [];
    const place = places[places.length - 1];
    if (place && restoreFocus(place, memory)) return;
    if (place) place.focus({ preventScroll: true });
    else this.home();
  }

  /** Close the form on top, as Escape does: what had the focus in it may be gone, and the focus with it. */
  leave() {
    if (this.overlay && document.querySelectorAll(".overlay").length === 1) this.#close(false);
  }

  /* ---- drawing ------------------------------------------------------------------------- */

  #draw(isNew) {
    if (this.stack.length === 0) {
      if (this.box) this.#returnFocus();
      return;
    }
    if (!this.box) this.#mount();
    const scroll = isNew ? 0 : this.box.querySelector(".modal-body")?.scrollTop ?? 0;
    const focus = isNew ? null : rememberFocus(this.box);
    this.#fill(this.top);
    this.box.querySelector(".modal-body").scrollTop = scroll;
    if (isNew || !restoreFocus(this.box, focus)) this.#focusFirst();
  }

  #mount() {
    this.box = h("div", { class: "modal", role: "dialog", "aria-modal": "true", tabindex: "-1", data: { testid: "modal" } });
    this.overlay = h("div", { class: "overlay" }, this.box);
    this.overlay.addEventListener("keydown", (event) => {
      keepFocusInside(this.box, event);
      if (event.key !== "Escape") return;
      // Nothing below may take the same key as a wish to close the thread.
      event.stopPropagation();
      this.#close(false);
    });
    this.host.append(this.overlay);
  }

  #fill(entry) {
    const { view } = entry;
    const ids = { title: uniqueId("mt"), form: uniqueId("mf") };
    entry.values.keepOnly(view.blocks);
    this.box.dataset.viewId = view.id;
    this.box.setAttribute("aria-labelledby", ids.title);
    const ctx = {
      names: this.store.names, values: entry.values, errors: entry.errors,
      act: (item, blockId, value) => this.#act(entry, item, blockId, value), redraw: () => this.#draw(false),
      suggest: (item, blockId, typed) => send("suggest", {
        as: this.store.me, view_id: view.id, block_id: blockId, action_id: item.action_id, value: typed,
      }),
    };
    const form = h("form", { id: ids.form, novalidate: true, class: "modal-form", on: { submit: (event) => { event.preventDefault(); this.#submit(entry); } } },
      this.#general(entry), renderBlocks(view.blocks, ctx));
    fill(this.box, this.#head(view, ids), h("div", { class: "modal-body" }, form), this.#foot(entry, ids));
    this.box.setAttribute("aria-busy", String(entry.busy));
  }

  #general(entry) {
    const shown = new Set((entry.view.blocks ?? []).map((block) => block.block_id));
    const lost = Object.entries(entry.errors).filter(([blockId]) => !shown.has(blockId)).map(([, text]) => text);
    return [...lost, entry.failure].filter(Boolean).map((text) => append(h("div", { class: "modal-failure" }), [errorLine(text, uniqueId("err"))]));
  }

  #head(view, ids) {
    const back = this.stack.length > 1 && h("button", {
      type: "button", class: "icon-button", "aria-label": "Back", data: { testid: "modal-back" }, on: { click: () => this.#close(false) },
    }, icon("back"));
    return h("div", { class: "modal-head" }, back, h("h2", { id: ids.title }, textObject({ ...view.title, type: "plain_text" })),
      h("button", { type: "button", class: "icon-button", "aria-label": "Close", data: { testid: "modal-close" }, on: { click: () => this.#close(true) } }, icon("close")));
  }

  #foot(entry, ids) {
    const { view } = entry;
    const cancel = h("button", { type: "button", class: "button", data: { testid: "modal-cancel" }, on: { click: () => this.#close(false) } },
      textObject({ type: "plain_text", text: view.close?.text ?? (view.submit ? "Cancel" : "Close") }));
    const submit = view.submit && h("button", {
      type: "submit", form: ids.form, class: "button primary", "aria-busy": entry.busy ? "true" : null, data: { testid: "modal-submit" },
    }, h("span", { class: "button-label" }, textObject({ ...view.submit, type: "plain_text" })));
    return h("div", { class: "modal-foot" }, cancel, submit);
  }

  #focusFirst() {
    const body = this.box.querySelector(".modal-body");
    const wanted = body.querySelector("[data-autofocus]");
    (wanted ?? focusables(body)[0] ?? this.box.querySelector("[data-testid='modal-submit']") ?? this.box).focus();
  }

  #focusError() {
    const block = this.box.querySelector(".has-error");
    const control = block && focusables(block)[0];
    if (control) control.focus();
    block?.scrollIntoView({ block: "nearest" });
  }

  /* ---- what a person does -------------------------------------------------------------- */

  async #act(entry, item, blockId, value) {
    const answer = await send("action", {
      as: this.store.me, view_id: entry.view.id, block_id: blockId, action_id: item.action_id, type: item.type,
      ...value, values: entry.values,
    });
    entry.failure = answer.ok ? "" : explain(answer);
    if (!answer.ok && this.stack.includes(entry)) this.#draw(false);
  }

  async #submit(entry) {
    if (entry.busy) return;
    const errors = this.#missing(entry);
    entry.failure = "";
    if (Object.keys(errors).length > 0) return this.fail(entry.view.id, errors);
    this.#busy(entry, true);
    const answer = await send("submit", { as: this.store.me, view_id: entry.view.id, values: entry.values });
    this.#busy(entry, false);
    if (!this.stack.includes(entry)) return;
    if (answer.errors && Object.keys(answer.errors).length > 0) return this.fail(entry.view.id, answer.errors);
    if (!answer.ok) {
      entry.failure = `${explain(answer)} Nothing you typed is lost.`;
      return this.#draw(false);
    }
    this.#finish(entry, answer);
  }

  #finish(entry, answer) {
    if (answer.response_action === "clear") return this.hide(entry.view.id, true);
    if (["update", "push", "errors"].includes(answer.response_action)) {
      if (answer.view) this.show(answer.view);
      return;
    }
    this.hide(entry.view.id, false);
  }

  #busy(entry, busy) {
    entry.busy = busy;
    if (!this.box || entry !== this.top) return;
    this.box.setAttribute("aria-busy", String(busy));
    const button = this.box.querySelector("[data-testid='modal-submit']");
    if (busy) button?.setAttribute("aria-busy", "true");
    else button?.removeAttribute("aria-busy");
  }

  #close(all) {
    const entry = this.top;
    if (!entry || entry.busy) return;
    send("close", { as: this.store.me, view_id: entry.view.id, all });
    this.hide(entry.view.id, all);
  }

  /** What Slack itself checks before it asks the app: required fields and lengths. */
  #missing(entry) {
    const errors = {};
    for (const block of entry.view.blocks ?? []) {
      if (block.type !== "input" || !block.element) continue;
      const value = entry.values.get(block.block_id, block.element.action_id) ?? {};
      const control = this.box.querySelector(`[data-block-id="${CSS.escape(block.block_id)}"] input`);
      const wrong = control?.validity?.badInput ? "Please complete this date or time." : complaint(block, value);
      if (wrong) errors[block.block_id] = wrong;
    }
    return errors;
  }
}

function complaint(block, { type, ...rest }) {
  const content = Object.values(rest)[0];
  const empty = content === null || content === undefined || content.length === 0;
  if (empty) return block.optional ? null : "Please complete this required field.";
  const { min_length: least, max_length: most } = block.element;
  if (typeof content !== "string" || block.element.type !== "plain_text_input") return null;
  if (least && content.length < least) return `Please write at least ${least} characters.`;
  if (most && content.length > most) return `Please shorten this to ${most} characters; it has ${content.length}.`;
  return null;
}
