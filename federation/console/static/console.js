// Live updates, and nothing else: every page works without this file. It asks
// whether what is shown is out of date, and if so takes the parts that are from
// the same page as it is now.
"use strict";
(() => {
  const every = 2000;
  const header = { "Gatehouse-Live": "1" }; // such a request keeps no session alive
  const said = document.getElementById("live");
  const parts = () => [...document.querySelectorAll("[data-live]")];
  let known = null;
  let busy = false;

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

  const look = async () => {
    if (busy || document.hidden) return;
    busy = true;
    try {
      const answer = await fetch("/console/stamp", { headers: header, redirect: "error" });
      if (answer.status === 401) {
        location.reload(); // the session is over; the page that asks to sign in says so
        return;
      }
      if (!answer.ok) throw new Error(String(answer.status));
      const stamp = read(await answer.text());
      const before = known;
      known = stamp;
      if (said.dataset.lost) { said.textContent = ""; delete said.dataset.lost; }
      if (!before) return;
      const changed = new Set([...stamp.keys()].filter((topic) => stamp.get(topic) !== before.get(topic)));
      if (stamp.get("open") > before.get("open")) said.textContent = "A new question waits.";
      if (changed.size > 0 && parts().some((part) => part.dataset.watch.split(" ").some((topic) => changed.has(topic)))) await refresh(changed);
    } catch {
      if (!said.dataset.lost) { said.textContent = "No connection to the gateway; what is shown may be out of date."; said.dataset.lost = "1"; }
    } finally {
      busy = false;
    }
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
  setInterval(look, every);
  document.addEventListener("visibilitychange", look);
  look();
})();
