// The guide: a strip of steps to try, and an arrow to what to press. Its texts come with the state.

import { explain, send } from "../api.js";
import { fill, h, icon, isShown, memory, rememberFocus, restoreFocus } from "../dom.js";
import { notice } from "../notices.js";

const LOOK_MS = 200;
const GAP_PX = 10;

/** Whether the guide is wanted; once closed, it stays closed in this browser. */
export function isGuideOpen() {
  return memory.get("guide") !== "closed";
}

/** Draws the strip into `root`. `on`: go(person, channel, thread), changed(). */
export class Guide {
  constructor(root, store, on) {
    this.root = root;
    this.store = store;
    this.on = on;
    this.at = 0;
    this.pressed = 0;
    this.done = new Set();
    this.arrow = h("div", { class: "guide-arrow", hidden: true, "aria-hidden": "true", data: { testid: "guide-arrow" } });
    document.getElementById("layers").append(this.arrow);
    document.addEventListener("click", (event) => this.#clicked(event), true);
    window.addEventListener("resize", () => this.#point());
    document.addEventListener("scroll", () => this.#point(), true);
    setInterval(() => this.#point(), LOOK_MS);
  }

  /** The first screen is step 0; the buttons are the others. */
  get #steps() {
    const { guide } = this.store;
    return guide && isGuideOpen() ? [guide.first, ...guide.steps] : [];
  }

  /** Whether the strip stands above a channel, and tells what to try there. */
  isFor(channel) {
    return this.#steps.length > 0 && channel === this.store.guide.channel;
  }

  open() {
    memory.set("guide", "open");
    this.render();
    this.on.changed();
  }

  #close() {
    memory.set("guide", "closed");
    this.render();
    this.#point();
    this.on.changed();
  }

  render() {
    const steps = this.#steps;
    const sign = JSON.stringify([steps, this.at, this.pressed, [...this.done]]);
    this.root.hidden = steps.length === 0;
    if (this.root.hidden || sign === this.sign) return;
    this.sign = sign;
    const step = steps[this.at];
    const isOver = step.pointers.length > 0 && this.pressed >= step.pointers.length;
    const focus = rememberFocus(this.root);
    fill(this.root,
      h("p", { class: "guide-text", role: "status", data: { testid: "guide-text" } }, isOver && step.outcome ? step.outcome : step.text),
      step.command && this.#command(step.command),
      h("ol", { class: "guide-steps" }, steps.slice(1).map((step, index) => h("li", {}, this.#pill(step, index + 1)))),
      h("button", {
        type: "button", class: "icon-button guide-close", "aria-label": "Close the guide", title: "Close the guide", data: { testid: "guide-close" }, on: { click: () => this.#close() },
      }, icon("close")));
    restoreFocus(this.root, focus);
  }

  #pill(step, at) {
    const isDone = this.done.has(at);
    return h("button", {
      type: "button", class: ["guide-step", at === this.at && "current", isDone && "done"].filter(Boolean).join(" "),
      "aria-current": at === this.at ? "step" : null, data: { testid: `guide-step-${at}` }, on: { click: () => this.#start(at) },
    }, h("span", { class: "guide-number", "aria-hidden": "true" }, isDone ? icon("check") : at), step.title, isDone && h("span", { class: "sr-only" }, ", done"));
  }

  #command(command) {
    const copy = async (event) => {
      await navigator.clipboard.writeText(command);
      event.target.textContent = "Copied";
    };
    return h("div", { class: "guide-command" }, h("code", {}, command), h("button", { type: "button", class: "button small", on: { click: copy } }, "Copy"));
  }

  async #start(at) {
    const step = this.#steps[at];
    this.at = at;
    this.pressed = 0;
    if (step.pointers.length === 0) this.done.add(at);
    this.render();
    if (!step.message) return;
    const answer = await send("post", { as: step.author, channel: step.channel, text: step.message });
    if (answer.ok) this.on.go(step.pointers[0].person, step.channel, answer.ts);
    else notice(explain(answer), "error");
  }

  /** What to press now; nothing in another channel, where the same buttons are no part of a step. */
  get #pointer() {
    const step = this.#steps[this.at];
    const isHere = step && this.store.channel === (step.channel || this.store.guide.channel);
    return isHere ? step.pointers[this.pressed] : undefined;
  }

  #clicked(event) {
    setTimeout(() => this.#point());
    const pointer = this.#pointer;
    if (!pointer || pointer.person !== this.store.me || !event.target.closest?.(selector(pointer.target))) return;
    this.pressed += 1;
    if (!this.#pointer && this.at > 0) this.done.add(this.at);
    this.render();
  }

  /** Put the arrow at what to press now, or hide it while that cannot be pressed. */
  #point() {
    const pointer = this.#pointer;
    const isMine = pointer?.person === this.store.me;
    const wanted = !pointer ? [] : isMine ? [pointer.target] : [`person-option-${pointer.person}`, "person-switch"];
    const target = wanted.map(newest).find(Boolean);
    this.arrow.hidden = !target;
    if (!target) return;
    const text = isMine ? pointer.text : `Act as ${this.store.people.get(pointer.person)?.real_name}`;
    if (this.arrow.textContent !== text) this.arrow.textContent = text;
    const box = target.getBoundingClientRect();
    const own = this.arrow.getBoundingClientRect();
    const isBelow = box.bottom + GAP_PX + own.height < window.innerHeight;
    const middle = box.left + box.width / 2;
    const left = Math.max(8, Math.min(middle - 28, window.innerWidth - own.width - 8));
    this.arrow.classList.toggle("above", !isBelow);
    this.arrow.style.setProperty("left", `${left}px`);
    this.arrow.style.setProperty("top", `${isBelow ? box.bottom + GAP_PX : box.top - GAP_PX - own.height}px`);
    this.arrow.style.setProperty("--tip", `${middle - left}px`);
  }
}

function selector(target) {
  return `[data-action-id="${CSS.escape(target)}"], [data-testid="${CSS.escape(target)}"]`;
}

/** The newest control that can be pressed now; a tool in a closed menu is behind the menu's button. */
function newest(target) {
  const nodes = [...document.querySelectorAll(selector(target))];
  const open = nodes.filter(isPressable).pop();
  const tools = document.getElementById("tools-toggle");
  return open ?? (nodes.some((node) => node.closest("#tools")) && isPressable(tools) ? tools : undefined);
}

function isPressable(node) {
  if (!isShown(node) || node.closest("[inert]")) return false;
  const box = node.getBoundingClientRect();
  const hit = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
  return hit !== null && node.contains(hit);
}
