// Keeps a page up to date: it takes new parts of the same page, and puts them where the old ones are. Every text was
// escaped by the daemon; nothing here makes markup of a text (Trusted Types forbid it).
const PAUSE_MS = 250; // between two looks in a storm of events, and the less the fewer were made of late
const EARN_MS = 300; // in which another look is earned
const MOST_LOOKS = 4; // so many are saved up: what happens after a quiet time is seen at once
const CALLS_MS = 1000; // between two looks where nothing happens but calls
const CALLED = "event: mcp.tool.executed";
const LOOK_MS = 5000; // where nothing is told
const MOST_MS = 30000;
const LEAVE_MS = 30000; // in which another page comes once this one is left, or it never does
const bar = document.getElementById("live");
const said = document.getElementById("said");
// A page that shows what is shown once: an answer, what became of a form, a token that was made. Another look would take it away.
const once = document.querySelector("input[type=password][autofocus], #try .answer, .once, [data-once]") !== null;
let stream, timer, calls, lookedAt = 0, tries = 0, looking = false, again = false, looks = MOST_LOOKS, earnedAt = performance.now(), leftAt = -Infinity;

function tell(text, wrong = false) {
  said.textContent = text;
  said.classList.toggle("wrong", wrong);
}

function show(word, on) {
  bar.textContent = word;
  bar.classList.toggle("on", on);
  bar.classList.toggle("off", !on);
}

// A whole document, without running anything of it: the parser of a request is none of a page.
function load(address) {
  return new Promise((done, fail) => {
    const asked = new XMLHttpRequest();
    asked.open("GET", address);
    asked.responseType = "document";
    asked.timeout = 15000;
    asked.onload = () => (asked.status === 200 && asked.responseXML ? done(asked.responseXML) : fail(asked.status));
    asked.onerror = asked.ontimeout = () => fail(0);
    asked.send();
  });
}

// Makes `old` what `fresh` is and leaves alone what is the same, so that focus, selection and open details stay.
function morph(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) return old.replaceWith(fresh);
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return undefined;
  }
  if (old.isEqualNode(fresh) || old.dataset?.keep !== undefined) return undefined;
  for (const { name, value } of [...fresh.attributes]) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !["open", "aria-sort", "disabled", "data-sent"].includes(name)) old.removeAttribute(name);
  }
  if (old.nodeName === "SELECT") return renew(old, fresh);
  if (["INPUT", "TEXTAREA"].includes(old.nodeName)) return undefined;
  const keyed = new Map([...old.children].filter(key).map((each) => [key(each), each]));
  const kept = new Set();
  let at = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const name = key(wanted);
    const there = name ? keyed.get(name) : at && !key(at) ? at : undefined;
    const same = there?.nodeName === wanted.nodeName ? there : undefined;
    document.adoptNode(wanted);
    if (same) {
      keyed.delete(name);
      kept.add(same);
      if (same === at) at = at.nextSibling;
      else if (!busy(old)) old.insertBefore(same, at);
      morph(same, wanted);
    } else {
      old.insertBefore(wanted, at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    if (!kept.has(at)) at.remove();
    at = next;
  }
  return undefined;
}

// Which part this is, wherever it stands. A form is what it does: a button whose order is under way is never left on
// another one, where it would say the one and do the other.
function key(part) {
  const id = part.getAttribute?.("id") ?? "";
  if (part.nodeName !== "FORM") return id;
  const sent = [...part.querySelectorAll("input[type=hidden]:not([name=token])")];
  return [id, part.getAttribute("action"), ...sent.flatMap((each) => [each.name, each.getAttribute("value")])].join("\n");
}

// Gives a choice what there is to choose now. What was chosen stays, unless it was sent.
function renew(old, fresh) {
  const chosen = old.form?.dataset.sent === undefined ? old.value : undefined;
  old.replaceChildren(...[...fresh.childNodes].map((each) => document.adoptNode(each)));
  if ([...old.options].some((each) => each.value === chosen)) old.value = chosen;
}

// Rows keep their places while somebody points at them.
const busy = (part) => part.matches(":hover") || part.contains(document.activeElement);

// How long to wait until the next look.
function pause() {
  const now = performance.now();
  looks = Math.min(MOST_LOOKS, Math.max(0, looks + (now - earnedAt) / EARN_MS));
  earnedAt = now;
  return PAUSE_MS * (1 - looks / MOST_LOOKS);
}

// Who has sent a form is about to see what became of it: what this page is of may be gone by then, and is not looked for.
addEventListener("beforeunload", () => {
  leftAt = performance.now();
});
addEventListener("pageshow", () => {
  leftAt = -Infinity; // and whoever comes back to it sees it again
});

function isSeen() {
  return !document.hidden && performance.now() - leftAt > LEAVE_MS;
}

async function look() {
  if (!isSeen() || once) return;
  if (looking) {
    again = true;
    return;
  }
  looking = true;
  again = false;
  looks -= 1;
  lookedAt = performance.now();
  try {
    const fresh = await load(location.href);
    const main = fresh.getElementById("main");
    if (main) morph(document.getElementById("main"), document.adoptNode(main));
    for (const sent of document.querySelectorAll("form[data-sent]")) delete sent.dataset.sent;
    document.title = fresh.title;
    document.body.dataset.now = fresh.body.dataset.now;
    const badge = fresh.querySelector("header nav");
    if (badge) morph(document.querySelector("header nav"), badge);
    sortAgain();
    show("live", true);
    tries = 0;
  } catch (status) {
    if ([401, 403, 421].includes(status)) show("signed out: load the page again", false);
    else if (status === 404) show("not there any more: load the page again", false);
    else show(`offline, as of ${new Date().toTimeString().slice(0, 8)}`, false);
    tries += 1;
  }
  setTimeout(() => {
    looking = false;
    if (again) look();
  }, pause());
}

function wait() {
  clearTimeout(timer);
  const pause = tries ? Math.min(MOST_MS, 1000 * 2 ** tries) * (0.5 + Math.random()) : LOOK_MS;
  timer = setTimeout(async () => {
    await look();
    listen();
    wait();
  }, pause);
}

// Calls may be thousands a second, and are shown as sums.
function lookAtCalls() {
  calls ??= setTimeout(() => {
    calls = undefined;
    look();
  }, Math.max(0, lookedAt + CALLS_MS - performance.now()));
}

// Whatever the stream of events tells is a reason to look. A page that nobody sees gives it up: a browser opens few
// connections to one host.
async function listen() {
  if (document.hidden || once || stream) return;
  const mine = (stream = new AbortController());
  try {
    const answer = await fetch("/api/events?brief=true&here=true", { headers: { accept: "text/event-stream" }, signal: mine.signal });
    const reader = answer.ok ? answer.body.pipeThrough(new TextDecoderStream()).getReader() : undefined;
    let begun = "";
    for (let part = await reader?.read(); part && !part.done; part = await reader.read()) {
      const lines = (begun + part.value).split("\n");
      begun = lines.pop();
      for (const line of lines.filter((each) => each.startsWith("event:"))) line === CALLED ? lookAtCalls() : look();
    }
  } catch {
    // `wait` looks again, and listens again
  }
  if (stream === mine) stream = undefined;
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    stream?.abort();
    stream = undefined;
    return;
  }
  look();
  listen();
});

// Orders: one at a time, and what became of it stands on the page.
document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches("[data-order]")) return;
  event.preventDefault();
  const button = form.querySelector("button");
  if (button.disabled) return;
  button.disabled = true;
  const name = button.textContent;
  button.textContent = `${name} …`;
  try {
    const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)), headers: { accept: "application/json" } });
    const told = await answer.json().catch(() => ({}));
    tell(told.message ?? told.error?.message ?? `The daemon answered ${answer.status}.`, !answer.ok);
    if (answer.ok) {
      form.reset(); // what was typed was for this one: a key must not go to the next person, too
      form.dataset.sent = "";
    }
    if (told.url) {
      const link = document.createElement("a");
      link.href = told.url;
      link.target = "_blank";
      link.rel = "noopener noreferrer";
      link.textContent = " Go there";
      if (["http:", "https:"].includes(link.protocol)) said.append(link);
    }
  } catch {
    tell("The daemon does not answer.", true);
  }
  button.disabled = false;
  button.textContent = name;
  look();
});

// Tables are sorted by a button in the head; the choice stays while the page is open, and where it is come back to.
const sorted = new Map(history.state?.sorted);

function value(row, column) {
  const cell = row.children[column];
  const text = cell?.dataset.sort ?? cell?.textContent.trim() ?? "";
  const number = Number.parseFloat(text.replaceAll(",", ""));
  return Number.isNaN(number) ? text.toLowerCase() : number;
}

function sort(table, column, down) {
  const rows = [...table.tBodies[0].rows];
  const order = (a, b) => (a === b ? 0 : typeof a !== typeof b ? (typeof a === "number" ? 1 : -1) : a < b ? -1 : 1);
  rows.sort((a, b) => order(value(a, column), value(b, column)) * (down ? -1 : 1));
  rows.forEach((row, place) => table.tBodies[0].rows[place] !== row && table.tBodies[0].insertBefore(row, table.tBodies[0].rows[place]));
  [...table.tHead.rows[0].cells].forEach((cell, place) => {
    if (place === column) cell.setAttribute("aria-sort", down ? "descending" : "ascending");
    else cell.removeAttribute("aria-sort");
  });
}

function sortAgain() {
  for (const table of document.querySelectorAll("table.sortable")) {
    dress(table);
    const wanted = sorted.get(table.closest("[id]")?.id);
    if (wanted && !busy(table.tBodies[0])) sort(table, ...wanted); // while the head is pointed at, rows have moved
  }
}

function dress(table) {
  [...table.tHead.rows[0].cells].forEach((cell, column) => {
    if (cell.firstElementChild || cell.dataset.orders !== undefined) return;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = cell.textContent;
    button.onclick = () => {
      const down = cell.getAttribute("aria-sort") !== "descending";
      sorted.set(table.closest("[id]")?.id, [column, down]);
      history.replaceState({ ...history.state, sorted: [...sorted] }, "");
      sort(table, column, down);
    };
    cell.replaceChildren(button);
    cell.dataset.keep = "";
  });
}

const KEYS = { o: "/ui", s: "/ui/servers", t: "/ui/tools", c: "/ui/calls", u: "/ui/usage", q: "/questions" };
let went = false;
document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") {
    const search = document.querySelector("input[type=search]");
    if (search) {
      search.focus();
      event.preventDefault();
    }
  } else if (went && KEYS[event.key]) {
    location.href = KEYS[event.key];
  }
  went = event.key === "g";
});

sortAgain();
for (const log of document.querySelectorAll("pre.log")) log.scrollTop = log.scrollHeight; // the newest is at its end
if (once) bar.hidden = true;
else {
  show("live", true);
  listen();
  wait();
}
