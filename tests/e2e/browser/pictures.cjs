// Takes pictures of pages: node pictures.cjs PACKAGES DIRECTORY URL WIDTH SCHEME PATH... --names NAME... writes NAME-SCHEME.png.
"use strict";
const { join } = require("node:path");
const { finish, launch } = require("./chromium.cjs");

const [packages, directory, url, width, scheme, ...rest] = process.argv.slice(2);
const at = rest.indexOf("--names");
const [paths, names] = [rest.slice(0, at), rest.slice(at + 1)];

async function run() {
  const { browser, missing } = await launch(packages);
  if (missing) return { missing };
  const page = await browser.newPage();
  await page.setViewport({ width: Number(width), height: 760 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  for (const [place, path] of paths.entries()) {
    await page.goto(url + path, { waitUntil: "load" });
    await new Promise((done) => setTimeout(done, 400)); // for the word at the top
    await page.screenshot({ path: join(directory, `${names[place]}-${scheme}.png`) });
  }
  await browser.close();
}

finish(run(), 100_000);
