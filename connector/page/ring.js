// The token ring of a table, from the smallest token at the top, clockwise: inside its slots with their owners, outside
// its groups of streams. In: owners by slot, streams if they are known, what waits. Out: an image, and its legend.

import { crc32 } from "./model.js";
import { h } from "./dom.js";
import { ranges, span, stream } from "./words.js";

const HUES = 8;
const SLOTS = [62, 84];
const STREAMS = [88, 97];
const RING = 2 ** 64;

/** `owners`: by slot, `{hue, label, words}`; `streams`: groups with `range_end` and `state`, or null. */
export function ring({ table, slotCount, owners, streams, waits, now }) {
  if (!slotCount) return h("p", { class: "empty" }, "No worker has said yet how many slots there are.");
  const turn = crc32(table) % slotCount;
  const places = Array.from({ length: slotCount }, (_, place) => (place + turn) % slotCount);
  const label = `Ring of ${table}: ${slotCount} slots. ${spoken(owners, slotCount)}`;
  const numbered = slotCount <= 32;
  return h(
    "svg",
    { viewBox: "-100 -100 200 200", class: "ring", role: "img", "aria-label": label },
    places.map((slot, place) => slotArc(slot, place, slotCount, owners[slot])),
    numbered && places.map((slot, place) => slotName(slot, place, slotCount, owners[slot])),
    groupArcs(streams, now),
    waits.flatMap((each) => chords(each)),
    h("text", { class: "ring-name", y: -3 }, table.length > 22 ? `${table.slice(0, 21)}…` : table),
    h("text", { class: "ring-note", y: 10 }, streams ? `${streams.length} stream groups` : `${slotCount} slots`),
  );
}

function slotArc(slot, place, count, owner) {
  const words = owner ? `slot ${slot}: ${owner.words}` : `slot ${slot}: no owner`;
  const gap = Math.min(0.0006, 0.1 / count);
  const kind = owner ? `owner-${owner.hue % HUES}` : "nobody";
  const path = arc(place / count + gap, (place + 1) / count - gap, ...SLOTS);
  return h("path", { key: `slot ${slot}`, d: path, class: `slot ${kind}` }, h("title", {}, words));
}

function slotName(slot, place, count, owner) {
  const [x, y] = at((place + 0.5) / count, (SLOTS[0] + SLOTS[1]) / 2);
  return h("text", { key: `name ${slot}`, class: "slot-name", x, y: y + 2.4 }, owner ? owner.label : "?");
}

function groupArcs(streams, now) {
  if (!streams?.length) return [];
  // Groups of a set that has ended lie behind those that came after them.
  return streams.filter((each) => each.range_start !== null).map((each) => {
    const end = share(each.range_end);
    const begin = share(each.range_start);
    const from = begin < end ? begin : begin - 1;
    const gap = Math.min(0.0015, (end - from) / 6);
    const words = [
      `${each.state}, slot ${each.slot}, ${each.streams} streams from ${stream(each.first)}`,
      each.read_to ? `read to ${span(now - each.read_to)} ago` : "not read yet",
    ].join(", ");
    const path = arc(from + gap, end - gap, ...STREAMS);
    return h("path", { key: `group ${each.first}`, d: path, class: `group ${each.state}` }, h("title", {}, words));
  });
}

/** From what waits to what it waits for; a mark where something has failed. */
function chords(wait) {
  const [here, there] = [wait.streams[0], wait.front?.[0]].map((hex) => (hex ? share(token(hex)) : null));
  if (here === null) return [];
  const [x, y] = at(here, SLOTS[0] - 3);
  const mark = h("circle", { cx: x, cy: y, r: 2.2, class: `mark ${wait.state}` }, h("title", {}, `${wait.who}: ${wait.why}`));
  if (there === null) return [mark];
  const [a, b] = at(there, SLOTS[0] - 3);
  return [h("path", { d: `M${x} ${y}Q0 0 ${a} ${b}`, class: "chord" }), mark];
}

/** Where a token lies, from 0 to 1. It may have come through a float: good enough for a picture. */
function share(number) {
  return (Number(number) + RING / 2) / RING;
}

function token(hex) {
  return BigInt.asIntN(64, BigInt(`0x${hex.slice(0, 16)}`));
}

function at(part, radius) {
  const angle = 2 * Math.PI * part - Math.PI / 2;
  return [radius * Math.cos(angle), radius * Math.sin(angle)].map((each) => Number(each.toFixed(2)));
}

function arc(from, to, inner, outer) {
  // A whole ring has no two ends for an arc to lead to.
  const end = Math.min(to, from + 0.99999);
  const large = end - from > 0.5 ? 1 : 0;
  const [[a, b], [c, d], [e, f], [g, i]] = [at(from, outer), at(end, outer), at(end, inner), at(from, inner)];
  return `M${a} ${b}A${outer} ${outer} 0 ${large} 1 ${c} ${d}L${e} ${f}A${inner} ${inner} 0 ${large} 0 ${g} ${i}Z`;
}

function spoken(owners, count) {
  const by = new Map();
  for (let slot = 0; slot < count; slot++) {
    const who = owners[slot]?.words ?? "nobody";
    by.set(who, [...(by.get(who) ?? []), slot]);
  }
  return [...by].map(([who, slots]) => `${who}: ${ranges(slots)}`).join("; ");
}
