// All lists of a door as both official TypeScript clients read them: `node typescript_lists.cjs PACKAGES URL KIND` prints
// how many entries each has. A client refuses a list as a whole if one entry of it is not as the protocol has it.
"use strict";
const { connected, run } = require("./typescript.cjs");

const packages = process.argv[2];

async function report(url, kind) {
  const { client } = await connected({ packages, url, kind }, {}, () => undefined);
  const pages = async (method, name) => {
    const entries = [];
    let cursor;
    do {
      const page = await client[method](cursor === undefined ? undefined : { cursor });
      entries.push(...page[name]);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return entries.length;
  };
  const found = {
    tools: await pages("listTools", "tools"),
    resources: await pages("listResources", "resources"),
    templates: await pages("listResourceTemplates", "resourceTemplates"),
    prompts: await pages("listPrompts", "prompts"),
  };
  await client.close();
  return found;
}

run(report);
