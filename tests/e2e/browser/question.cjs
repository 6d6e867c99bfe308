// A person in Chromium: opens the page of a question, types what it is told to, and sends it.
//
// node question.cjs PACKAGES PAGE STEPS, where STEPS is JSON: [["type", NAME, TEXT], ["choose", NAME, VALUE],
// ["check", NAME, VALUE], ["send"], ["decline"], ["leave", PATH, BODY]]; who leaves sends a form whose page is long in coming:
// the question is answered meanwhile, by BODY to PATH. Prints what the browser showed after each step that sends, as JSON.
"use strict";
const { finish, launch } = require("./chromium.cjs");

const DEADLINE_MS = 60_000;
const LOOKED_MS = 1_500; // a page that was told of something has looked again long before
const [packages, address, steps] = process.argv.slice(2);

async function played(page) {
  const shown = [];
  for (const [deed, name, value] of JSON.parse(steps)) {
    const input = `[name="field.${name}"]`;
    if (deed === "type") await page.type(input, value);
    else if (deed === "choose") await page.select(input, value);
    else if (deed === "check") await page.click(`${input}[value="${value}"]`);
    else if (deed === "leave") {
      await page.evaluate(
        async (path, body) => {
          dispatchEvent(new Event("beforeunload"));
          await fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body });
        },
        name,
        value,
      );
      await new Promise((done) => setTimeout(done, LOOKED_MS));
    }
    else {
      const [answer] = await Promise.all([
        page.waitForNavigation(),
        page.click(`button[value=${deed === "send" ? "accept" : "decline"}]`),
      ]);
      shown.push({ status: answer.status(), text: await page.$eval("body", (body) => body.innerText) });
    }
  }
  return shown;
}

async function run() {
  const { browser, missing } = await launch(packages);
  if (missing) return { missing };
  const page = await browser.newPage();
  const trouble = [];
  page.on("console", (message) => trouble.push(message.text()));
  page.on("dialog", (dialog) => trouble.push(dialog.message()));
  await page.goto(address);
  const bold = await page.$$eval("main b, main h1", (all) => all.map((each) => each.textContent));
  const shown = await played(page);
  await browser.close();
  return { bold, shown, trouble };
}

finish(run(), DEADLINE_MS);
