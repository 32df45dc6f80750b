// Dead letters: changes that could not become records, with their raw rows. In: `/status/{connector}/dead-letters`. Out: a
// panel whose entries open, with the command that reads the change again.

import { h } from "./dom.js";
import { panel } from "./panels.js";
import { bytes, count, moment, NONE, stream } from "./words.js";

const PRINTABLE = /^[\p{L}\p{N}\p{P}\p{S}\p{Zs}]{2,}$/u;

/** `found` is what was answered, or null before; `error` says why nothing was. */
export function letters({ found, error, counted, again }) {
  const note = found?.topic ? h("span", {}, "the newest of ", h("span", { class: "mono" }, found.topic)) : null;
  return panel("letters", "Dead letters", note, body(found, error, counted), h("button", { class: "quiet-button", onclick: again }, "look again"));
}

function body(found, error, counted) {
  if (error) return h("p", { class: "trouble" }, `They cannot be shown: ${error}`);
  if (!found) return h("p", { class: "empty" }, "They are being read…");
  if (!found.topic) return h("p", { class: "empty" }, found.note + (counted ? ` ${count(counted)} were counted.` : ""));
  if (!found.letters.length) return h("p", { class: "empty" }, "There are none.");
  return h("ul", { class: "letters" }, found.letters.map(letter));
}

function letter(each) {
  const at = `${each.partition}:${each.offset}`;
  const table = each.table ?? NONE;
  return h("li", { key: at }, h("details", {},
    h("summary", {}, h("span", { class: "mono when" }, moment(each.written_ms ?? each.time_ms)), " ", h("b", {}, table), " ", h("span", { class: "message" }, reason(each))),
    h("dl", {},
      pair("log's time", each.time), pair("stream", each.stream_id && stream(each.stream_id), each.stream_id), pair("number in its batch", each.batch_seq_no),
      pair("stage", each.stage), pair("error", each.exception), pair("record", `partition ${each.partition}, offset ${each.offset}`), pair("length", bytes(each.length))),
    each.table && each.written_ms ? h("p", {}, "To read it again: ", h("code", {}, `scylla-cdc read ${each.table} --from ${each.written_ms} --raw`)) : null,
    each.rows ? each.rows.map(row) : h("pre", { class: "raw" }, each.raw),
    each.cut ? h("p", { class: "note" }, "Only its beginning is shown.") : null));
}

/** Where it stood is shown beside it. */
function reason(each) {
  const words = each.message ?? each.exception ?? "no reason is given";
  return words.startsWith(`${each.table}, stream `) ? words.replace(/^.*?, stream .*?: /s, "") : words;
}

function pair(name, value, title) {
  return value === null || value === undefined ? null : [h("dt", {}, name), h("dd", { class: "mono", title }, String(value))];
}

function row(cells, number) {
  const entries = Object.entries(cells);
  const empty = entries.filter(([, cell]) => cell === null).map(([column]) => column);
  const rows = entries.filter(([, cell]) => cell !== null).map(([column, cell]) => line(column, cell, text(cell)));
  return h("table", { class: "raw", key: `row ${number}` }, h("tbody", {}, rows, empty.length > 0 && line("null", empty.join(", "))));
}

function line(name, value, more = null) {
  return h("tr", { key: name }, h("th", { scope: "row" }, name), h("td", { class: "mono" }, value, more && h("span", { class: "quiet" }, ` ${more}`)));
}

/** What bytes say as text, if they do. */
function text(cell) {
  if (typeof cell !== "string" || !cell.startsWith("0x")) return null;
  const given = Uint8Array.from(cell.slice(2).match(/../g) ?? [], (pair) => parseInt(pair, 16));
  try {
    const read = new TextDecoder("utf-8", { fatal: true }).decode(given);
    return PRINTABLE.test(read) ? `“${read}”` : null;
  } catch {
    return null;
  }
}
