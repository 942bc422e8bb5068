// An image. The browser takes it from the other origin, which sends it as an image and as nothing else.

import { ticket } from "./api.js";
import { el } from "./dom.js";
import { count } from "./format.js";
import { imageSize, mostPixels } from "./images.js";
import { notice } from "./notice.js";

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
      const url = await ticket(this.file.id, this.file.ref, "image");
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
