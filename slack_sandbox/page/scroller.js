// Keeps a list of messages at its end while one reads there, and leaves it alone while one reads above.

import { h } from "./dom.js";

const NEAR_PX = 80;

/** Watches one scrolling list. `node` is the button that leads back to the end. */
export class Scroller {
  constructor(list) {
    this.list = list;
    this.atEnd = true;
    this.top = 0;
    this.height = 0;
    this.node = h("button", { type: "button", class: "jump", hidden: true, on: { click: () => this.toEnd() } }, "New messages below");
    list.addEventListener("scroll", () => this.#look(), { passive: true });
    new ResizeObserver(() => { if (this.atEnd) this.toEnd(); }).observe(list);
  }

  /** Call after a redraw; `last` is the id of the last message, `isOwn` whether one wrote it oneself. */
  settle(last, isOwn) {
    const isNew = Boolean(last) && last !== this.last;
    this.last = last;
    if (this.atEnd || (isNew && isOwn)) this.toEnd();
    else if (isNew) this.node.hidden = false;
  }

  /** Go to the end as soon as there is something to show. */
  restart() {
    this.atEnd = true;
    this.last = undefined;
    this.node.hidden = true;
  }

  toEnd() {
    this.atEnd = true;
    this.node.hidden = true;
    this.list.scrollTop = this.list.scrollHeight;
  }

  toTop() {
    this.atEnd = false;
    this.list.scrollTop = 0;
  }

  #look() {
    const { scrollHeight, scrollTop, clientHeight } = this.list;
    const isNear = scrollHeight - scrollTop - clientHeight < NEAR_PX;
    // Only a person scrolls up; a list that becomes narrower or longer has not been left.
    const movedUp = scrollTop < this.top - 1 && scrollHeight === this.height;
    if (isNear) this.atEnd = true;
    else if (movedUp) this.atEnd = false;
    if (this.atEnd) this.node.hidden = true;
    this.top = scrollTop;
    this.height = scrollHeight;
  }
}
