// The Chromium that .ci/clients.sh installs, for the tests and for the diagrams of the site (docs/diagram.cjs).
//
// node chromium.cjs PACKAGES unpacks it, starts and ends it; it fails with the reason where Chromium does not start.
"use strict";
const { createRequire } = require("node:module");
const { resolve } = require("node:path");
const { pathToFileURL } = require("node:url");

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
  setTimeout(() => process.exit(1), deadline_ms).unref();
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

module.exports = { launch, finish };
if (require.main === module) finish(probe(process.argv[2]), 60_000);
