// Elements are made here alone. Text becomes text nodes, so nothing that a pod wrote is ever read as
// HTML, and the Content-Security-Policy forbids inline styles and handlers.

const svgNamespace = "http://www.w3.org/2000/svg";

// el makes an element. A property "on" holds listeners, "class" and others are attributes; false,
// null and undefined leave an attribute out, true sets it empty. Children are nodes or texts.
export function el(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else if (value !== false && value !== null && value !== undefined) {
      node.setAttribute(name, value === true ? "" : value);
    }
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

// The shapes of icons, 16 by 16.
const shapes = {
  directory: "M1.5 3.5a1 1 0 0 1 1-1h3.6l1.6 1.7h5.8a1 1 0 0 1 1 1v7.3a1 1 0 0 1-1 1h-11a1 1 0 0 1-1-1z",
  file: "M3.5 1.5h5.2l3.8 3.8v9.2h-9zM8.7 1.5v3.8h3.8",
  symlink: "M3.5 1.5h5.2l3.8 3.8v9.2h-9zM5.5 11.5c0-2 1.2-2.9 3.6-2.9M7.6 6.8l1.9 1.8-1.9 1.8",
  other: "M8 1.8l5.4 3.1v6.2L8 14.2l-5.4-3.1V4.9zM8 6v2.5M8 10.5v.3",
  refresh: "M13.3 6.3A5.6 5.6 0 1 0 13.6 8.7M13.5 2.8v3.6H9.9",
  download: "M8 2v8M4.7 7 8 10.3 11.3 7M2.5 13.5h11",
  trash: "M2.5 4.5h11M6 4.5v-2h4v2M4 4.5l.6 9h6.8l.6-9",
  link: "M6.5 9.5l3-3M7 4.6l1.3-1.3a3.1 3.1 0 0 1 4.4 4.4L11.4 9M9 11.4l-1.3 1.3a3.1 3.1 0 0 1-4.4-4.4L4.6 7",
  copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
  pin: "M9.7 1.8l4.5 4.5-2.3.5-2.6 2.6-.4 3.2-5.5-5.5 3.2-.4 2.6-2.6zM6 10l-4 4",
  release: "M8 10V2M4.7 5 8 1.7 11.3 5M2.5 9v4.5h11V9",
  group: "M2 3.5h12M5 8h9M5 12.5h9M2 8h.1M2 12.5h.1",
  down: "M4.5 6.5 8 10l3.5-3.5",
  failed: "M8 1a7 7 0 1 0 0 14A7 7 0 1 0 8 1zM5.4 5.4l5.2 5.2M10.6 5.4l-5.2 5.2",
  succeeded: "M8 1a7 7 0 1 0 0 14A7 7 0 1 0 8 1zM4.7 8.3l2.3 2.3 4.4-4.9",
  stopped: "M8 1a7 7 0 1 0 0 14A7 7 0 1 0 8 1zM5.8 5.8h4.4v4.4H5.8z",
  unknown: "M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13zM5.5 8h5",
  warning: "M8 2l6.5 11.5h-13zM8 6.5v3M8 11.3v.4",
};

// icon makes a picture that says nothing to screen readers: the text beside it does.
export function icon(name) {
  const node = document.createElementNS(svgNamespace, "svg");
  const shape = document.createElementNS(svgNamespace, "path");
  shape.setAttribute("d", shapes[name]);
  return fill(node, { class: `icon icon-${name}`, viewBox: "0 0 16 16", "aria-hidden": "true", focusable: "false" }, [shape]);
}

// away says that the program behind the page has ended.
let away = false;

// setAway says so, or that it is there again: buttons that ask it for something can be pressed only then.
export function setAway(is) {
  away = is;
  for (const node of document.querySelectorAll("button.asks")) node.disabled = away;
}

// button makes a button with an icon, or without if there is none. asks says that it asks the program for
// something.
export function button(text, press, { icon: shape, asks = false, ...props } = {}) {
  if (asks) Object.assign(props, { class: `${props.class ?? ""} asks`, disabled: away });
  return el("button", { type: "button", on: { click: press }, ...props }, shape && icon(shape), el("span", {}, text));
}

// writable reports whether keys that are typed at a node go into a field.
export function writable(node) {
  return node instanceof HTMLElement && node.matches("input:not([type=checkbox], [type=radio]), textarea, select");
}
