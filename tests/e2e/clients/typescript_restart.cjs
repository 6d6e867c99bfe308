// Both official TypeScript clients before and after the end of a daemon: `node typescript_restart.cjs PACKAGES URL KIND`.
// Prints what a call gave, waits for a line, and prints what the same call gives then.
"use strict";
const { once } = require("node:events");
const { connected, run } = require("./typescript.cjs");

const [packages, url, kind] = process.argv.slice(2);

async function report() {
  const { client } = await connected({ packages, url, kind }, {}, () => {});
  const given = { tool_path: "growing:echo", arguments: { text: "hello" } };
  const call = async () => (await client.callTool({ name: "execute_mcp_tool", arguments: given })).content[0].text;
  console.log(JSON.stringify({ text: await call() }));
  await once(process.stdin, "data");
  const text = await call();
  await client.close();
  return { text };
}

run(report, 60_000);
