// The service behind the page: asked every second, and told what to do. In: paths. Out: answers, and since when there
// are none. The token, where one is wanted, is kept for this tab alone and sent in a header: no other page can.

const SECOND = 1000;
const PATIENCE = 3 * SECOND;
const TOKEN = "scylla-cdc token";

/** `changed` is called whenever there is something new to show. */
export class Service {
  constructor(changed) {
    this.changed = changed;
    this.status = null;
    this.mayWrite = false;
    this.wantsToken = false;
    this.tokenRefused = false;
    // The last answer; and why there is none now.
    this.heard = Date.now();
    this.silence = null;
    this.round = 0;
  }

  get token() {
    return sessionStorage.getItem(TOKEN);
  }

  set token(text) {
    if (text) sessionStorage.setItem(TOKEN, text);
    else sessionStorage.removeItem(TOKEN);
    this.hurry?.();
  }

  /** For as long as the page is open. */
  async follow() {
    document.addEventListener("visibilitychange", () => document.hidden || this.hurry?.());
    for (;;) {
      await this.look();
      await new Promise((go) => {
        this.hurry = go;
        setTimeout(go, document.hidden ? 10 * SECOND : SECOND);
      });
    }
  }

  async look() {
    try {
      const answer = await this.ask("status");
      this.heard = Date.now();
      this.silence = null;
      this.wantsToken = answer.status === 401;
      this.tokenRefused = this.wantsToken && Boolean(this.token);
      if (answer.ok) {
        this.status = answer.body;
        if (this.round++ % 10 === 0) this.mayWrite = (await this.ask("ui/access")).body?.may_write ?? false;
      } else if (!this.wantsToken) {
        this.silence = answer.message;
      }
    } catch (error) {
      this.silence = error.name === "AbortError" ? `nothing comes for ${PATIENCE / SECOND} s` : "the connection fails";
    }
    this.changed();
  }

  /** One request; `message` says what is wrong with its answer. Throws when there is none. */
  async ask(path, { method = "GET", patience = PATIENCE } = {}) {
    const ended = new AbortController();
    const timer = setTimeout(() => ended.abort(), patience);
    try {
      const headers = { Accept: "application/json", ...(this.token ? { Authorization: `Bearer ${this.token}` } : {}) };
      const answer = await fetch(path, { method, headers, signal: ended.signal, cache: "no-store", redirect: "error" });
      const text = await answer.text();
      const body = parsed(text);
      return { ok: answer.ok, status: answer.status, body, message: body?.message ?? `HTTP ${answer.status}` };
    } finally {
      clearTimeout(timer);
    }
  }

  /** What somebody wants done; the words for what became of it, and whether that is good. */
  async tell(method, path) {
    try {
      const answer = await this.ask(path, { method, patience: 30 * SECOND });
      this.hurry?.();
      return { done: answer.ok, words: answer.ok ? "" : answer.message };
    } catch {
      return { done: false, words: "the service does not answer" };
    }
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
