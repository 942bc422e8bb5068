// An image. The browser takes it from the other origin, which sends it as an image and as nothing else.

import { ticket } from "./api.js";
import { el } from "./dom.js";
import { count } from "./format.js";
import { notice } from "./notice.js";

export class ImageView {
  constructor(file) {
    this.file = file;
    this.root = el("div", { class: "picture" });
    this.tools = [];
  }

  async begin() {
    try {
      const url = await ticket(this.file.id, this.file.ref, "image");
      if (this.ended) return;
      const img = el("img", { alt: `The image ${this.file.name}`, referrerpolicy: "no-referrer" });
      img.addEventListener("load", () => this.file.say(`${count(img.naturalWidth)} × ${count(img.naturalHeight)} pixels`));
      img.addEventListener("error", () => this.root.replaceChildren(
        notice("warning", "The browser cannot show this image", ["It may be damaged, or cut off. See it as hexadecimal numbers, or download it."])));
      img.src = url;
      this.root.replaceChildren(img);
    } catch (problem) {
      this.file.failed(problem);
    }
  }

  end() {
    this.ended = true;
  }
}
