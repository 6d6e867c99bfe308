// Both official TypeScript clients: `node typescript_client.cjs PACKAGES URL KIND REPOSITORY` prints a report as JSON.
// KIND is "sdk" (@modelcontextprotocol/sdk 1.x), or what @modelcontextprotocol/client 2.x is to negotiate: "default",
// "auto", or a pinned revision.
"use strict";
const { createRequire } = require("node:module");

const [packages, url, kind, repository] = process.argv.slice(2);
const load = createRequire(`${packages}/package.json`);
const DEADLINE_MS = 30_000;

function deferred() {
  let resolve;
  const promise = new Promise((done) => (resolve = done));
  return { promise, resolve };
}

async function connected(changed) {
  const info = { name: "e2e", version: "1" };
  if (kind === "sdk") {
    const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
    const { StreamableHTTPClientTransport } = load("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const { ToolListChangedNotificationSchema } = load("@modelcontextprotocol/sdk/types.js");
    const client = new Client(info);
    client.setNotificationHandler(ToolListChangedNotificationSchema, (notification) => changed.resolve(notification.method));
    const transport = new StreamableHTTPClientTransport(new URL(url));
    await client.connect(transport);
    return { client, transport, version: transport.protocolVersion };
  }
  const { Client, StreamableHTTPClientTransport } = load("@modelcontextprotocol/client");
  const options = { listChanged: { tools: { autoRefresh: false, onChanged: () => changed.resolve("tools changed") } } };
  if (kind === "auto") options.versionNegotiation = { mode: "auto" };
  else if (kind !== "default") options.versionNegotiation = { mode: { pin: kind } };
  const client = new Client(info, options);
  const transport = new StreamableHTTPClientTransport(new URL(url));
  await client.connect(transport);
  return { client, transport, version: client.getNegotiatedProtocolVersion() };
}

async function report() {
  const changed = deferred();
  const { client, transport, version } = await connected(changed);
  const use = (name, args) => client.callTool({ name, arguments: args });
  const text = (result) => result.content[0].text;
  const execute = async (tool_path, args = {}) => text(await use("execute_mcp_tool", { tool_path, arguments: args }));

  const discovered = await use("discover_mcp_tools", { query: "what time is it in another timezone", limit: 5 });
  const found = {
    version,
    tools: (await client.listTools()).tools.map((tool) => tool.name),
    discovered: { structured: discovered.structuredContent, text: text(discovered) },
    time: await execute("time:get_current_time", { timezone: "Europe/Berlin" }),
    git: await execute("git:git_status", { repo_path: repository }),
    sqlite: await execute("sqlite:list_tables"),
    resource: text(await use("read_mcp_resource", { uri: "sqlite|memo://insights" })),
  };
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

setTimeout(() => {
  console.error("the client's deadline passed");
  process.exit(1);
}, DEADLINE_MS).unref();
report().then(
  (found) => {
    console.log(JSON.stringify(found));
    process.exit(0);
  },
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
