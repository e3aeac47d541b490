// Times on an axis: round steps, in the unit that suits.

function axisSteps(from, to, most) {
  const least = (to - from) / most;
  const base = 10 ** Math.floor(Math.log10(least || 1));
  const step = [1, 2, 5, 10].map((one) => one * base).find((one) => one >= least) ?? base * 10;
  const steps = [];
  for (let at = Math.ceil(from / step) * step; at <= to + step * 1e-9; at += step) steps.push(at);
  return { step, steps };
}

// Microseconds as the axis writes them, with as many digits as its step needs.
function axisText(microseconds, step) {
  const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(step || 1))));
  return `${microseconds.toFixed(digits)} us`;
}
