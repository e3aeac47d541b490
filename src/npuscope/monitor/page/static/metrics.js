// The metrics of the last minutes: fetched piece by piece, kept, and turned into what the charts draw.

const NAMES = [
  "cpu_util", "mem_used_bytes", "mem_total_bytes", "rx_bytes.", "tx_bytes.",
  "cpu_percent", "rss_bytes", "threads", "read_bytes", "write_bytes",
];
export const SPAN = 1800;

export class Metrics {
  constructor() {
    this.series = new Map();
    this.newest = 0;
    this.leftOut = 0;
  }

  get address() {
    return `history.json?since=${this.newest}&names=${NAMES.join(",")}`;
  }

  take(reply) {
    this.leftOut = reply.leftOut;
    for (const piece of reply.series) {
      const key = `${piece.entity} ${piece.name} ${JSON.stringify(piece.labels)}`;
      const known = this.series.get(key);
      if (known) {
        known.times.push(...piece.times);
        known.values.push(...piece.values);
      } else if (piece.times.length) this.series.set(key, piece);
      this.newest = piece.times.reduce((a, b) => Math.max(a, b), this.newest);
    }
    for (const [key, one] of this.series) {
      const old = one.times.findIndex((time) => time > reply.now - SPAN);
      if (old < 0) this.series.delete(key);
      else if (old > 0) {
        one.times.splice(0, old);
        one.values.splice(0, old);
      }
    }
  }

  // From the first point there is to now, at least a minute and at most the span.
  range(now) {
    let first = now - 60;
    for (const one of this.series.values()) first = Math.min(first, one.times[0]);
    return [Math.max(first, now - SPAN), now];
  }

  find(entity, name) {
    return [...this.series.values()].filter((one) => one.entity === entity && one.name === name);
  }

  host(name) {
    return this.find("host", name)[0];
  }

  // All interfaces but the loopback together, per second; the figures are what came since the figure before.
  network(prefix) {
    const sums = new Map();
    for (const one of this.series.values()) {
      if (one.entity !== "host" || !one.name.startsWith(prefix) || one.name === `${prefix}lo`) continue;
      const speed = perSecond(one, (at) => one.values[at]);
      speed.times.forEach((time, at) => sums.set(time, (sums.get(time) ?? 0) + speed.values[at]));
    }
    const times = [...sums.keys()].sort((a, b) => a - b);
    return { times, values: times.map((time) => sums.get(time)) };
  }

  // Read and written bytes of a process together, per second; the figures are what it has read and written so far.
  traffic(process) {
    const [read, written] = ["read_bytes", "write_bytes"].map((name) => this.of(process, name));
    if (!read || !written) return null;
    const total = { times: read.times, values: read.values.map((value, at) => value + (written.values[at] ?? 0)) };
    return perSecond(total, (at) => Math.max(0, total.values[at] - total.values[at - 1]));
  }

  // A process is known by its number on this host; inside a container it may call itself something else.
  of(process, name) {
    return this.find("process", name).find((one) => String(one.labels.host_pid ?? one.labels.pid) === here(process));
  }

  last(process, name) {
    return newest(this.of(process, name));
  }
}

// One that the daemon cannot see has no number here.
export const here = (process) => String(process.hostPid ?? (process.container ? `${process.pid} inside` : process.pid));

function perSecond(one, amount) {
  const times = one.times.slice(1);
  return { times, values: times.map((time, at) => amount(at + 1) / Math.max(time - one.times[at], 1e-3)) };
}

export const newest = (one) => (one?.values.length ? one.values[one.values.length - 1] : null);
