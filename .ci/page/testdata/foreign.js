// What a page of another origin can do with an address. Each function returns what it learned: a text
// with READ if that is more than that something is there.
({
  "fetch": (u) => fetch(u, { credentials: "include" }).then(async (a) => `READ ${a.status} ${await a.text()}`, String),
  "fetch with the header": (u) => fetch(u, { credentials: "include", headers: { "Katbox-Page": "1" } })
    .then(async (a) => `READ ${a.status} ${await a.text()}`, String),
  "fetch without CORS": (u) => fetch(u, { credentials: "include", mode: "no-cors" }).then(async (a) => a.type + await a.text(), String),
  "fetch DELETE": (u) => fetch(u, { credentials: "include", method: "DELETE" }).then((a) => `READ ${a.status}`, String),
  "fetch POST as a form": (u) => fetch(u, {
    credentials: "include", mode: "no-cors", method: "POST", headers: { "Content-Type": "text/plain" }, body: "{}",
  }).then((a) => a.type, String),
  "form": (u) => new Promise((done) => {
    const frame = document.createElement("iframe");
    const form = Object.assign(document.createElement("form"), { action: u, method: "POST", target: "sink" });
    frame.name = "sink";
    document.body.append(frame, form);
    frame.onload = () => { done("sent"); frame.remove(); form.remove(); };
    form.submit();
  }),
  "beacon": async (u) => String(navigator.sendBeacon(u, "x") && "sent"),
  "image": (u) => loaded(Object.assign(new Image(), { src: u }), (i) => `READ ${i.width}`),
  "script": (u) => loaded(Object.assign(document.createElement("script"), { src: u }), () => "READ"),
  "module": (u) => import(u).then(() => "READ", () => "refused"),
  "style": (u) => loaded(Object.assign(document.createElement("link"), { rel: "stylesheet", href: u }), () => "READ"),
  "object": (u) => loaded(Object.assign(document.createElement("object"), { data: u }), () => "loaded"),
  "frame": (u) => loaded(Object.assign(document.createElement("iframe"), { src: u }), (frame) => {
    try {
      return frame.contentDocument?.body?.innerText ? `READ ${frame.contentDocument.body.innerText}` : "closed";
    } catch (error) {
      return String(error);
    }
  }),
})
