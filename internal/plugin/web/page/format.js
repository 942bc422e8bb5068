// How numbers and times are written. The forms are those of Katbox's other programs.

const units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

// size writes a number of bytes with two or more digits of it: 980 MiB, 1.2 GiB.
export function size(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  if (bytes < 1024) return `${bytes} B`;
  let value = bytes / 1024;
  let unit = 0;
  // 1023.5 KiB would be rounded to 1024 KiB.
  while (value >= 1023.5 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${value < 9.95 ? value.toFixed(1) : value.toFixed(0)} ${units[unit]}`;
}

// count writes a number with separators between thousands.
export function count(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

// counted writes how many things there are: "1 file", "2,000 files".
export function counted(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

// notNodes stand among the nodes of a list without being one.
export const notNodes = ["the archive", "pools on arrays"];

const day = 86_400;

// span writes a duration in its largest unit and the next one, rounded down: 2d23h, 11h59m. Minutes and
// seconds stand alone, and so do many days.
export function span(milliseconds) {
  const all = Math.max(0, Math.floor(milliseconds / 1000));
  const two = (unit, name, part, partName) => {
    const rest = Math.floor((all % unit) / part);
    return `${Math.floor(all / unit)}${name}${rest > 0 ? `${rest}${partName}` : ""}`;
  };
  if (all < 120) return `${all}s`;
  if (all < 120 * 60) return `${Math.floor(all / 60)}m`;
  if (all < 2 * day) return two(3600, "h", 60, "m");
  return all < 10 * day ? two(day, "d", 3600, "h") : `${Math.floor(all / day)}d`;
}

const second = { __proto__: null, y: 31_536_000, w: 604_800, d: 86_400, h: 3600, m: 60, s: 1 };

// seconds reads a duration as the cluster writes it: 12h, 1d16h; NaN if it is none.
export function seconds(text) {
  if (!/^([0-9]+[ywdhms])+$/.test(text)) return NaN;
  return [...text.matchAll(/([0-9]+)(.)/g)].reduce((sum, [, n, unit]) => sum + n * second[unit], 0);
}

// ago says how long ago a time is. Times are milliseconds since 1970, NaN if they are not known.
export function ago(time, now) {
  return Number.isNaN(time) ? "–" : `${span(now - time)} ago`;
}

// left says how long a volume is still kept; sooner, that it may go earlier.
export function left(expires, now, sooner) {
  if (Number.isNaN(expires)) return "–";
  if (expires <= now) return "expires now";
  return sooner ? `${span(expires - now)} or less` : span(expires - now);
}

// share is how much of a volume's time is left, between 0 and 1.
export function share(retained, expires, now) {
  const whole = expires - retained;
  return whole > 0 ? Math.min(1, Math.max(0, (expires - now) / whole)) : 0;
}

// moment writes a time of a day in the reader's time zone: 2026-11-22 14:03:05.
export function moment(time) {
  if (Number.isNaN(time)) return "–";
  const d = new Date(time);
  const two = (n) => String(n).padStart(2, "0");
  const day = `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
  return `${day} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

const types = { __proto__: null, directory: "d", symlink: "l", fifo: "p", socket: "s", block: "b", char: "c" };

// mode writes the mode of an entry as ls does: "0640" of a file is -rw-r-----.
export function mode(type, octal) {
  if (!octal) return "";
  const bits = parseInt(octal, 8);
  let text = types[type] ?? "-";
  for (const [shift, special, letter] of [[6, 0o4000, "s"], [3, 0o2000, "s"], [0, 0o1000, "t"]]) {
    const three = bits >> shift;
    text += three & 4 ? "r" : "-";
    text += three & 2 ? "w" : "-";
    if (bits & special) text += three & 1 ? letter : letter.toUpperCase();
    else text += three & 1 ? "x" : "-";
  }
  return text;
}
