// The Chromium that .ci/clients.sh installs, for the tests and for the diagrams of the site (docs/diagram.cjs).
//
// node chromium.cjs PACKAGES unpacks it, starts and ends it; it fails with the reason where Chromium does not start.
// node chromium.cjs PACKAGES serve starts it once for many: each line of stdin is JSON, {script, given}, and is answered by a
// line on stdout, {told: what `run(page, packages, given, signal)` of the script resolves to}, {missing: why Chromium does not
// start here} or {failed: the error}. Each has a new page, and finds no cookies, storage or cache of another one; the first that
// is given is an address. {signal: true} is for who asked to do something meanwhile; any line says that it is done. It ends with
// stdin.
"use strict";
const { createInterface } = require("node:readline");
const { createRequire } = require("node:module");
const { resolve } = require("node:path");
const { pathToFileURL } = require("node:url");

const DEADLINE_MS = 110_000; // of one line

// Starts the browser of a directory of packages: {browser}, or {missing: why it does not start here}.
async function launch(packages) {
  process.env.TMPDIR = resolve(packages); // what it unpacks goes there, too
  const load = createRequire(`${process.env.TMPDIR}/package.json`);
  const module_ = (name) => import(pathToFileURL(load.resolve(name)).href);
  const { default: chromium } = await module_("@sparticuz/chromium");
  const { default: puppeteer } = await module_("puppeteer-core");
  chromium.setGraphicsMode = false; // nothing here is drawn in three dimensions
  const args = [...chromium.args, "--no-sandbox", "--disable-gpu"];
  try {
    return { browser: await puppeteer.launch({ executablePath: await chromium.executablePath(), args, headless: "shell" }) };
  } catch (error) {
    return { missing: String(error).slice(0, 300) };
  }
}

// Ends this process with what `work` resolves to as JSON on stdout, or with its error.
function finish(work, deadline_ms) {
  if (deadline_ms) setTimeout(() => process.exit(1), deadline_ms).unref();
  work.then(
    (told) => {
      if (told !== undefined) console.log(JSON.stringify(told));
      process.exit(0);
    },
    (error) => {
      console.error(error);
      process.exit(1);
    },
  );
}

async function probe(packages) {
  const { browser, missing } = await launch(packages);
  if (missing) throw new Error(`Chromium does not start here: ${missing}`);
  await browser.close();
}

// Has the browser, which is one process and so has no further contexts, forget who was at an address.
async function forget(browser, empty, address) {
  for (const page of await browser.pages()) if (page !== empty) await page.close();
  const session = await empty.createCDPSession();
  await session.send("Network.clearBrowserCookies");
  await session.send("Network.clearBrowserCache");
  const { origin } = new URL(address);
  if (origin !== "null") await session.send("Storage.clearDataForOrigin", { origin, storageTypes: "all" });
  await session.detach();
}

async function serve(packages) {
  const { browser, missing } = await launch(packages);
  const [empty] = missing ? [] : await browser.pages();
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
  const signal = () => {
    say({ signal: true });
    return lines.next();
  };
  for (let line = await lines.next(); !line.done; line = await lines.next()) {
    if (missing) {
      say({ missing });
      continue;
    }
    const { script, given } = JSON.parse(line.value);
    const late = setTimeout(() => process.exit(1), DEADLINE_MS);
    const answer = await require(`./${script}`).run(await browser.newPage(), packages, given, signal).then(
      (told) => ({ told }),
      (error) => ({ failed: String(error.stack) }),
    );
    await forget(browser, empty, given[0]);
    clearTimeout(late);
    say(answer);
  }
  await browser?.close();
}

module.exports = { launch, finish };
if (require.main === module) {
  const [packages, how] = process.argv.slice(2);
  if (how === "serve") finish(serve(packages));
  else finish(probe(packages), 60_000);
}
