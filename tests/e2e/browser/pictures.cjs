// Takes pictures of pages: node pictures.cjs PACKAGES DIRECTORY URL WIDTH SCHEME PATH... writes NAME-SCHEME.png for each.
"use strict";
const { join } = require("node:path");
const { finish, launch } = require("./chromium.cjs");

const [packages, directory, url, width, scheme, ...paths] = process.argv.slice(2);

async function run() {
  const { browser, missing } = await launch(packages);
  if (missing) return { missing };
  const page = await browser.newPage();
  const wrong = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && wrong.push(message.text()));
  page.on("pageerror", (error) => wrong.push(String(error)));
  await page.setViewport({ width: Number(width), height: 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  const pictures = [];
  for (const path of paths) {
    await page.goto(url + path, { waitUntil: "load" });
    await new Promise((done) => setTimeout(done, 400));
    const name = `${path.replace(/^\/ui\/?/, "").replace(/[^a-z]+/g, "-").replace(/^-|-$/g, "") || "overview"}-${scheme}.png`;
    await page.screenshot({ path: join(directory, name), fullPage: true });
    pictures.push(name);
  }
  await browser.close();
  return { pictures, wrong };
}

finish(run(), 100_000);
