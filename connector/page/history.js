// What figures were: counters become rates, histograms become the latencies of the last minute. In: each status. Out:
// numbers by connector and table. A worker that is replaced begins to count anew, under another name.

const KEPT = 120_000;
const RATE = 10_000;
const LATENCY = 60_000;

export class History {
  constructor() {
    this.tables = new Map();
    this.counters = new Map();
    this.begun = null;
  }

  take(status, at) {
    if (this.begun !== status.started_ms) {
      // Another process: nothing of the former one is continued.
      this.tables.clear();
      this.counters.clear();
      this.begun = status.started_ms;
    }
    const grown = new Map();
    for (const worker of status.workers) {
      for (const [name, table] of Object.entries(worker.tables)) {
        const key = nameOf(worker.connector, name);
        const sum = grown.get(key) ?? { records: 0, latency: null };
        sum.records += this.growth(`${worker.worker} ${key}`, table.records ?? 0);
        const latency = table.latency_seconds;
        if (latency) {
          sum.latency ??= { bounds: latency.bounds, counts: latency.counts.map(() => 0) };
          latency.counts.forEach((each, bucket) => {
            sum.latency.counts[bucket] += this.growth(`${worker.worker} ${key} ${bucket}`, each);
          });
        }
        grown.set(key, sum);
      }
    }
    for (const [key, sum] of grown) {
      const samples = this.tables.get(key) ?? [];
      samples.push({ at, ...sum });
      while (samples[0].at < at - KEPT) samples.shift();
      this.tables.set(key, samples);
    }
    this.begunAt ??= at;
  }

  growth(name, now) {
    // What a worker counted before the page was opened is no growth; what a new one has counted by now, is.
    const before = this.counters.get(name) ?? (this.begunAt === undefined ? now : 0);
    this.counters.set(name, now);
    return Math.max(0, now - before);
  }

  /** Records a second, lately; null as long as nothing can be said. */
  rate(connector, table) {
    const samples = this.samples(connector, table);
    const last = samples.at(-1);
    const lately = samples.filter((each) => each.at > (last?.at ?? 0) - RATE);
    if (lately.length < 2) return null;
    const seconds = (last.at - lately[0].at) / 1000;
    return lately.slice(1).reduce((sum, each) => sum + each.records, 0) / seconds;
  }

  /** Rates of the kept time, oldest first, as so many points. */
  rates(connector, table, points) {
    const samples = this.samples(connector, table);
    const step = KEPT / points;
    const end = Math.floor((samples.at(-1)?.at ?? 0) / step) * step;
    const sums = new Array(points).fill(0);
    samples.slice(1).forEach((each) => {
      const at = points - 1 - Math.floor((end - each.at) / step);
      if (at >= 0 && at < points) sums[at] += each.records / (step / 1000);
    });
    return sums;
  }

  /** How long half, and nearly all, of the last minute's batches took, in ms. */
  latency(connector, table) {
    const samples = this.samples(connector, table);
    const last = samples.at(-1)?.at ?? 0;
    const counts = [];
    let bounds = [];
    for (const each of samples) {
      if (each.at <= last - LATENCY || !each.latency) continue;
      bounds = each.latency.bounds;
      each.latency.counts.forEach((number, bucket) => (counts[bucket] = (counts[bucket] ?? 0) + number));
    }
    return [0.5, 0.99].map((share) => quantile(bounds, counts, share));
  }

  samples(connector, table) {
    return this.tables.get(nameOf(connector, table)) ?? [];
  }
}

function nameOf(connector, table) {
  return `${connector}\u0000${table}`;
}

/** Within a bucket, evenly; of what lies behind all bounds only the last of them is known. */
export function quantile(bounds, counts, share) {
  const total = counts.reduce((sum, each) => sum + each, 0);
  if (!total) return null;
  let below = 0;
  for (let bucket = 0; bucket < counts.length; bucket++) {
    if (below + counts[bucket] >= share * total) {
      const from = bucket ? bounds[bucket - 1] : 0;
      const to = bounds[bucket] ?? from;
      return 1000 * (from + (to - from) * ((share * total - below) / counts[bucket]));
    }
    below += counts[bucket];
  }
  return 1000 * bounds.at(-1);
}
