// What both official TypeScript clients hear and are asked before an answer:
// `node typescript_conversation.cjs PACKAGES URL KIND` prints a report as JSON.
"use strict";
const { connected, run } = require("./typescript.cjs");

const packages = process.argv[2];
const TOO_LATE_MS = 1_000; // longer than the daemon waits for an answer to `hasty`

const logs = [];

async function answered(request) {
  const message = request.params.message;
  if (message === "[hasty] too late") await new Promise((done) => setTimeout(done, TOO_LATE_MS));
  return message === "[talkative] decline" ? { action: "decline" } : { action: "accept", content: { name: "Ada" } };
}

async function report(url, kind) {
  logs.length = 0;
  const { client } = await connected({ packages, url, kind }, { capabilities: { elicitation: {} } }, (made, types) => {
    const heard = ({ params }) => void logs.push(params.level);
    made.setRequestHandler(types ? types.ElicitRequestSchema : "elicitation/create", answered);
    made.setNotificationHandler(types ? types.LoggingMessageNotificationSchema : "notifications/message", heard);
  });
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
  for (const message of ["accept", "decline"]) found[message] = JSON.parse(await execute("talkative:ask", { message }));
  found["too late"] = JSON.parse(await execute("hasty:ask", { message: "too late" }));
  logs.length = 0;
  if (kind === "sdk" || kind === "default") {
    await client.setLoggingLevel("error");
    await execute("talkative:work");
    found.errors = [...logs];
  }
  await client.close();
  return found;
}

run(report);
