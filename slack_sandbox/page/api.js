// The way to the sandbox: JSON requests and one WebSocket.

/** The name of this window; another one after each reload, as a form belongs to the window that clicked. */
const WINDOW = crypto.randomUUID();
const PATIENCE_MS = 15000;
const RETRY_MS = [300, 600, 1200, 2500, 5000];

/** GET a JSON document. Never throws: a failure is {ok: false, error}. */
export function read(path, query, door = "sandbox") {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  return request(`/${door}/${path}?${search}`, { method: "GET" });
}

/** POST a JSON document. Never throws: a failure is {ok: false, error}. */
export function send(path, body, door = "sandbox") {
  const headers = { "Content-Type": "application/json" };
  return request(`/${door}/${path}`, { method: "POST", headers, body: JSON.stringify(door === "sandbox" ? { ...body, window: WINDOW } : body) });
}

async function request(url, options) {
  try {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const response = await fetch(url, { ...options, signal, credentials: "same-origin", cache: "no-store" });
    const answer = await response.json().catch(() => ({}));
    const ok = response.ok && answer.ok !== false;
    return ok ? { ok, ...answer } : { ...answer, ok, error: answer.error || `http_${response.status}` };
  } catch {
    return { ok: false, error: "network" };
  }
}

const ERRORS = {
  operation_timeout: "This app did not answer in time.",
  app_error: "The app answered with an error.",
  app_not_connected: "countersign is not connected. Start the bot, then try again.",
  network: "The sandbox isn't responding. Is it still running?",
  channel_not_found: "This conversation no longer exists.",
  not_in_channel: "You are not in this channel.",
  user_not_in_channel: "You are not in this channel.",
  is_archived: "This channel is archived.",
  msg_too_long: "This message is too long.",
  no_text: "There is nothing to send.",
  message_not_found: "This message does not exist any more.",
  view_not_found: "This dialog is not open any more.",
  action_not_found: "This message has just changed. Look at it, and press again.",
  dispatch_unknown_error: "The app answered with an error.",
  unknown_command: "This app doesn't have that command.",
  app_busy: "countersign is busy. Try again in a moment.",
  nothing_due: "Nothing is due: no reminders or deadlines.",
  not_in_thread: "Slash commands don't work in threads. Use the channel, or mention the app here.",
  no_user: "Say who: /invite @name",
  already_in_channel: "They are in this channel already.",
  user_is_restricted: "Guests cannot invite anybody.",
  no_such_shortcut: "This app has no such shortcut.",
  cant_update_message: "Only its writer can change a message.",
  cant_delete_message: "Only its writer can delete a message.",
  invalid_command: "This app knows no such command.",
};

/** What to tell a person about a failed request. */
export function explain(answer) {
  return ERRORS[answer.error] ?? `That was refused: ${String(answer.error ?? "no reason given").replaceAll("_", " ")}.`;
}

/** The live connection of one person. It reconnects until closed. */
export class Live {
  /** `on` has `event(data)`, `up()` and `down()`. */
  constructor(person, on) {
    this.on = on;
    this.person = person;
    this.closed = false;
    this.tries = 0;
    this.timer = null;
    this.#open();
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.socket?.close();
  }

  #open() {
    const url = new URL("/sandbox/ws", window.location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    url.searchParams.set("as", this.person);
    url.searchParams.set("window", WINDOW);
    this.socket = new WebSocket(url);
    this.socket.addEventListener("open", () => { this.tries = 0; if (!this.closed) this.on.up(); });
    this.socket.addEventListener("message", (event) => this.#receive(event.data));
    this.socket.addEventListener("close", () => this.#retry());
  }

  #receive(data) {
    if (this.closed) return;
    try {
      this.on.event(JSON.parse(data));
    } catch (error) {
      console.error("An event could not be shown", error);
    }
  }

  #retry() {
    if (this.closed) return;
    this.on.down();
    const wait = RETRY_MS[Math.min(this.tries, RETRY_MS.length - 1)];
    this.tries += 1;
    this.timer = setTimeout(() => this.#open(), wait);
  }
}
