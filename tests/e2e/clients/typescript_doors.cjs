// Both official TypeScript clients at any door: `node typescript_doors.cjs PACKAGES URL KIND PREFIX` prints a report as JSON.
//
// PREFIX stands before the names of the tools `echo` and `grow`.
"use strict";
const { connected, run } = require("./typescript.cjs");

const packages = process.argv[2];

async function report(url, kind, prefix) {
  let resolve;
  const changed = new Promise((done) => (resolve = done));
  const listChanged = { tools: { autoRefresh: false, onChanged: () => resolve("tools changed") } };
  const options = kind === "sdk" ? {} : { listChanged };
  const { client, transport, version } = await connected({ packages, url, kind }, options, (made, types) => {
    if (!types) return;
    made.setNotificationHandler(types.ToolListChangedNotificationSchema, ({ method }) => resolve(method));
  });
  const use = (name, args) => client.callTool({ name: prefix + name, arguments: args });
  const text = (result) => result.content[0].text;
  const names = async () => (await client.listTools()).tools.map((tool) => tool.name);
  const found = {
    version,
    server: client.getServerVersion().name,
    tools: await names(),
    echoed: text(await use("echo", { text: "hello" })),
  };
  try {
    found.wrong = { told: (await use("no_such", {})).isError };
  } catch (error) {
    found.wrong = { code: error.code, text: error.message };
  }
  found.sprout = prefix + text(await use("grow", {}));
  found.notified = await changed;
  found.after = await names();
  if (transport.terminateSession && transport.sessionId) await transport.terminateSession();
  await client.close();
  return found;
}

run(report);
