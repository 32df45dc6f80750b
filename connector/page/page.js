// The page: what is looked at, and how it is laid out. Everything is drawn anew with each answer of the service; what
// takes Kafka or the workers to say is asked for less often, and only while it is looked at.

import { Acts } from "./acts.js";
import { draw, h } from "./dom.js";
import { History } from "./history.js";
import { letters } from "./letters.js";
import { connectorsOf, waitsOf } from "./model.js";
import { panel, snapshots, state, tables, waits, workers } from "./panels.js";
import { ring } from "./ring.js";
import { Service } from "./service.js";
import { count, moment, rate, span } from "./words.js";

const service = new Service(changed);
const history = new History();
const acts = new Acts(service);
const place = document.getElementById("page");
const THEMES = ["auto", "light", "dark"];

// What is asked for beside the status: by its path, the last answer and when it was asked for.
const asked = new Map();
let theme = localStorage.getItem("scylla-cdc theme") ?? "auto";

function changed() {
  if (service.status && !service.silence) history.take(service.status, service.heard);
  show();
}

function show() {
  document.documentElement.dataset.theme = theme;
  if (service.wantsToken) return draw(place, [head(null), entrance()]);
  if (!service.status) return draw(place, [head(null), banner(), h("main", {}, h("p", { class: "empty" }, service.silence ? "" : "Asking the service…"))]);
  const connectors = connectorsOf(service.status);
  const chosen = connectors.find((each) => each.name === choice()[0]) ?? connectors[0];
  document.title = `${service.silence ? "✕ no answer" : service.status.state} · ${service.status.connector || "scylla-cdc"}`;
  draw(place, [head(service.status), banner(), h("main", { class: service.silence ? "past" : "" }, strip(connectors, chosen), chosen ? connectorPanels(chosen) : nobody())]);
}

function head(status) {
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  return h("header", { class: "head" },
    h("h1", {}, "scylla-cdc"),
    status && state(status.state),
    status && h("span", { class: "note" }, `${status.host}:${status.pid} · ${status.version} · up ${span(service.heard - status.started_ms)}${status.restarts ? ` · ${count(status.restarts)} ${status.restarts === 1 ? "worker" : "workers"} ended` : ""}`),
    h("span", { class: "pulse", "data-live": String(!service.silence && Boolean(status)), "data-beat": service.round % 2 ? "odd" : "even", title: "the time of the last answer" }, moment(service.heard)),
    h("button", { class: "quiet-button", "aria-label": `colours: ${theme}; change to ${next}`, onclick: () => paint(next) }, theme === "auto" ? "◐ auto" : theme === "light" ? "○ light" : "● dark"),
    service.token && h("button", { class: "quiet-button", onclick: () => (service.token = null) }, "forget token"));
}

function paint(name) {
  theme = name;
  localStorage.setItem("scylla-cdc theme", name);
  show();
}

function banner() {
  if (!service.silence) return null;
  const ago = span(Date.now() - service.heard);
  return h("div", { class: "banner", role: "alert" },
    h("b", {}, `The service does not answer since ${moment(service.heard)}`), h("span", { "aria-hidden": "true" }, ` (${ago})`), `: ${service.silence}.`,
    service.status && " What is shown is what it said last.");
}

function entrance() {
  const enter = (event) => {
    event.preventDefault();
    service.token = event.target.elements.token.value.trim();
  };
  return h("main", {}, h("form", { class: "entrance", onsubmit: enter },
    h("label", { for: "token" }, "This service wants its token (", h("code", {}, "rest.bearer.token"), ")"),
    h("input", { id: "token", name: "token", type: "password", autocomplete: "off", required: true }),
    h("button", { class: "strong" }, "Show"),
    service.tokenRefused && h("p", { class: "trouble", role: "alert" }, "That is not its token."),
    h("p", { class: "note" }, "It is kept for this tab alone, until it is closed.")));
}

function nobody() {
  return h("p", { class: "empty" }, "There are no connectors yet. They come by POST to /connectors.");
}

/** A line for each connector: how it is, and what can be done. */
function strip(connectors, chosen) {
  return h("nav", { class: "strip", "aria-label": "Connectors" }, connectors.map((each) => {
    const lags = each.tables.map((table) => table.lag).filter((lag) => lag !== null);
    const rates = each.tables.map((table) => history.rate(each.name, table.name)).filter((value) => value !== null);
    return h("div", { key: each.name, class: each === chosen ? "connector chosen" : "connector" },
      state(each.shown),
      h("button", { class: "link name", "aria-current": each === chosen ? "true" : null, onclick: () => choose(each.name) }, each.name),
      figure("workers", `${each.workers_running}/${each.workers_wanted}`),
      figure("tables", count(each.tables.length)),
      figure("lag", span(lags.length ? Math.max(...lags) : null)),
      figure("changes/s", rates.length ? rate(rates.reduce((sum, value) => sum + value, 0)) : "–"),
      acts.of(each));
  }));
}

function figure(name, value) {
  return h("span", { class: "figure" }, h("span", { class: "value" }, value), " ", h("span", { class: "name" }, name));
}

function connectorPanels(connector) {
  const found = waitsOf(service.status, connector);
  const table = connector.tables.find((each) => each.name === choice()[1]) ?? connector.tables[0];
  const path = `status/${encodeURIComponent(connector.name)}`;
  const group = look(`${path}/slots`, 3000);
  const counted = connector.tables.reduce((sum, each) => sum + each.deadLetters, 0);
  const dead = look(`${path}/dead-letters`, 30_000, counted);
  const foreign = foreigners(connector, group?.body?.workers ?? []);
  return h("div", { class: "panels" },
    h("div", { class: "wide" },
      tables(connector, history, table?.name, (name) => choose(connector.name, name)),
      waits(found, service.heard),
      workers(connector, foreign, (task, index) => !connector.held && acts.worker(connector, task, index)),
      letters({ found: dead?.body, error: dead?.error, counted, again: () => look(`${path}/dead-letters`, 0) })),
    h("div", { class: "narrow" },
      ringPanel(connector, table, foreign, found, path),
      snapshots(connector)));
}

/** Workers of other processes; of those that are gone, only whose slots nobody has taken over. */
function foreigners(connector, all) {
  const taken = new Set([...connector.workers, ...all.filter((each) => !each.stale)].flatMap((each) => each.slots));
  return all.filter((each) => !each.here && (!each.stale || each.slots.some((slot) => !taken.has(slot))));
}

function ringPanel(connector, table, foreign, found, path) {
  if (!table) return null;
  const owners = ownersOf(connector, foreign);
  const streams = connector.held ? null : look(`${path}/streams?table=${encodeURIComponent(table.name)}`, 3000);
  const groups = streams?.body?.groups ?? null;
  const near = found.filter((each) => each.who === table.name && each.streams.length);
  const legend = [...connector.workers, ...foreign.filter((each) => !each.stale)];
  return panel("ring", "Ring", table.name,
    ring({ table: table.name, slotCount: connector.slotCount, owners, streams: groups, waits: near, now: service.heard }),
    h("ul", { class: "legend" }, legend.map((worker, at) => h("li", { key: worker.worker }, h("span", { class: `swatch owner-${at % 8}`, "aria-hidden": "true" }), nameOf(worker)))));
}

function nameOf(worker) {
  return worker.here === false ? `${worker.host}:${worker.pid}` : `worker ${worker.index}`;
}

/** The newest word about a slot counts: one that hangs does not know who has taken over from it. */
function ownersOf(connector, foreign) {
  const owners = {};
  const age = (worker) => (worker.here === false ? worker.age_ms : worker.last_report_age_seconds * 1000);
  const all = [...connector.workers, ...foreign.filter((each) => !each.stale)].map((worker, at) => [worker, at]);
  all.sort(([one], [other]) => age(other) - age(one)).forEach(([worker, at]) => {
    const foreigner = worker.here === false;
    const words = `${foreigner ? `worker ${worker.index} of ${worker.host}:${worker.pid}` : `worker ${worker.index}`}${worker.starting ? ", starting" : ""}`;
    if (connector.held && !foreigner) return;
    for (const slot of worker.slots) owners[slot] = { hue: at, label: foreigner ? "·" : `${worker.index}`, words };
  });
  return owners;
}

/** What a path answers, asked for again when it is older than so many ms, or when `mark` is another one. */
function look(path, age, mark = null) {
  const last = asked.get(path);
  if (!service.silence && !last?.under && (!last || last.mark !== mark || Date.now() - last.at >= age)) {
    const now = { ...last, at: Date.now(), mark, under: true };
    asked.set(path, now);
    service.ask(path, { patience: 25_000 })
      .then((answer) => Object.assign(now, answer.ok ? { body: answer.body, error: null } : { error: answer.message }))
      .catch(() => (now.error = "the service does not answer in time"))
      .finally(() => {
        Object.assign(now, { under: false, at: Date.now() });
        show();
      });
  }
  return asked.get(path);
}

/** What is looked at stands in the address, so that it can be sent to somebody. */
function choice() {
  try {
    return location.hash.slice(1).split("/").map(decodeURIComponent);
  } catch {
    return [];
  }
}

function choose(connector, table) {
  location.hash = [connector, ...(table ? [table] : [])].map(encodeURIComponent).join("/");
}

window.addEventListener("hashchange", show);
show();
service.follow();
// Also between two answers: for how long there has been none.
setInterval(() => service.silence && show(), 500);
