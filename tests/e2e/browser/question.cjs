// A person in Chromium: opens the page of a question, types what it is told to, and sends it.
//
// For `chromium.cjs serve`; given are PAGE and STEPS: [["type", NAME, TEXT], ["choose", NAME, VALUE],
// ["check", NAME, VALUE], ["send"], ["decline"], ["leave", PATH, BODY]]; who leaves sends a form whose page is long in coming:
// the question is answered meanwhile, by BODY to PATH. Tells what the browser showed after each step that sends.
"use strict";

const LOOKED_MS = 1_500; // a page that was told of something has looked again long before

async function played(page, steps) {
  const shown = [];
  for (const [deed, name, value] of steps) {
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

async function run(page, packages, [address, steps]) {
  const trouble = [];
  page.on("console", (message) => trouble.push(message.text()));
  page.on("dialog", (dialog) => trouble.push(dialog.message()));
  await page.goto(address);
  const bold = await page.$$eval("main b, main h1", (all) => all.map((each) => each.textContent));
  const shown = await played(page, steps);
  return { bold, shown, trouble };
}

module.exports = { run };
