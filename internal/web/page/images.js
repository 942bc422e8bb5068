// Which files are images, and how large they are, by their first bytes. Browsers decode an image to four
// bytes for each pixel, so that a small file may take all memory.

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
