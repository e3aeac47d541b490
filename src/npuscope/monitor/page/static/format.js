// Figures as people read them.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(count) {
  let value = count;
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return `${trim(value.toFixed(digits))} ${UNITS[unit]}`;
}

export const rate = (count) => `${bytes(count)}/s`;
export const percent = (value) => `${value >= 10 || value === 0 ? Math.round(value) : value.toFixed(1)} %`;
export const plain = (value) => (Number.isInteger(value) ? String(value) : value.toFixed(1));

function trim(text) {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

export function span(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return two(whole, 60, "min", 1, "s");
  return whole < 86400 ? two(whole, 3600, "h", 60, "min") : two(whole, 86400, "d", 3600, "h");
}

function two(whole, large, name, small, rest) {
  const left = Math.floor((whole % large) / small);
  return `${Math.floor(whole / large)} ${name}${left ? ` ${left} ${rest}` : ""}`;
}

export function clock(seconds, withSeconds = true) {
  const time = new Date(seconds * 1000);
  const words = [time.getHours(), time.getMinutes(), time.getSeconds()].map((part) => String(part).padStart(2, "0"));
  return words.slice(0, withSeconds ? 3 : 2).join(":");
}

export const many = (count, one, more = `${one}s`) => `${count} ${count === 1 ? one : more}`;
