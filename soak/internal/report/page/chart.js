// The drawings, each as wide as its place. Texts of the run become text nodes only.

import { amount, axis, clock, decades, thin, timeStep } from "./scale.js";
import { apart } from "./strips.js";

// The room of the labels of a vertical axis, and that of the last label of a time axis.
const left = 54, right = 14;

// make returns an element with attributes and children; a text is a child, too.
export function make(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

function draw(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function picture(width, height, label) {
  return draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
}

// Time is the horizontal axis that all charts share.
export class Time {
  constructor(seconds, width) {
    this.seconds = Math.max(seconds, 0.1);
    this.width = width;
    this.pixel = this.seconds / Math.max(width - left - right, 1);
  }
  x(seconds) {
    return left + seconds / this.pixel;
  }
  at(x) {
    return Math.min(Math.max((x - left) * this.pixel, 0), this.seconds);
  }
  ticks() {
    const step = timeStep(this.seconds, Math.max(2, Math.floor((this.width - left - right) / 70)));
    return Array.from({ length: Math.floor(this.seconds / step + 1e-9) + 1 }, (_, n) => n * step);
  }
  grid(height) {
    return this.ticks().map((tick) => draw("line", { class: "grid", x1: this.x(tick), x2: this.x(tick), y1: 0, y2: height }));
  }
}

// timeAxis has the times below the charts.
export function timeAxis(time) {
  const svg = picture(time.width, 18, "time since the beginning of the run");
  for (const tick of time.ticks()) svg.append(draw("text", { x: time.x(tick), y: 13, "text-anchor": "middle" }, clock(tick)));
  return svg;
}

// lane has the faults of one kind.
export function lane(time, ink, spans, label) {
  const height = 18, svg = picture(time.width, height, label);
  svg.append(...time.grid(height), draw("line", { class: "grid", x1: left, x2: time.width - right, y1: height / 2, y2: height / 2 }));
  for (const span of apart(spans, time.pixel)) {
    svg.append(draw("rect", { class: `ink-${ink} solid`, x: time.x(span.from), y: 4, height: height - 8, rx: 1,
      width: Math.max((span.to - span.from) / time.pixel, 2.5) }));
  }
  return svg;
}

// strip draws a chart over time with the faults and the violations behind its lines.
export function strip(chart, time, marks) {
  const height = 92, top = 6, bottom = height - 6, svg = picture(time.width, height, chart.title);
  const { low, high, ticks, y } = vertical(chart, top, bottom);
  svg.append(...time.grid(height));
  for (const { ink, spans } of marks.kinds) {
    for (const span of apart(spans, time.pixel)) {
      const x = time.x(span.from);
      if (span.to > span.from) svg.append(draw("rect", { class: `ink-${ink} shade`, x, y: 0, height, width: (span.to - span.from) / time.pixel }));
      svg.append(draw("line", { class: `ink-${ink} begins`, x1: x, x2: x, y1: 0, y2: height }));
    }
  }
  for (const tick of ticks) {
    svg.append(draw("line", { class: "grid", x1: left, x2: time.width - right, y1: y(tick), y2: y(tick) }),
      draw("text", { x: left - 6, y: y(tick) + 3.5, "text-anchor": "end" }, amount(tick, chart.unit)));
  }
  if (chart.limit !== undefined) svg.append(draw("line", { class: "limit", x1: left, x2: time.width - right, y1: y(chart.limit), y2: y(chart.limit) }));
  for (const line of chart.lines) {
    for (const points of pieces(thin(line.points, Math.max(60, time.width)))) {
      const path = points.map(([x, value]) => `${time.x(x).toFixed(1)} ${y(value).toFixed(1)}`).join("L");
      if (line.fill) {
        const ground = y(Math.min(Math.max(low, 0), high)).toFixed(1);
        svg.append(draw("path", { class: `ink-${line.ink} area`,
          d: `M${time.x(points[0][0]).toFixed(1)} ${ground}L${path}L${time.x(points.at(-1)[0]).toFixed(1)} ${ground}Z` }));
      }
      // A piece of one point is a dot.
      svg.append(draw("path", { class: `ink-${line.ink} line`, d: points.length > 1 ? `M${path}` : `M${path}h0.1` }));
    }
  }
  for (const seconds of marks.broken) svg.append(draw("line", { class: "broken", x1: time.x(seconds), x2: time.x(seconds), y1: 0, y2: height }));
  return svg;
}

// vertical is the axis of a chart: its ends, its ticks, and where a value is.
export function vertical(chart, top, bottom) {
  const values = chart.lines.flatMap((line) => line.points).map(([, y]) => y).filter((y) => y !== null);
  let [low, high] = values.reduce(([low, high], y) => [Math.min(low, y), Math.max(high, y)], [Infinity, -Infinity]);
  let ticks, scale = (value) => value;
  if (chart.log) {
    ticks = decades(low, high);
    [low, high, scale] = [Math.log10(ticks[0]), Math.log10(ticks.at(-1)), Math.log10];
    ticks = ticks.filter((_, n) => n % Math.ceil(ticks.length / 4) === 0);
  } else {
    low = Math.min(low, 0);
    high = Math.max(high, chart.top ?? 0, 0);
    if (high === low) high = low + 1;
    ticks = axis(low, high, chart.unit);
  }
  return { low, high, ticks, y: (value) => bottom - ((scale(value) - low) / (high - low)) * (bottom - top) };
}

// pieces are the parts of a line between its gaps.
export function pieces(points) {
  const all = [[]];
  for (const point of points) {
    if (point[1] !== null) all.at(-1).push(point);
    else if (all.at(-1).length > 0) all.push([]);
  }
  return all.filter((piece) => piece.length > 0);
}

// histogram shows how long after their deadline volumes were gone. Each bucket begins where the one before ends.
export function histogram(buckets, width) {
  const height = 168, ground = height - 34, top = 18, left = 16, right = 26, each = (width - left - right) / buckets.length;
  const most = Math.max(...buckets.map((b) => b.volumes)), svg = picture(width, height, "volumes by the time after their deadline");
  const every = Math.ceil(44 / each);
  const border = (n, text) => {
    const x = left + n * each;
    svg.append(draw("line", { class: "grid", x1: x, x2: x, y1: ground, y2: ground + 5 }));
    if (n % every === 0) svg.append(draw("text", { x, y: ground + 16, "text-anchor": "middle" }, text));
  };
  buckets.forEach((bucket, n) => {
    const size = most > 0 ? (bucket.volumes / most) * (ground - top) : 0, x = left + n * each;
    if (bucket.volumes > 0) {
      svg.append(draw("rect", { class: "ink-blue solid", x: x + 1, width: Math.max(each - 2, 1), y: ground - Math.max(size, 1), height: Math.max(size, 1), rx: 1 }),
        draw("text", { x: x + each / 2, y: ground - size - 5, "text-anchor": "middle" }, amount(bucket.volumes, "count")));
    }
    border(n + 1, amount(bucket.to_ms, "ms"));
  });
  border(0, "due");
  svg.append(draw("line", { class: "ground", x1: left, x2: width - right, y1: ground, y2: ground }),
    draw("text", { x: (left + width - right) / 2, y: height - 3, "text-anchor": "middle" }, "after the deadline"));
  return svg;
}
