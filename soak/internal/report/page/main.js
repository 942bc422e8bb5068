// The page of a run. It asks nobody for anything: the run is in the page.

import { amount, at, clock } from "./scale.js";
import { marks, strips } from "./strips.js";
import { histogram, lane, make, strip, Time, timeAxis } from "./chart.js";

// So many faults are listed one by one; the charts have all.
const mostListed = 300;

function section(title, note, ...children) {
  return make("section", {}, make("h2", {}, title, ...(note ? [make("small", {}, note)] : [])), ...children);
}

function key(ink) {
  return make("i", { class: `key ink-${ink}` });
}

// head is what a person has to see in a moment.
function head(page) {
  const { run } = page, header = document.querySelector("header");
  if (run.unproven) header.append(make("p", {}, make("strong", {}, `It did not come to its end: ${run.unproven}.`)));
  for (const promise of run.promises.filter((p) => p.broken > 0)) {
    header.append(make("p", { class: "broken" }, make("strong", {}, promise.promise), `, broken ${promise.broken === 1 ? "once" : `${promise.broken} times`}`));
  }
  header.append(make("p", {}, page.facts), ...(run.machine ? [make("p", {}, run.machine)] : []),
    make("p", {}, "The same decisions again: ", make("code", {}, run.command)));
  if (run.kept) header.append(make("p", {}, "Kept with the driver's log: ", make("code", {}, run.kept)));
}

function stories(page) {
  if (page.stories.length === 0) return [];
  return [section("What happened", "", ...page.stories.map((story, n) => make("details", { class: "story", ...(n === 0 ? { open: "" } : {}) },
    make("summary", {}, story.promise, make("small", {}, `broken at ${story.clock}${story.again ? `, and ${story.again}` : ""}`)),
    make("pre", { class: "what" }, story.what),
    ...(story.volume ? [make("pre", {}, [`volume ${story.volume}`, `pod    ${story.pod}`, ...(story.story ?? [])].join("\n"))] : []))),
  ...(page.more > 0 ? [make("p", { class: "note" }, `... and ${page.more} more stories like these`)] : []))];
}

// tiles are the few numbers that say how much was tried, and how it went.
function tiles({ run }) {
  const tile = (name, value, note) => make("div", { class: "tile" }, make("span", {}, name), make("b", {}, value), make("span", {}, note));
  const broken = run.promises.filter((p) => p.broken > 0).length;
  const all = [
    tile("Promises", `${run.promises.length - broken} of ${run.promises.length}`, run.unproven ? "not broken so far" : "kept"),
    tile("Pods", amount(run.summary.pods, "count"), `of ${amount(run.workload.pods, "count")}, with ${amount(run.summary.volumes, "count")} volumes`),
    tile("Calls", amount(run.summary.calls, "count"), `${amount(run.summary.calls_per_second, "rate")} a second, ${amount(run.summary.errors, "count")} with an error`),
  ];
  const publish = run.methods.find((m) => m.method === "NodePublishVolume");
  if (publish?.codes.OK > 0) all.push(tile("Publish p99", amount(publish.p99_ms, "ms"), `half within ${amount(publish.p50_ms, "ms")}`));
  if (run.deadlines.expired > 0) all.push(tile("Lateness p99", amount(run.deadlines.late_p99_ms, "ms"), `half within ${amount(run.deadlines.late_p50_ms, "ms")}`));
  if (run.deadlines.lowest_pressure !== undefined) all.push(tile("Lowest pressure factor", amount(run.deadlines.lowest_pressure, "share"), "of each lifespan"));
  return make("div", { class: "tiles" }, ...all);
}

// deadlines has what became of the volumes, and how exactly.
function deadlines({ run }) {
  const d = run.deadlines;
  const parts = [["expired in time", "blue", d.expired], ["evicted by pressure", "orange", d.evicted], ["removed by a person", "kubelet-restart", d.removed],
    ["gone because of others of their owner", "no-inodes", d.repeated],
    ["not due when the run ended", "other", d.following]].filter(([, , n]) => n > 0);
  const all = parts.reduce((sum, [, , n]) => sum + n, 0);
  if (all === 0) return [];
  const bar = make("div", { class: "parts", role: "img", "aria-label": "what became of the retained volumes" });
  for (const [, ink, n] of parts) {
    const part = make("i", { class: `ink-${ink}` });
    part.style.flexGrow = n;
    bar.append(part);
  }
  const fates = make("div", { class: "card" }, make("h3", {}, `What became of ${amount(all, "count")} retained volumes`), bar,
    make("ul", { class: "fates" }, ...parts.map(([name, ink, n]) => make("li", {}, key(ink), name, make("b", {}, amount(n, "count"))))),
    make("p", { class: "note" }, `The data of ${amount(d.seen, "count")} was seen in the last second before the deadline. `,
      ...(d.attached > 0 ? [`Another pod attached ${amount(d.attached, "count")} before they went.`] : [])));
  const cards = [fates];
  if (d.late.length > 0) {
    const place = make("div", { class: "place" });
    cards.push(make("div", { class: "card" }, make("h3", {}, "Volumes by when they were gone"), place,
      make("p", { class: "note" }, `Half within ${amount(d.late_p50_ms, "ms")}, 99 % within ${amount(d.late_p99_ms, "ms")}, the last after ${amount(d.late_max_ms, "ms")}. `,
        "Volumes that were held by a mount are not among them.")));
    fit(place, (width) => place.replaceChildren(histogram(d.late, width)));
  }
  return [section("Deadlines", "", make("div", { class: "cards" }, ...cards))];
}

// fit draws again whenever the width of a place is another.
function fit(place, draw) {
  let drawn = 0;
  new ResizeObserver(() => {
    const width = Math.floor(place.clientWidth);
    if (width > 0 && width !== drawn) draw(drawn = width);
  }).observe(place);
}

// overTime has all charts below one another, with the faults above them, on one axis.
function overTime(page) {
  const { run } = page, groups = strips(run), marked = marks(run, page.at_once);
  if (groups.length === 0 && marked.kinds.length === 0) return [];
  const now = make("p", { class: "now", hidden: "" }), all = make("div", { class: "card time" }), redraw = [], tell = [];
  const row = (draw, ...head) => {
    const place = make("div", { class: "place" });
    redraw.push((time) => place.replaceChildren(draw(time)));
    return make("div", { class: "row" }, make("div", { class: "head" }, ...head), place);
  };
  if (marked.broken.length > 0) {
    all.append(row((time) => lane(time, "red", marked.broken.map((s) => ({ from: s, to: s })), "violations"), make("b", { class: "bad" }, "violations")));
  }
  for (const { kind, ink, spans } of marked.kinds) {
    all.append(row((time) => lane(time, ink, spans, kind), make("span", {}, key(ink), kind), make("output", {}, String(spans.length))));
  }
  all.append(row(timeAxis));
  for (const group of groups) {
    all.append(make("h3", {}, group.title, make("small", {}, group.note)));
    for (const chart of group.strips) {
      const legend = chart.lines.map((line) => {
        const value = make("output");
        const told = line.points.map(([, y]) => y).filter((y) => y !== null);
        const usual = told.length > 0 ? `${line.told} ${amount(told.reduce((a, b) => Math[line.told](a, b)), chart.unit)}` : "";
        tell.push((seconds) => {
          const point = seconds === null ? null : at(line.points, seconds);
          value.textContent = seconds === null ? usual : point?.[1] == null ? "" : amount(point[1], chart.unit);
        });
        return make("span", {}, key(line.ink), line.name, value);
      });
      if (chart.limit !== undefined) legend.push(make("span", {}, make("i", { class: "key limit" }), "headroom begins"));
      all.append(row((time) => strip(chart, time, marked), make("b", {}, chart.title), ...legend, ...(chart.note ? [make("small", {}, chart.note)] : [])));
    }
    all.append(row(timeAxis));
  }
  const places = all.getElementsByClassName("place"), cursors = [];
  let time = new Time(run.seconds, 0);
  const point = (seconds) => {
    for (const say of tell) say(seconds);
    for (const cursor of cursors) cursor.hidden = seconds === null;
    now.hidden = seconds === null;
    if (seconds === null) return;
    for (const cursor of cursors) cursor.style.left = `${time.x(seconds)}px`;
    const near = (span) => span.from - 3 * time.pixel <= seconds && seconds <= span.to + 3 * time.pixel;
    const faults = marked.kinds.flatMap(({ kind, spans }) => spans.filter(near).map((span) => (span.what ? `${kind}: ${span.what}` : kind)));
    now.replaceChildren(make("b", {}, clock(seconds)), ` ${faults.slice(0, 3).join(" · ")}`);
  };
  for (const place of places) {
    place.addEventListener("pointermove", (event) => point(time.at(event.clientX - place.getBoundingClientRect().left)));
  }
  all.addEventListener("pointerleave", () => point(null));
  fit(places[0], (width) => {
    time = new Time(run.seconds, width);
    for (const draw of redraw) draw(time);
    cursors.length = 0;
    for (const place of places) {
      const cursor = make("i", { class: "cursor" });
      place.append(cursor);
      cursors.push(cursor);
    }
    point(null);
  });
  return [section("Over time", marked.kinds.length > 0 ? "a shade is a fault of the node, for as long as it lasts" : "", all, now)];
}

function table(head, rows) {
  return make("table", {}, ...(head ? [make("thead", {}, make("tr", {}, ...head.map((cell) => make("th", {}, cell))))] : []), make("tbody", {}, ...rows));
}

function numbers(page) {
  const calls = make("div", { class: "card calls" }, table(page.call_head, page.calls.map((cells) => make("tr", {}, ...cells.map((cell) => make("td", {}, cell))))));
  const groups = page.groups.map((group) => make("div", { class: "card" }, make("h3", {}, group.title), table(null, group.lines.map((line) =>
    make("tr", line.bad ? { class: "bad" } : {}, make("td", {}, line.name), make("td", line.value === "kept" ? { class: "kept" } : {}, line.value))))));
  return section("In numbers", "", calls, make("div", { class: "groups" }, ...groups));
}

function fold(title, ...children) {
  return make("details", { class: "card" }, make("summary", {}, title), ...children);
}

function folds(page) {
  const { run } = page, all = [];
  const faults = marks(run, page.at_once).kinds.flatMap(({ kind, ink, spans }) => spans.map((span) => ({ kind, ink, ...span }))).sort((a, b) => a.from - b.from);
  if (faults.length > 0) {
    all.push(fold("The faults of the node, one by one", table(["at", "fault", "for", ""], faults.slice(0, mostListed).map(({ kind, ink, from, to, what, open }) =>
      make("tr", {}, make("td", {}, clock(from)), make("td", {}, key(ink), kind),
        make("td", {}, open ? "until the end" : to > from ? amount((to - from) * 1000, "ms") : ""), make("td", {}, what)))),
    ...(faults.length > mostListed ? [make("p", { class: "note" }, `... and ${faults.length - mostListed} more`)] : [])));
  }
  if (run.workload.yaml) all.push(fold("The workload", make("pre", {}, run.workload.yaml)));
  return all;
}

const page = JSON.parse(document.getElementById("run").textContent);
head(page);
document.querySelector("main").replaceChildren(...stories(page), tiles(page), ...deadlines(page), ...overTime(page), numbers(page), ...folds(page));
