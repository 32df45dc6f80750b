// Figures as people read them: spans of time, numbers, moments, places on the ring.

const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
const NUMBERS = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
export const NONE = "–";

/** 820 → "0.8 s", 200000 → "3 min 20 s". */
export function span(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return NONE;
  const seconds = Math.max(0, ms / 1000);
  if (seconds < 1) return `${Math.round(ms)} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  let left = Math.round(seconds);
  const parts = [];
  for (const [unit, length] of UNITS) {
    const count = Math.floor(left / length);
    left -= count * length;
    if (count > 0 || parts.length) parts.push(`${count} ${unit}`);
    if (parts.length === 2) break;
  }
  return parts.filter((part) => !part.startsWith("0 ")).join(" ");
}

/** With thin spaces between thousands. */
export function count(number) {
  return number === null || number === undefined ? NONE : NUMBERS.format(number).replaceAll(",", "\u202f");
}

export function rate(perSecond) {
  if (perSecond === null || perSecond === undefined) return NONE;
  return perSecond > 0 && perSecond < 9.95 ? perSecond.toFixed(1) : count(perSecond);
}

export function bytes(number) {
  if (number < 1000) return `${number} B`;
  return number < 1e6 ? `${(number / 1e3).toFixed(1)} kB` : `${(number / 1e6).toFixed(1)} MB`;
}

/** A time of day; with its date where that is not today's. */
export function moment(ms) {
  if (!ms) return NONE;
  const at = new Date(ms);
  const two = (number) => String(number).padStart(2, "0");
  const time = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":");
  const day = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join("-");
  return at.toDateString() === new Date().toDateString() ? time : `${day} ${time}`;
}

/** [0, 1, 2, 7] → "0–2, 7". */
export function ranges(numbers) {
  const runs = [];
  for (const each of [...numbers].sort((a, b) => a - b)) {
    const last = runs.at(-1);
    if (last && last[1] === each - 1) last[1] = each;
    else runs.push([each, each]);
  }
  return runs.map(([from, to]) => (from === to ? `${from}` : to === from + 1 ? `${from}, ${to}` : `${from}–${to}`)).join(", ");
}

/** A stream by the beginning of its id, which is its token. */
export function stream(hex) {
  return `0x${hex.slice(0, 8)}…`;
}
