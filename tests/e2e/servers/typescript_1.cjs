// A server of the official TypeScript SDK 1.x that tells and asks everything:
// `node typescript_1.cjs PACKAGES stdio|http`. Over HTTP the first line is the port, which the system chose.
"use strict";
const { createRequire } = require("node:module");
const { createServer } = require("node:http");
const everything = require("./everything.cjs");

const [packages, transport] = process.argv.slice(2);
const load = createRequire(`${packages}/package.json`);
const { McpServer } = load("@modelcontextprotocol/sdk/server/mcp.js");
const { completable } = load("@modelcontextprotocol/sdk/server/completable.js");
const { StdioServerTransport } = load("@modelcontextprotocol/sdk/server/stdio.js");
const { StreamableHTTPServerTransport } = load("@modelcontextprotocol/sdk/server/streamableHttp.js");
const types = load("@modelcontextprotocol/sdk/types.js");
const { z } = load("zod");

const { ADDRESS, CAPABILITIES, FORM, INFO, SAMPLE, TOOLS, told } = everything;
const SDK = {
  completable,
  object: (shape) => shape,
  string: () => z.string(),
  of: ({ _meta, signal, sendNotification: notify }) => ({
    token: _meta?.progressToken,
    signal,
    notify,
    log: (level, data) => notify({ method: "notifications/message", params: { level, data } }),
  }),
};

// What asks: over HTTP a question goes with its call, by `relatedRequestId`.
function offerQuestions(server) {
  const asking = (name, method, params, schema, tell) =>
    server.registerTool(name, {}, async (extra) => tell(await extra.sendRequest({ method, params }, schema)));
  const form = { message: "What is your name?", requestedSchema: FORM };
  asking("ask_form", "elicitation/create", form, types.ElicitResultSchema, told.form);
  const address = { mode: "url", message: "Please open it", url: ADDRESS, elicitationId: "one" };
  asking("ask_address", "elicitation/create", address, types.ElicitResultSchema, told.address);
  const sample = "sampling/createMessage";
  asking("ask_sample", sample, SAMPLE, types.CreateMessageResultSchema, told.sample);
  const withTools = types.CreateMessageResultWithToolsSchema;
  asking("ask_sample_with_tools", sample, { ...SAMPLE, ...TOOLS }, withTools, told.sampleWithTools);
  asking("ask_roots", "roots/list", undefined, types.ListRootsResultSchema, told.roots);
}

function made() {
  const server = new McpServer(INFO, { capabilities: CAPABILITIES });
  offerQuestions(server);
  everything.offerWork(server, SDK);
  everything.offerMemo(server, SDK, () => {});
  everything.offerJourney(server, SDK);
  everything.offerSubscriptions(server, types.SubscribeRequestSchema, types.UnsubscribeRequestSchema);
  return server;
}

const answer = everything.bySession(StreamableHTTPServerTransport, (session) => made().connect(session));
if (transport === "http") everything.serve(createServer((request, response) => answer(request, response)));
else made().connect(new StdioServerTransport());
