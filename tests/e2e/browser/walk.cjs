// A person who walks through pages in Chromium, for `chromium.cjs serve`; given are URL, STEPS, WIDTH and SCHEME.
//
// STEPS is an array of arrays:
//   ["goto", PATH]  ["see", TEXT, MS]  ["gone", TEXT, MS]  ["click", SELECTOR]  ["type", SELECTOR, TEXT]  ["press", KEY]  ["focus", SELECTOR]
//   ["follow", SELECTOR]  goes where a link leads, also one that opens a window of its own.
//   ["choose", SELECTOR, VALUE]  ["text", SELECTOR]  ["count", SELECTOR]  ["wide"]  ["axe"]  ["path"]  ["cookies"]  ["markup"]
//   ["label", SELECTOR]  tells what a part is called for who cannot see it, ["lines", SELECTOR] the texts of all such parts.
//   ["looks", MS]  tells how often the page was asked for anew in that time.
//   ["signal"]  waits until the test has done something meanwhile.
//   ["back"]  goes back to the page before.
//   ["hold", METHOD]  keeps all requests of a method on the way, as a slow line does, until ["release", METHOD].
//   ["lacks", SELECTOR, TEXT, MS]  waits until a part does not say that any more.
// `see`, `gone` and `lacks` wait so long at the most, and tell how many milliseconds it took. What each step tells is in what is told at
// the end: {told: [...], wrong: what the console, the policy or a dialog said, elsewhere: requests to other hosts}.
"use strict";
const { readFileSync } = require("node:fs");

// `held` has the requests by the methods that are held.
async function hold(page, held, method) {
  if (!held.size) {
    page.on("request", (request) => held.get(request.method())?.push(request) ?? request.continue());
    await page.setRequestInterception(true);
  }
  held.set(method, []);
}

function release(held, method) {
  const waiting = held.get(method);
  held.set(method, undefined);
  return Promise.all(waiting.map((request) => request.continue())).then(() => undefined);
}

// Asked again and again from here: a wait inside of the page ends without a word when the page gives way to another as it begins.
async function until(page, holds, text, most = 10_000) {
  const began = Date.now();
  const asked = () => page.evaluate(holds, text).catch(() => false);
  while (!(await asked())) {
    if (Date.now() - began > most) {
      throw new Error(`${text}: not so after ${most} ms; the page says: ${await page.evaluate(() => document.body.innerText)}`);
    }
    await new Promise((done) => setTimeout(done, 20));
  }
  return Date.now() - began;
}

async function axe(page, packages) {
  await page.evaluate(readFileSync(require.resolve("axe-core/axe.min.js", { paths: [`${packages}/node_modules`] }), "utf8"));
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return found.violations
    .filter((each) => ["serious", "critical"].includes(each.impact))
    .map((each) => `${each.id}: ${each.nodes.map((node) => node.html.slice(0, 120)).join(" | ")}`);
}

async function step(page, { packages, url, held, signal }, [deed, first, second, third]) {
  switch (deed) {
    case "goto":
      return (await page.goto(url + first, { waitUntil: "load" })).status();
    case "follow": {
      const link = await page.waitForSelector(first, { timeout: 10_000 });
      return (await page.goto(await link.evaluate((each) => each.href), { waitUntil: "load" })).status();
    }
    case "see":
      return until(page, (text) => document.body.innerText.includes(text), first, second);
    case "gone":
      return until(page, (text) => !document.body.innerText.includes(text), first, second);
    case "lacks":
      return until(page, ([part, text]) => !document.querySelector(part)?.innerText.includes(text), [first, second], third);
    case "click":
      return page.click(first);
    case "submit":
      return Promise.all([page.waitForNavigation(), page.click(first)]).then(([answer]) => answer.status());
    case "type":
      return page.type(first, second);
    case "focus":
      return page.focus(first);
    case "press":
      return page.keyboard.press(first);
    case "choose":
      return page.select(first, second).then(() => undefined);
    case "text":
      return page.$eval(first, (part) => part.innerText);
    case "label":
      return page.$eval(first, (part) => part.getAttribute("aria-label"));
    case "lines":
      return page.$$eval(first, (parts) => parts.map((part) => part.textContent));
    case "count":
      return page.$$eval(first, (parts) => parts.length);
    case "wide":
      return page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
    case "axe":
      return axe(page, packages);
    case "path":
      return page.evaluate(() => location.pathname + location.search);
    case "cookies":
      return (await page.cookies()).map(({ name, httpOnly, sameSite, path }) => ({ name, httpOnly, sameSite, path }));
    case "markup":
      return page.evaluate(() => {
        try {
          document.body.innerHTML = "x";
          return "markup was made of a text";
        } catch (error) {
          return error.name;
        }
      });
    case "looks": {
      const asked = () => page.evaluate((to) => performance.getEntriesByType("resource").filter((each) => each.initiatorType === "xmlhttprequest" && each.name === to).length, page.url());
      const before = await asked();
      await new Promise((done) => setTimeout(done, first));
      return (await asked()) - before;
    }
    case "back":
      return page.goBack({ waitUntil: "load" }).then(() => undefined);
    case "hold":
      return hold(page, held, first);
    case "release":
      return release(held, first);
    case "signal":
      return signal().then(() => undefined);
    default:
      throw new Error(`no such step: ${deed}`);
  }
}

async function run(page, packages, [url, steps, width, scheme], signal) {
  const around = { packages, url, held: new Map(), signal };
  const [wrong, elsewhere, told] = [[], [], []];
  page.on("console", (message) => {
    const isPage = message.text().startsWith("Failed to load resource") && message.location().url === page.url(); // its status is told
    if (["error", "warning"].includes(message.type()) && !isPage) wrong.push(message.text());
  });
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("dialog", (dialog) => wrong.push(`dialog: ${dialog.message()}`) && dialog.dismiss());
  page.on("request", (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith("data:")) elsewhere.push(request.url());
  });
  await page.setViewport({ width: Number(width), height: 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  for (const each of steps) {
    const before = wrong.length;
    told.push((await step(page, around, each)) ?? null);
    if (each[0] === "markup") wrong.length = before; // that is said of the attempt
  }
  return { told, wrong, elsewhere };
}

module.exports = { run };
