// Live updates, and nothing else: every page works without this file. A stream
// says when what is shown is out of date; then the parts that are get taken from
// the same page as it is now.
"use strict";
(() => {
  const again = 2000; // until a stream that ended is asked for anew
  const silence = 20000; // after which the line is dead, though nobody said so
  const header = { "Gatehouse-Live": "1" }; // such a request keeps no session alive
  const said = document.getElementById("live");
  const parts = () => [...document.querySelectorAll("[data-live]")];
  let known = null;
  let line = null; // the stream, while there is one
  let following = false;

  const read = (text) => {
    const [open, ...topics] = text.trim().split("\n");
    const stamp = new Map(topics.map((line) => [line.split(" ", 1)[0], line]));
    stamp.set("open", Number(open));
    return stamp;
  };

  // Whoever types or reads with the keyboard in a part keeps it as it is.
  const held = (part) => part.contains(document.activeElement);

  // A list keeps what stays, so that nothing moves under a finger or loses focus.
  const merge = (part, next) => {
    const wanted = new Map([...next.children].map((child) => [child.id, child]));
    for (const child of [...part.children]) {
      if (!wanted.has(child.id) && !child.contains(document.activeElement)) child.remove();
    }
    for (const [id, child] of wanted) {
      if (document.getElementById(id)) continue;
      child.classList.add("fresh");
      part.append(child);
    }
  };

  const refresh = async (changed) => {
    const answer = await fetch(location.href, { headers: header, redirect: "error" });
    if (!answer.ok) return;
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of parts()) {
      const fresh = next.getElementById(part.id);
      const watched = part.dataset.watch.split(" ").some((topic) => changed.has(topic));
      if (!fresh || !watched) continue;
      if (part.dataset.live === "list") merge(part, fresh);
      else if (!held(part)) part.replaceWith(fresh);
    }
    document.title = next.title;
    countDown();
  };

  const take = async (stamp) => {
    const before = known;
    known = stamp;
    if (said.dataset.lost) { said.textContent = ""; delete said.dataset.lost; }
    if (!before) return;
    const changed = new Set([...stamp.keys()].filter((topic) => stamp.get(topic) !== before.get(topic)));
    if (stamp.get("open") > before.get("open")) said.textContent = "A new question waits.";
    if (parts().some((part) => part.dataset.watch.split(" ").some((topic) => changed.has(topic)))) await refresh(changed);
  };

  const listen = async () => {
    const answer = await fetch("/console/live", { headers: header, redirect: "error", cache: "no-store", signal: line.signal });
    if (answer.status === 401) {
      location.reload(); // the session is over; the page that asks to sign in says so
      return;
    }
    if (answer.status === 503) throw new Error("Too many pages are open; this one is not kept up to date.");
    if (!answer.ok) throw new Error();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
      const dead = setTimeout(() => line.abort(), silence);
      const { value, done } = await reader.read();
      clearTimeout(dead);
      if (done) return;
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      const last = events.findLast((event) => event.startsWith("data: "));
      if (last) await take(read(last.replace(/^data: /gm, "")));
    }
  };

  // A page that nobody sees lets go of its stream: a browser has few connections.
  const follow = async () => {
    if (following) return;
    following = true;
    while (!document.hidden) {
      line = new AbortController();
      try {
        await listen();
      } catch (failure) {
        if (!document.hidden && !said.dataset.lost) {
          said.textContent = failure.name === "Error" && failure.message || "No connection to the gateway; what is shown may be out of date.";
          said.dataset.lost = "1";
        }
      }
      await new Promise((done) => setTimeout(done, again));
    }
    following = false;
  };

  const countDown = () => {
    for (const until of document.querySelectorAll("[data-until]")) {
      const left = Math.max(0, Math.round((Date.parse(until.dataset.until) - Date.now()) / 1000));
      const at = until.dataset.at ??= until.textContent;
      until.textContent = left > 0 ? `${at}, ${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")} left` : `${at}, over`;
    }
  };

  // What takes as long as a server takes says so, and is not sent twice.
  document.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (!button?.dataset.busy) return;
    setTimeout(() => { button.disabled = true; button.textContent = button.dataset.busy; }); // after the form took the button's value
  });
  window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

  countDown();
  setInterval(countDown, 1000);
  document.addEventListener("visibilitychange", () => (document.hidden ? line?.abort() : follow()));
  follow();
})();
