// A reader with a phone: opens every page of a site in Chromium, and measures what is wider than the screen.
//
// For `chromium.cjs serve`; given are the ADDRESS of its directory and WIDTH. Tells of each page:
// {page, sideways: whether all of it scrolls sideways,
// tables: those wider than what they stand in, loaded: the addresses of other hosts}.
"use strict";
const { readdirSync, readFileSync } = require("node:fs");
const { resolve } = require("node:path");
const { fileURLToPath, pathToFileURL } = require("node:url");

// The fonts of phones with Android: widths are the same on every machine that measures them.
function face(packages, name, weight) {
  const file = `${packages}/node_modules/@fontsource/${name}/files/${name}-latin-${weight}-normal.woff2`;
  const source = `url(data:font/woff2;base64,${readFileSync(file, "base64")})`;
  return `@font-face { font-family: ${name}; font-weight: ${weight}; src: ${source}; }`;
}
function styled(packages) {
  const faces = ["roboto", "roboto-mono"].flatMap((name) => [400, 700].map((weight) => face(packages, name, weight)));
  const stacks = "body { --font-stack: roboto; --font-stack--monospace: roboto-mono; }";
  return [...faces, stacks].join("\n");
}

// In the browser: what is too wide.
async function measure() {
  await Promise.all(["roboto", "roboto-mono"].flatMap((name) => ["", "bold "].map((weight) => document.fonts.load(`${weight}16px ${name}`))));
  const { scrollWidth, clientWidth } = document.querySelector(".content"); // it scrolls in place of the page
  const wide = [...document.querySelectorAll("table")].filter((each) => each.offsetWidth > each.parentElement.clientWidth);
  const said = (element) => element.textContent.replace("¶", "").trim();
  const name = (table) => {
    const heading = table.closest("section").querySelector("h1, h2, h3, h4, h5, h6");
    const [row] = table.rows;
    return `${said(heading)}: ${[...row.cells].map(said).join(" | ")}`;
  };
  return { sideways: scrollWidth > clientWidth, tables: wide.map(name) };
}

async function run(page, packages, [address, width]) {
  const directory = fileURLToPath(address);
  await page.setViewport({ width: Number(width), height: 844, isMobile: true, hasTouch: true });
  // Before the page has its first layout: looking for fonts that this machine has in place of those it names takes half of the time.
  await page.evaluateOnNewDocument((css) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(css);
    document.adoptedStyleSheets = [sheet];
  }, styled(packages));
  let loaded;
  page.on("request", (request) => {
    if (!/^(file|data|blob):/.test(request.url())) loaded.push(request.url());
  });
  const pages = [];
  for (const name of readdirSync(directory, { recursive: true }).sort()) {
    if (!name.endsWith(".html") || name === "index.html") continue; // the root only leads on
    loaded = [];
    await page.goto(pathToFileURL(resolve(directory, name)).href);
    pages.push({ page: name, ...(await page.evaluate(measure)), loaded });
  }
  return { pages };
}

module.exports = { run };
