// What is drawn over the time of a run, and where faults and violations are.

import { amount, clock, rates, timeStep } from "./scale.js";

// A line has at most so many values that are made of several samples.
const mostParts = 180;

// What comes and goes of a disk has to be at least this share of it to be seen in a chart of all of it.
const visibleShare = 0.05;

// strips returns the groups of charts of a run. Lines without a point and charts without a line are left out.
//
// A chart has a title and a unit; log says that its axis is logarithmic, top is the least that the axis reaches up to, limit
// a value to mark. A line has a name, an ink, its points [seconds, value], where null is a gap, and says which of its values is
// told first: "max" or "min".
export function strips(run) {
  const samples = run.samples, step = Math.max(timeStep(run.seconds, mostParts), 0.5);
  const points = (of) => samples.map((s) => [s.seconds, of(s) ?? null]);
  const line = (name, ink, points, told = "max") => ({ name, ink, points, told });
  const groups = [
    { title: "Latency", note: `each value stands for ${clock(step)}: the highest p99 and the middle p50 of its samples`, strips: [
      latency("Publish", samples.map((s) => [s.seconds, s.publish]), step),
      latency("Unpublish", samples.map((s) => [s.seconds, s.unpublish]), step),
    ] },
    { title: "Work", note: "calls that were cancelled or met a fault end with an error", strips: [
      { title: "Calls per second", unit: "rate", lines: [
        line("answered", "blue", rates(points((s) => s.calls), step)), line("with an error", "red", rates(points((s) => s.errors), step))] },
      { title: "On the node", unit: "count", lines: [
        line("mounted volumes", "blue", points((s) => s.mounted)), line("pods", "orange", points((s) => s.running))] },
      { title: "Volumes retained", unit: "count", lines: [{ ...line("retained", "blue", points((s) => s.retained)), fill: true }] },
      { title: "Volumes gone per second", unit: "rate", lines: [
        line("expired", "blue", rates(points((s) => s.expired), step)), line("evicted", "orange", rates(points((s) => s.evicted), step))] },
    ] },
    { title: "Disk", note: "the disk of the working directory, whoever uses it", strips: [
      disk("Space in use", "bytes", run, (d) => [d.free_bytes, d.total_bytes]),
      disk("Inodes in use", "count", run, (d) => [d.free_inodes, d.total_inodes]),
      { title: "Pressure factor", unit: "share", top: 1, lines: [
        line("of each lifespan", "orange", points((s) => s.disk?.pressure), "min")] },
    ] },
    { title: "Driver", note: "a gap is a time without a process", strips: [
      { title: "Memory", unit: "bytes", lines: [
        line("RSS", "blue", points((s) => s.driver?.rss_bytes)), line("anonymous", "orange", points((s) => s.driver?.rss_anon_bytes))] },
      { title: "CPU", unit: "cores", lines: [line("cores", "blue", rates(points((s) => s.driver?.cpu_seconds), step))] },
      { title: "Threads", unit: "count", lines: [line("threads", "blue", points((s) => s.driver?.threads))] },
    ] },
  ];
  for (const group of groups) {
    for (const strip of group.strips) strip.lines = strip.lines.filter((line) => line.points.some(([, y]) => y !== null));
    group.strips = group.strips.filter((strip) => strip.lines.length > 0);
  }
  return groups.filter((group) => group.strips.length > 0);
}

// Without a call for so many parts a line of latencies has a gap.
const longestWithout = 8;

// latency has the calls of a method in parts of step seconds. What is 0 has no place on a logarithmic axis.
export function latency(title, intervals, step) {
  const parts = new Map();
  for (const [seconds, interval] of intervals) {
    const part = Math.floor(seconds / step);
    if (interval) parts.set(part, [...(parts.get(part) ?? []), [seconds, interval]]);
  }
  const p50 = [], p99 = [];
  let before = Infinity;
  for (const part of parts.values()) {
    const at = part.at(-1)[0];
    if (at - before > longestWithout * step) [p50, p99].forEach((line) => line.push([before, null]));
    before = at;
    p50.push([at, middle(part.map(([, interval]) => [interval.p50_ms, interval.calls]))]);
    p99.push([at, Math.max(...part.map(([, interval]) => interval.p99_ms))]);
  }
  const shown = (points) => points.filter(([, y]) => y === null || y > 0);
  return { title, unit: "ms", log: true, lines: [
    { name: "p99", ink: "orange", points: shown(p99), told: "max" }, { name: "p50", ink: "blue", points: shown(p50), told: "max" }] };
}

// middle is the middle of values by their weights.
function middle(values) {
  values.sort((a, b) => a[0] - b[0]);
  let left = values.reduce((sum, [, weight]) => sum + weight, 0) / 2;
  return values.find(([, weight]) => (left -= weight) <= 0)?.[0] ?? 0;
}

// disk is what is in use, and where the headroom begins; or the change of it, if it would not be seen beside all
// that the disk has.
export function disk(title, unit, run, of) {
  const known = run.samples.filter((s) => s.disk && of(s.disk)[1] > 0);
  const points = known.map((s) => { const [free, total] = of(s.disk); return [s.seconds, total - free]; });
  const total = known.reduce((most, s) => Math.max(most, of(s.disk)[1]), 0);
  const [low, high] = points.reduce(([low, high], [, y]) => [Math.min(low, y), Math.max(high, y)], [Infinity, -Infinity]);
  const line = { name: "in use", ink: "blue", points, told: "max", fill: true };
  if (points.length > 0 && high - low < visibleShare * total) {
    const first = points[0][1];
    return { title, unit, note: `${amount(first, unit)} of ${amount(total, unit)} at the beginning`,
      lines: [{ ...line, name: "change", points: points.map(([x, y]) => [x, y - first]) }] };
  }
  return { title, unit, top: total, limit: run.workload.headroom > 0 ? (1 - run.workload.headroom) * total : undefined, lines: [line] };
}

// The kinds of faults that have a color of their own.
const inks = new Set(["daemon-kill", "kubelet-restart", "disk-full", "no-inodes", "slow-disk", "machine-slow", "open-files", "clock-step"]);

// marks returns the faults by their kinds, with the color and the ends of each, and the times of violations. A fault
// without an end lasted until the run was over, unless it is of a kind that has no length.
export function marks(run, atOnce) {
  const kinds = new Map();
  for (const fault of run.fault_spans) {
    const to = fault.to ?? (atOnce.includes(fault.kind) ? fault.from : Math.max(run.seconds, fault.from));
    if (!kinds.has(fault.kind)) kinds.set(fault.kind, { kind: fault.kind, ink: inks.has(fault.kind) ? fault.kind : "other", spans: [] });
    kinds.get(fault.kind).spans.push({ from: fault.from, to, what: fault.what ?? "", open: fault.to === undefined && to > fault.from });
  }
  const broken = [];
  let before = 0;
  for (const s of run.samples) {
    if (s.violations > before) broken.push(s.seconds);
    before = s.violations;
  }
  return { kinds: [...kinds.values()].sort((a, b) => (a.kind < b.kind ? -1 : 1)), broken };
}

// apart leaves out the spans that cannot be told from the one before, on an axis where least seconds can be seen.
export function apart(spans, least) {
  let from = -Infinity, to = -Infinity;
  return spans.filter((span) => {
    if (span.from - from < least && span.to - to < least) return false;
    from = span.from;
    to = span.to;
    return true;
  });
}
