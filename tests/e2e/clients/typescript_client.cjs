// Both official TypeScript clients: `node typescript_client.cjs PACKAGES URL KIND REPOSITORY` prints a report as JSON.
"use strict";
const { connected, run } = require("./typescript.cjs");

const packages = process.argv[2];
const ONLY_READS = "execute_read_only_mcp_tool";

function deferred() {
  let resolve;
  const promise = new Promise((done) => (resolve = done));
  return { promise, resolve };
}

async function report(url, kind, repository) {
  const changed = deferred();
  const listChanged = { tools: { autoRefresh: false, onChanged: () => changed.resolve("tools changed") } };
  const options = kind === "sdk" ? {} : { listChanged };
  const { client, transport, version } = await connected({ packages, url, kind }, options, (made, types) => {
    if (!types) return;
    made.setNotificationHandler(types.ToolListChangedNotificationSchema, ({ method }) => changed.resolve(method));
  });
  const use = (name, args) => client.callTool({ name, arguments: args });
  const text = (result) => result.content[0].text;
  const execute = async (tool_path, args = {}) => text(await use("execute_mcp_tool", { tool_path, arguments: args }));

  const discovered = await use("discover_mcp_tools", { query: "what time is it in another timezone", limit: 5 });
  const { tools } = await client.listTools();
  const found = {
    version,
    tools: tools.map((tool) => tool.name),
    hints: tools.map((tool) => tool._meta),
    discovered: { structured: discovered.structuredContent, text: text(discovered) },
    time: await execute("time:get_current_time", { timezone: "Europe/Berlin" }),
    git: await execute("git:git_status", { repo_path: repository }),
    sqlite: await execute("sqlite:list_tables"),
    resource: text(await use("read_mcp_resource", { uri: "sqlite|memo://insights" })),
  };
  const berlin = { tool_path: "time:get_current_time", arguments: { timezone: "Europe/Berlin" } };
  const calls = [berlin, { tool_path: "sqlite:list_tables" }];
  found.together = (await use("execute_mcp_tool", { calls })).structuredContent.results;
  const needs = { query: "what time is it", queries: ["list the tables of a database"] };
  found.needs = (await use("discover_mcp_tools", needs)).structuredContent.tools;
  found.picked = text(await use("execute_mcp_tool", { ...berlin, pick: ["$.timezone"] }));
  if (found.tools.includes(ONLY_READS)) {
    found.read = text(await use(ONLY_READS, berlin));
    found.refused = text(await use(ONLY_READS, { tool_path: "growing:grow", arguments: {} }));
  }
  const wrong = await use("execute_mcp_tool", { tool_path: "time:no_such_tool", arguments: {} });
  found.failed = { told: wrong.isError, text: text(wrong), ...wrong.structuredContent };
  const sprout = await execute("growing:grow");
  found.notified = await changed.promise;
  const after = await use("discover_mcp_tools", { query: `growing:${sprout}` });
  found.grown = [`growing:${sprout}`, after.structuredContent.tools[0].tool_path];
  if (transport.terminateSession && transport.sessionId) await transport.terminateSession();
  await client.close();
  return found;
}

run(report);
