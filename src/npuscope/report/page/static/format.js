// Figures as people read them.

function whole(value) {
  return value === null || value === undefined ? "NA" : Math.round(value).toLocaleString("en-US");
}

function percent(share) {
  if (share === null || share === undefined) return "NA";
  const value = 100 * share;
  return `${value >= 10 || value === 0 ? value.toFixed(0) : value.toFixed(1)} %`;
}

function bytesText(count) {
  if (count === null || count === undefined || count < 0) return "NA";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) {
    count /= 1024;
    unit += 1;
  }
  return `${unit === 0 || count >= 100 ? count.toFixed(0) : Number(count.toPrecision(3))} ${units[unit]}`;
}

function short(value) {
  if (value === null || value === undefined) return "NA";
  if (Number.isInteger(value)) return value.toLocaleString("en-US");
  const size = Math.abs(value);
  return size >= 1000 ? value.toLocaleString("en-US", { maximumFractionDigits: 1 }) : String(Number(value.toPrecision(4)));
}

function timeText(microseconds) {
  if (microseconds >= 1e6) return `${(microseconds / 1e6).toFixed(3)} s`;
  if (microseconds >= 1000) return `${(microseconds / 1000).toFixed(3)} ms`;
  return microseconds >= 1 ? `${microseconds.toFixed(2)} us` : `${(microseconds * 1000).toFixed(1)} ns`;
}

const many = (count, one, more = `${one}s`) => `${whole(count)} ${count === 1 ? one : more}`;
