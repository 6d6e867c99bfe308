// What both official TypeScript clients hear and are asked before an answer:
// `node typescript_conversation.cjs PACKAGES URL KIND` prints a report as JSON. KIND as for typescript_client.cjs.
"use strict";
const { createRequire } = require("node:module");

const [packages, url, kind] = process.argv.slice(2);
const load = createRequire(`${packages}/package.json`);
const DEADLINE_MS = 30_000;
const TOO_LATE_MS = 2_000; // longer than the daemon waits for an answer

const logs = [];

async function answered(request) {
  const message = request.params.message;
  if (message === "too late") await new Promise((done) => setTimeout(done, TOO_LATE_MS));
  return message === "decline" ? { action: "decline" } : { action: "accept", content: { name: "Ada" } };
}

async function connected() {
  const info = { name: "e2e", version: "1" };
  const capabilities = { elicitation: {} };
  if (kind === "sdk") {
    const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
    const { StreamableHTTPClientTransport } = load("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const { ElicitRequestSchema, LoggingMessageNotificationSchema } = load("@modelcontextprotocol/sdk/types.js");
    const client = new Client(info, { capabilities });
    client.setRequestHandler(ElicitRequestSchema, answered);
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void logs.push(params.level));
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    return client;
  }
  const { Client, StreamableHTTPClientTransport } = load("@modelcontextprotocol/client");
  const options = { capabilities };
  if (kind === "auto") options.versionNegotiation = { mode: "auto" };
  else if (kind !== "default") options.versionNegotiation = { mode: { pin: kind } };
  const client = new Client(info, options);
  client.setRequestHandler("elicitation/create", answered);
  client.setNotificationHandler("notifications/message", ({ params }) => void logs.push(params.level));
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}

async function report() {
  const client = await connected();
  const progress = [];
  const onprogress = ({ progress: done }) => progress.push(done);
  const execute = async (tool_path, args = {}, options = {}) => {
    const given = { name: "execute_mcp_tool", arguments: { tool_path, arguments: args } };
    const found = kind === "sdk" ? await client.callTool(given, undefined, options) : await client.callTool(given, options);
    return found.content[0].text;
  };
  const found = { logging: Boolean(client.getServerCapabilities()?.logging) };
  found.worked = await execute("talkative:work", {}, { onprogress });
  found.progress = [...progress];
  found.unasked = [...logs];
  for (const message of ["accept", "decline", "too late"]) {
    found[message] = JSON.parse(await execute("talkative:ask", { message }));
  }
  logs.length = 0;
  if (kind === "sdk" || kind === "default") {
    await client.setLoggingLevel("error");
    await execute("talkative:work");
    found.errors = [...logs];
  }
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
