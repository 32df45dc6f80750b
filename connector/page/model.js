// What a status says, put together by connector and table. In: the document of `/status`. Out: plain values to be shown.

const ORDER = ["STOPPED", "RUNNING", "WAITING", "FAILED"];

export function worst(states) {
  return states.reduce((found, each) => (ORDER.indexOf(each) > ORDER.indexOf(found) ? each : found), "STOPPED");
}

/** The connectors, each with its workers and tables. */
export function connectorsOf(status) {
  return Object.entries(status.connectors ?? {}).map(([name, connector]) => {
    const workers = status.workers.filter((worker) => connector.workers.includes(worker.index));
    const held = connector.target !== "RUNNING";
    return {
      name,
      ...connector,
      held,
      shown: held ? connector.target : connector.state,
      numbers: connector.workers,
      workers,
      tables: tablesOf(workers, held),
      slotCount: Math.max(0, ...workers.map((worker) => worker.slot_count)),
    };
  });
}

function tablesOf(workers, held) {
  const names = [...new Set(workers.flatMap((worker) => Object.keys(worker.tables)))].sort();
  return names.map((name) => {
    const parts = workers.filter((worker) => name in worker.tables).map((worker) => ({ worker, ...worker.tables[name] }));
    const sum = (figure) => parts.reduce((total, part) => total + (part[figure] ?? 0), 0);
    const least = (values) => (values.length ? Math.min(...values) : null);
    const known = (figure) => parts.map((part) => part[figure]).filter((value) => value !== null && value !== undefined);
    return {
      name,
      parts,
      state: held ? "STOPPED" : worst(parts.map((part) => part.state)),
      lag: known("lag_ms").length ? Math.max(...known("lag_ms")) : null,
      position: least(known("position_ms")),
      ttl: least(known("log_ttl_seconds")),
      records: sum("records"),
      deadLetters: sum("dead_letters"),
      failedGroups: sum("failed_groups"),
      waitingCount: sum("waiting_count"),
      groups: sum("groups"),
      expired: sum("expired"),
      late: parts.flatMap((part) => Object.values(part.late_changes ?? {})).reduce((total, each) => total + each, 0),
      error: parts.map((part) => part.error).find(Boolean) ?? null,
      waiting: parts.flatMap((part) => part.waiting ?? []),
      snapshot: snapshotOf(parts.map((part) => part.snapshot).filter(Boolean)),
    };
  });
}

/** Of the last one that any worker knows; what is committed somebody may see later than others. */
function snapshotOf(parts) {
  if (!parts.length) return null;
  const began = Math.max(...parts.map((part) => part.began_ms));
  const last = parts.filter((part) => part.began_ms === began);
  const sum = (figure) => last.reduce((total, part) => total + part[figure], 0);
  return {
    began,
    ended: last.some((part) => part.ended),
    done: Math.max(...last.map((part) => part.done)),
    rows: sum("rows"),
    rereads: sum("rereads"),
    undecided: sum("undecided"),
    refused: sum("refused"),
    held: sum("held_bytes"),
    pace: sum("rows_per_second"),
    left: sum("refused") ? -1 : Math.max(-1, ...last.map((part) => part.seconds_left ?? -1)),
  };
}

/** What waits, for whom and why: of the service, of a connector's workers, of its tables. The worst come first. */
export function waitsOf(status, connector) {
  const found = [];
  const say = (state, who, why, more = {}) => {
    // One cause is said by many: once is enough.
    const same = found.find((each) => each.who === who && each.why === why && each.whom === (more.whom ?? ""));
    if (same) {
      same.slots.push(...(more.slots ?? []));
      same.streams.push(...(more.streams ?? []));
      same.times += 1;
    } else {
      found.push({ state, who, why, whom: "", since: null, ...more, slots: more.slots ?? [], streams: more.streams ?? [], times: 1 });
    }
  };
  if (connector.given_up) say("FAILED", "the connector", connector.given_up);
  else if (connector.waiting_for) say(connector.held ? "PAUSED" : "WAITING", "the connector", connector.waiting_for);
  for (const worker of connector.workers) {
    const name = `worker ${worker.index}`;
    for (const each of worker.background ?? []) {
      const about = each.about ? ` (${each.about})` : "";
      say(each.holds_delivery ? "WAITING" : "NOTE", name, `${each.what}${about}: ${each.error}`, {
        since: each.since_ms,
        whom: each.waits,
        attempts: each.attempts,
      });
    }
    const told = (worker.background ?? []).some((each) => worker.waiting_for?.includes(each.text));
    if (worker.waiting_for && !told && !connector.held) say("WAITING", name, worker.waiting_for);
    for (const each of worker.retrying ?? []) {
      const slot = each.slot === null ? [] : [each.slot];
      say("WAITING", name, `a read is tried again: ${each.error}`, { slots: slot, attempts: each.attempts });
    }
    for (const [table, part] of connector.held ? [] : Object.entries(worker.tables)) {
      if (part.error && !(part.waiting ?? []).some((each) => each.note === part.error)) say("FAILED", table, part.error);
      for (const each of part.waiting ?? []) {
        const failed = each.reason === "failed";
        const slots = each.slot === null || each.slot === undefined ? [] : [each.slot];
        const place = each.waits_for_slot === null || each.waits_for_slot === undefined ? "" : `slot ${each.waits_for_slot}`;
        say(failed ? "FAILED" : "WAITING", table, failed ? (each.note ?? each.reason) : each.reason + (each.note ? `: ${each.note}` : ""), {
          slots,
          streams: each.streams ?? [],
          whom: place,
          front: each.waits_for ?? [],
          since: each.read_to,
        });
      }
    }
  }
  if (status.waiting_for && !found.some((each) => each.state !== "NOTE") && status.state !== "RUNNING") {
    say("WAITING", "the service", status.waiting_for);
  }
  const rank = ["FAILED", "WAITING", "PAUSED", "NOTE"];
  return found.sort((a, b) => rank.indexOf(a.state) - rank.indexOf(b.state));
}

const TABLE = Array.from({ length: 256 }, (_, number) => {
  let value = number;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value >>> 0;
});

/** CRC-32, by which the slots of a table are turned on the ring. */
export function crc32(text) {
  let value = 0xffffffff;
  for (const byte of new TextEncoder().encode(text)) value = TABLE[(value ^ byte) & 0xff] ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}
