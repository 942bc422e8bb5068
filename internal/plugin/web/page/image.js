// Files that are images. The browser takes one from the other origin, which sends it as an image and as
// nothing else. It decodes an image to four bytes for each pixel, so that a small file may take all memory.

import { ticket } from "./api.js";
import { el } from "./dom.js";
import { count } from "./format.js";
import { notice } from "./problem.js";

// mostPixels bounds the images that are shown.
export const mostPixels = 60_000_000;

function begins(bytes, text, at = 0) {
  return [...text].every((c, i) => bytes[at + i] === c.charCodeAt(0));
}

// imageType names the kind of an image; "" for all other files. An SVG is none: it may have scripts.
export function imageType(bytes) {
  if (begins(bytes, "\x89PNG\r\n\x1a\n")) return "PNG";
  if (begins(bytes, "\xff\xd8\xff")) return "JPEG";
  if (begins(bytes, "GIF87a") || begins(bytes, "GIF89a")) return "GIF";
  if (begins(bytes, "RIFF") && begins(bytes, "WEBPVP8", 8)) return "WebP";
  return "";
}

// imageSize returns the width and the height of an image; null if its first bytes do not tell.
export function imageSize(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    switch (imageType(bytes)) {
      case "PNG":
        return [view.getUint32(16), view.getUint32(20)];
      case "GIF":
        return [view.getUint16(6, true), view.getUint16(8, true)];
      case "JPEG":
        return sizeOfJPEG(view);
      case "WebP":
        return sizeOfWebP(bytes, view);
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error; // cut off
  }
  return null;
}

// A JPEG is a row of segments: a marker, a length, data. Those from C0 to CF begin a picture, except three.
function sizeOfJPEG(view) {
  for (let at = 2; ; at += 2 + view.getUint16(at + 2)) {
    while (view.getUint8(at) === 0xff && view.getUint8(at + 1) === 0xff) at++;
    const marker = view.getUint8(at + 1);
    if (view.getUint8(at) !== 0xff) return null;
    if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)) return [view.getUint16(at + 7), view.getUint16(at + 5)];
  }
}

function sizeOfWebP(bytes, view) {
  if (begins(bytes, "VP8X", 12)) return [1 + (view.getUint32(24, true) & 0xffffff), 1 + (view.getUint32(26, true) >>> 8)];
  if (begins(bytes, "VP8L", 12)) {
    const bits = view.getUint32(21, true);
    return [1 + (bits & 0x3fff), 1 + ((bits >>> 14) & 0x3fff)];
  }
  return [view.getUint16(26, true) & 0x3fff, view.getUint16(28, true) & 0x3fff];
}

export class ImageView {
  constructor(file) {
    this.file = file;
    this.root = el("div", { class: "picture" });
    this.tools = [];
  }

  async begin() {
    const [width, height] = imageSize(this.file.first) ?? [0, 0];
    if (width * height > mostPixels) {
      this.#cannot("This image is too large for a browser", [`It has ${count(width)} × ${count(height)} pixels. Download it.`]);
      return;
    }
    try {
      const { url } = await ticket(this.file.id, this.file.ref, "image");
      if (this.ended) return;
      const img = el("img", { alt: `The image ${this.file.name}`, referrerpolicy: "no-referrer" });
      img.addEventListener("load", () => this.file.say(`${count(img.naturalWidth)} × ${count(img.naturalHeight)} pixels`));
      img.addEventListener("error", () => this.#cannot("The browser cannot show this image",
        ["It may be damaged, or cut off. See it as hexadecimal numbers, or download it."]));
      img.src = url;
      this.root.replaceChildren(img);
    } catch (problem) {
      this.file.failed(problem);
    }
  }

  #cannot(title, texts) {
    this.file.say("");
    this.root.replaceChildren(notice("warning", title, texts));
  }

  end() {
    this.ended = true;
  }
}
