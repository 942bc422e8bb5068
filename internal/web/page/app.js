import { key } from "./key.js";

const answer = await fetch("/session", { headers: { "Katbox-Page": key } });
document.querySelector("p").textContent = answer.ok ? "Namespace " + (await answer.json()).namespace : await answer.text();
