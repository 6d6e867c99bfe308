// Draws Mermaid diagrams as SVG when the site is built: node diagram.cjs PACKAGES DIRECTORY < {FILE: TEXT}.
//
// Prints {missing: why Chromium does not start here}, or {}.
"use strict";
const { readFileSync, writeFileSync } = require("node:fs");
const { join } = require("node:path");
const { finish, launch } = require("../tests/e2e/browser/chromium.cjs");

const DEADLINE_MS = 100_000;
const [packages, directory] = process.argv.slice(2);
const modules = `${packages}/node_modules`;
const font = readFileSync(`${modules}/@fontsource/roboto/files/roboto-latin-400-normal.woff2`, "base64");
// Labels are as wide as the font in which they were measured: it goes with the picture.
const style = `@font-face { font-family: Roboto; src: url(data:font/woff2;base64,${font}) format("woff2"); }`;

// In the browser: the text of the SVG, of its own size, on white in whatever colours the page around it has.
async function draw(text, css) {
  await document.fonts.load("16px Roboto");
  const { mermaid } = globalThis;
  mermaid.initialize({
    startOnLoad: false,
    deterministicIds: true,
    theme: "neutral",
    fontFamily: "Roboto, sans-serif",
    themeVariables: { fontSize: "14px" },
    flowchart: { nodeSpacing: 10, rankSpacing: 36, padding: 6, diagramPadding: 2, subGraphTitleMargin: { top: 0, bottom: 12 } },
    sequence: { wrap: true, width: 125, actorMargin: 10, diagramMarginX: 0 },
  });
  const { svg } = await mermaid.render("diagram", text);
  document.body.innerHTML = svg;
  const root = document.querySelector("svg");
  const { width, height } = root.viewBox.baseVal;
  root.setAttribute("width", Math.ceil(width));
  root.setAttribute("height", Math.ceil(height));
  root.setAttribute("style", "background: white");
  root.prepend(Object.assign(document.createElementNS(root.namespaceURI, "style"), { textContent: css }));
  return new XMLSerializer().serializeToString(root);
}

async function run() {
  const { browser, missing } = await launch(packages);
  if (missing) return { missing };
  const page = await browser.newPage();
  await page.addStyleTag({ content: style });
  await page.addScriptTag({ path: `${modules}/@mermaid-js/tiny/dist/mermaid.tiny.js` });
  for (const [file, text] of Object.entries(JSON.parse(readFileSync(0, "utf8")))) {
    writeFileSync(join(directory, file), await page.evaluate(draw, text, style));
  }
  await browser.close();
  return {};
}

finish(run(), DEADLINE_MS);
