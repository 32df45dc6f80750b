// The panels of one connector: its tables, its workers, what waits, its snapshots. In: what `model.js` made of a status.
// Out: trees for `dom.js`.

import { h } from "./dom.js";
import { bytes, count, moment, NONE, ranges, rate, span, stream } from "./words.js";

const SIGNS = { RUNNING: "●", WAITING: "◐", FAILED: "✕", PAUSED: "‖", STOPPED: "■", NOTE: "○" };
const POINTS = 40;
const LISTED = 40;
const STREAMS = 4;

/** A state is never told by its colour alone. */
export function state(name, words = name) {
  return h("span", { class: `state ${name}` }, h("span", { class: "sign", "aria-hidden": "true" }, SIGNS[name] ?? "◐"), ` ${words}`);
}

export function panel(id, title, note, ...content) {
  return h(
    "section",
    { key: id, id, class: "panel", "aria-labelledby": `${id}-title` },
    h("header", {}, h("h2", { id: `${id}-title` }, title), note && h("span", { class: "note" }, note)),
    content,
  );
}

/** A table that becomes a list of cards where there is no room: each cell knows the name of its column. */
export function grid(name, columns, rows) {
  const heads = columns.map(([title, kind]) => h("th", { scope: "col", class: kind ?? "" }, title));
  return h(
    "table",
    { class: `grid ${name}` },
    h("thead", {}, h("tr", {}, heads)),
    h("tbody", {}, rows.map(({ key, kind, cells }) => h("tr", { key, class: kind ?? "" }, cells.map((cell, at) => {
      const [title, form] = columns[at];
      return h("td", { class: form ?? "", "data-label": title }, cell);
    })))),
  );
}

export function tables(connector, history, chosen, choose) {
  const columns = [
    ["state"], ["table"], ["lag", "number"], ["changes/s", "number"], ["two minutes", "spark"],
    ["latency 50 %", "number"], ["99 %", "number"], ["records", "number"], ["waiting", "number"], ["dead letters", "number"],
  ];
  const rows = connector.tables.map((table) => {
    const [half, most] = history.latency(connector.name, table.name);
    const held = table.waitingCount ? `${count(table.waitingCount)} of ${count(Math.max(table.groups, table.waitingCount))}` : "0";
    return {
      key: table.name,
      kind: table.name === chosen ? "chosen" : "",
      cells: [
        state(connector.held ? connector.shown : table.state),
        h("button", { class: "link", "aria-pressed": String(table.name === chosen), onclick: () => choose(table.name) }, table.name),
        h("span", { class: lateness(table) }, span(table.lag)),
        rate(history.rate(connector.name, table.name)),
        spark(history.rates(connector.name, table.name, POINTS)),
        half === null ? NONE : span(half),
        most === null ? NONE : span(most),
        count(table.records),
        h("span", { class: table.waitingCount ? "warn" : "quiet" }, held),
        h("span", { class: table.deadLetters ? "warn" : "quiet" }, count(table.deadLetters)),
      ],
    };
  });
  return panel(
    "tables",
    "Tables",
    `${connector.tables.length} in ${connector.name}`,
    rows.length ? grid("tables", columns, rows) : h("p", { class: "empty" }, "No worker has reported its tables yet."),
    connector.tables.filter(troubled).map((table) => trouble(table)),
  );
}

function troubled(table) {
  return table.expired > 0 || table.late > 0 || (table.ttl && table.lag > table.ttl * 500);
}

/** What cannot be undone is said in words, below the figures. */
function trouble(table) {
  const said = [];
  if (table.expired) said.push(`changes may have expired unread in ${count(table.expired)} streams and slots`);
  if (table.late) said.push(`${count(table.late)} batches came into streams after their end`);
  if (table.ttl && table.lag > table.ttl * 500) said.push(`the log keeps changes for ${span(table.ttl * 1000)}: what is not read by then is lost`);
  return h("p", { key: `trouble ${table.name}`, class: "trouble" }, h("b", {}, table.name), `: ${said.join("; ")}`);
}

function lateness(table) {
  if (table.lag === null) return "quiet";
  return table.lag > 300_000 ? "bad" : table.lag > 60_000 ? "warn" : "";
}

function spark(values) {
  const top = Math.max(...values, 1e-9);
  const points = values.map((value, at) => `${((at * 100) / (values.length - 1)).toFixed(1)},${(19 - (18 * value) / top).toFixed(1)}`);
  return h(
    "svg",
    { class: "spark", viewBox: "0 0 100 20", preserveAspectRatio: "none", role: "img", "aria-label": `up to ${rate(top)} a second` },
    h("polygon", { points: `0,20 ${points.join(" ")} 100,20` }),
    h("polyline", { points: points.join(" ") }),
  );
}

export function workers(connector, foreign, restart) {
  const columns = [
    ["worker"], ["state"], ["where"], ["slots"], ["rows", "number"], ["queries", "number"], ["in flight", "number"],
    ["commits", "number"], ["aborts", "number"], ["said", "number"], ["", "acts"],
  ];
  const own = connector.numbers.map((index, task) => {
    const worker = connector.workers.find((each) => each.index === index);
    if (!worker) return { key: `${index}`, cells: [`${index}`, state("WAITING", connector.held ? NONE : "starting"), ...new Array(9).fill("")] };
    const shown = connector.held ? connector.shown : worker.state;
    return {
      key: `${index}`,
      cells: [
        `${index}`,
        state(shown, worker.starting && !connector.held ? "starting" : shown),
        h("span", { class: "mono" }, `${worker.host}:${worker.pid}`),
        slots(worker),
        count(worker.reading.rows),
        count(worker.reading.queries),
        count(worker.reading.in_flight),
        count(worker.delivery.commits),
        h("span", { class: worker.delivery.aborts ? "" : "quiet" }, count(worker.delivery.aborts)),
        h("span", { class: worker.last_report_age_seconds > 6 ? "bad" : "" }, heard(worker.last_report_age_seconds * 1000)),
        restart(task, index),
      ],
    };
  });
  const others = foreign.map((worker) => ({
    key: worker.worker,
    kind: "foreign",
    cells: [
      worker.index, worker.stale ? state("STOPPED", "gone") : state(worker.state), h("span", { class: "mono" }, `${worker.host}:${worker.pid}`),
      slots(worker), "", "", "", "", "", heard(worker.age_ms), h("span", { class: "quiet" }, "another process"),
    ],
  }));
  return panel("workers", "Workers", `${connector.workers_running} of ${connector.workers_wanted} running here`, grid("workers", columns, [...own, ...others]));
}

function heard(ms) {
  return ms < 3000 ? "now" : `${span(ms)} ago`;
}

function slots(worker) {
  const pending = worker.slots_pending?.length ? `, restoring ${ranges(worker.slots_pending)}` : "";
  return h("span", { class: "slots" }, (ranges(worker.slots) || (pending ? "" : "none")) + pending);
}

export function waits(found, now) {
  if (!found.length) return panel("waits", "What waits", null, h("p", { class: "empty" }, "Nothing waits, nothing has failed."));
  const rows = found.slice(0, LISTED).map((each) => h("li", { key: `${each.who} ${each.why} ${each.whom}`, class: each.state }, wait(each, now)));
  const rest = found.length - rows.length;
  return panel("waits", "What waits, and for what", null, h("ul", { class: "waits" }, rows), rest > 0 && h("p", { class: "empty" }, `and ${rest} more`));
}

function wait(each, now) {
  const places = [];
  if (each.slots.length) places.push(`slot ${ranges(new Set(each.slots))}`);
  if (each.streams.length) {
    const more = each.streams.length - STREAMS;
    places.push(`streams ${each.streams.slice(0, STREAMS).map(stream).join(", ")}${more > 0 ? ` and ${more} more` : ""}`);
  }
  const front = (each.front ?? []).slice(0, STREAMS).map(stream).join(", ");
  const whom = [each.whom, front && `streams ${front}`].filter(Boolean).join(", ");
  return [
    h("div", { class: "who" }, state(each.state, each.state === "NOTE" ? "aside" : each.state), " ", h("b", {}, each.who), places.length ? h("span", { class: "places" }, ` ${places.join(" · ")}`) : null),
    h("div", { class: "why" }, each.why),
    whom && h("div", { class: "whom" }, each.state === "NOTE" || !each.front ? whom : `waits for ${whom}`),
    (each.since || each.attempts > 1) && h("div", { class: "note" }, [each.since ? `since ${moment(each.since)} (${span(now - each.since)})` : "", each.attempts > 1 ? `${each.attempts} attempts` : ""].filter(Boolean).join(", ")),
  ];
}

export function snapshots(connector) {
  const shots = connector.tables.filter((table) => table.snapshot);
  if (!shots.length) return null;
  const under = shots.filter((table) => !table.snapshot.ended).length;
  return panel(
    "snapshots",
    "Snapshots",
    under ? `${under} of ${shots.length} under way` : "all ended",
    h("ul", { class: "shots" }, shots.map(({ name, snapshot }) => {
      const percent = snapshot.ended ? 100 : Math.min(99.9, 100 * snapshot.done);
      const shown = `${percent === 100 ? 100 : percent.toFixed(1)} %`;
      const more = [
        `${count(snapshot.rows)} rows`, `begun ${moment(snapshot.began)}`,
        !snapshot.ended && snapshot.pace ? `${count(Math.round(snapshot.pace))} rows/s` : "",
        !snapshot.ended && snapshot.left >= 0 ? `about ${span(snapshot.left * 1000)} to go` : "",
        snapshot.rereads ? `${count(snapshot.rereads)} read again` : "", snapshot.undecided ? `${count(snapshot.undecided)} undecided` : "",
        snapshot.refused ? `${count(snapshot.refused)} refused` : "", snapshot.held ? `${bytes(snapshot.held)} held` : "",
      ].filter(Boolean);
      return h("li", { key: name },
        h("span", { class: "shot-name" }, name),
        !snapshot.ended && h("progress", { max: 100, value: percent, "aria-label": `snapshot of ${name}` }, shown),
        h("span", { class: snapshot.ended ? "quiet" : "" }, snapshot.ended ? "ended" : shown),
        h("span", { class: "note" }, more.join(" · ")));
    })),
  );
}
