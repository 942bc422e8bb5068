// Axes, the texts of numbers, and which points of a line are drawn.

// Steps of a time axis, in seconds.
const timeSteps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];

// timeStep returns the smallest step that divides a time into at most so many parts.
export function timeStep(seconds, parts) {
  return timeSteps.find((step) => seconds / step <= parts) ?? timeSteps.at(-1);
}

// roundTicks divides a range at about four round numbers that are no closer than least.
export function roundTicks(low, high, least = 0) {
  if (!(high > low)) return [low];
  let step = 10 ** Math.floor(Math.log10((high - low) / 4));
  step *= [1, 2, 5].find((factor) => (high - low) / (step * factor) <= 5) ?? 10;
  step = Math.max(step, least);
  const ticks = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n++) ticks.push(Number((n * step).toPrecision(12)));
  return ticks;
}

// decades returns the powers of ten from the one at or below low to the one at or above high, at least two.
export function decades(low, high) {
  const from = Math.floor(Math.log10(low)), to = Math.max(Math.ceil(Math.log10(high)), from + 1);
  return Array.from({ length: to - from + 1 }, (_, n) => Number((10 ** (from + n)).toPrecision(12)));
}

const binary = [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];

// amount is a number in its unit for a person: "ms", "bytes", "share" (of one), "cores" or a count.
export function amount(value, unit) {
  const digits = (n, most) => n.toLocaleString("en-US", { maximumFractionDigits: most });
  switch (unit) {
    case "ms":
      return Math.abs(value) >= 1000 ? `${digits(value / 1000, 2)} s` : `${digits(value, value >= 100 ? 0 : value >= 10 ? 1 : 2)} ms`;
    case "bytes": {
      const [name, size] = binary.find(([, size]) => Math.abs(value) >= size) ?? ["B", 1];
      return `${digits(value / size, 1)} ${name}`;
    }
    case "share":
    case "cores":
      return digits(value, 2);
    default:
      return digits(value, value >= 100 ? 0 : 1);
  }
}

// axis returns the ticks of a vertical axis.
export function axis(low, high, unit) {
  if (unit === "bytes") {
    const size = binary.find(([, size]) => Math.max(high, -low) >= size)?.[1] ?? 1;
    return roundTicks(low / size, high / size).map((tick) => tick * size);
  }
  return roundTicks(low, high, unit === "count" ? 1 : 0);
}

// clock is a time since the beginning of the run.
export function clock(seconds) {
  if (seconds < 60) return `${Number(seconds.toFixed(1))}s`;
  const whole = Math.round(seconds), h = Math.floor(whole / 3600), m = Math.floor(whole / 60) % 60, s = whole % 60;
  return `${h ? `${h}h` : ""}${m || (h && s) ? `${m}m` : ""}${s ? `${s}s` : ""}`;
}

// thin leaves about so many points of a line: the lowest and the highest of each part, so that no peak is lost. Where
// a value is null the line has a gap.
export function thin(points, most) {
  if (points.length <= most) return points;
  const parts = Math.floor(most / 3), left = [];
  for (let i = 0; i < parts; i++) {
    const part = points.slice(Math.floor((i * points.length) / parts), Math.floor(((i + 1) * points.length) / parts));
    const known = part.filter(([, y]) => y !== null);
    if (known.length < part.length) left.push(part.find(([, y]) => y === null));
    if (known.length === 0) continue;
    const low = known.reduce((a, b) => (b[1] < a[1] ? b : a)), high = known.reduce((a, b) => (b[1] > a[1] ? b : a));
    left.push(low);
    if (high !== low) left.push(high);
  }
  return left.sort((a, b) => a[0] - b[0]);
}

// rates is how fast a value grows, each over at least a span.
export function rates(points, span) {
  const line = [];
  let before = null;
  for (const [x, y] of points) {
    if (y === null || (before && x - before[0] < span)) continue;
    if (before) line.push([x, (y - before[1]) / (x - before[0])]);
    before = [x, y];
  }
  return line;
}

// at returns the point of a line at a time, or the last before it; null if there is none.
export function at(points, seconds) {
  let found = null;
  for (const point of points) {
    if (point[0] > seconds) break;
    found = point;
  }
  return found;
}
