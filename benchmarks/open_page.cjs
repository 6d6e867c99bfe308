// Keeps pages open in Chromium, and tells what they hold: node open_page.cjs PACKAGES URL SECONDS PAGE...
//
// Prints a line of JSON every SECONDS, after a collection of garbage, for all pages together: {heap: bytes of JavaScript,
// nodes, documents, listeners, looks: requests of pages so far, wrong: what their consoles said}. It ends with its stdin.
"use strict";
const { launch } = require("../tests/e2e/browser/chromium.cjs");

const [packages, url, seconds, ...paths] = process.argv.slice(2);

async function read(sessions) {
  const sum = { heap: 0, nodes: 0, documents: 0, listeners: 0 };
  for (const session of sessions) {
    await session.send("HeapProfiler.collectGarbage");
    const { metrics } = await session.send("Performance.getMetrics");
    const value = (name) => metrics.find((each) => each.name === name).value;
    sum.heap += value("JSHeapUsedSize");
    sum.nodes += value("Nodes");
    sum.documents += value("Documents");
    sum.listeners += value("JSEventListeners");
  }
  return sum;
}

async function run() {
  const { browser, missing } = await launch(packages);
  if (missing) throw new Error(missing);
  const [sessions, wrong] = [[], []];
  let looks = 0;
  for (const path of paths) {
    const page = await browser.newPage();
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && wrong.push(message.text()));
    page.on("pageerror", (error) => wrong.push(String(error)));
    page.on("request", (request) => (looks += request.url() === url + path));
    await page.goto(url + path, { waitUntil: "load" });
    const session = await page.createCDPSession();
    await session.send("Performance.enable");
    sessions.push(session);
  }
  process.stdin.on("end", () => browser.close().then(() => process.exit(0))).resume();
  for (;;) {
    console.log(JSON.stringify({ ...(await read(sessions)), looks, wrong }));
    await new Promise((done) => setTimeout(done, 1000 * Number(seconds)));
  }
}

run().catch((error) => {
  console.error(error);
  process.exit(1);
});
