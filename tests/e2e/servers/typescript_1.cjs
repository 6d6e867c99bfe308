// A server of the official TypeScript SDK 1.x that tells and asks everything:
// `node typescript_1.cjs PACKAGES stdio|http`. Over HTTP the first line is the port, which the system chose.
"use strict";
const { createRequire } = require("node:module");
const { createServer } = require("node:http");
const { randomUUID } = require("node:crypto");

const [packages, transport] = process.argv.slice(2);
const load = createRequire(`${packages}/package.json`);
const { McpServer } = load("@modelcontextprotocol/sdk/server/mcp.js");
const { StdioServerTransport } = load("@modelcontextprotocol/sdk/server/stdio.js");
const { StreamableHTTPServerTransport } = load("@modelcontextprotocol/sdk/server/streamableHttp.js");
const types = load("@modelcontextprotocol/sdk/types.js");
const { z } = load("zod");

const MEMO = "memo://one";
const ADDRESS = "https://example.com/open";
const PATIENCE_MS = 10_000;
const FORM = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };

const memos = ["nothing"];
const subscribers = new Set();
const abandoned = new Map();

function whenAbandoned(key) {
  if (!abandoned.has(key)) {
    const event = {};
    event.promise = new Promise((done) => (event.set = done));
    abandoned.set(key, event);
  }
  return abandoned.get(key);
}

const text = (said) => ({ content: [{ type: "text", text: said }] });

// What asks: over HTTP a question goes with its call, by `relatedRequestId`.
function offerQuestions(server) {
  const ask = (extra, method, params, schema) => extra.sendRequest({ method, params }, schema);
  server.registerTool("ask_form", {}, async (extra) => {
    const params = { message: "What is your name?", requestedSchema: FORM };
    const { action, content } = await ask(extra, "elicitation/create", params, types.ElicitResultSchema);
    return text(action === "accept" ? `accept ${content.name}` : action);
  });
  server.registerTool("ask_address", {}, async (extra) => {
    const params = { mode: "url", message: "Please open it", url: ADDRESS, elicitationId: "one" };
    return text((await ask(extra, "elicitation/create", params, types.ElicitResultSchema)).action);
  });
  server.registerTool("ask_sample", {}, async (extra) => {
    const messages = [{ role: "user", content: { type: "text", text: "Capital of France?" } }];
    const params = { messages, maxTokens: 10 };
    return text((await ask(extra, "sampling/createMessage", params, types.CreateMessageResultSchema)).content.text);
  });
  server.registerTool("ask_roots", {}, async (extra) => {
    const { roots } = await ask(extra, "roots/list", undefined, types.ListRootsResultSchema);
    return text(roots.map(({ uri }) => uri).join(" "));
  });
}

function offerWork(server) {
  const tell = (extra, progress) => {
    const params = { progressToken: extra._meta?.progressToken, progress };
    return params.progressToken === undefined ? undefined : extra.sendNotification({ method: "notifications/progress", params });
  };
  server.registerTool("work", {}, async (extra) => {
    for (const step of [1, 2, 3]) await tell(extra, step);
    return text("worked");
  });
  server.registerTool("say", {}, async (extra) => {
    for (const level of ["debug", "info", "warning", "error"]) {
      const params = { level, data: `said as ${level}` };
      await extra.sendNotification({ method: "notifications/message", params });
    }
    return text("said");
  });
  server.registerTool("hang", { inputSchema: { key: z.string() } }, async ({ key }, extra) => {
    extra.signal.addEventListener("abort", () => whenAbandoned(key).set("yes"));
    await tell(extra, 1);
    return new Promise(() => {});
  });
  server.registerTool("was_abandoned", { inputSchema: { key: z.string() } }, async ({ key }) => {
    const late = new Promise((done) => setTimeout(done, PATIENCE_MS, "no"));
    return text(await Promise.race([whenAbandoned(key).promise, late]));
  });
}

function offerMemo(server) {
  server.registerResource("memo", MEMO, {}, async () => ({ contents: [{ uri: MEMO, text: memos.at(-1) }] }));
  server.registerTool("write", { inputSchema: { text: z.string() } }, async ({ text: said }) => {
    memos.push(said);
    for (const subscriber of subscribers) await subscriber.sendResourceUpdated({ uri: MEMO });
    return text(said);
  });
  server.server.setRequestHandler(types.SubscribeRequestSchema, () => {
    subscribers.add(server.server);
    return {};
  });
  server.server.setRequestHandler(types.UnsubscribeRequestSchema, () => {
    subscribers.delete(server.server);
    return {};
  });
}

function made() {
  const capabilities = { logging: {}, resources: { subscribe: true } };
  const server = new McpServer({ name: "everything", version: "1" }, { capabilities });
  offerQuestions(server);
  offerWork(server);
  offerMemo(server);
  return server;
}

// One server and one transport for each session, as the SDK has it.
function listen() {
  const sessions = new Map();
  const http = createServer(async (request, response) => {
    let session = sessions.get(request.headers["mcp-session-id"]);
    if (!session) {
      session = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => void sessions.set(id, session),
      });
      await made().connect(session);
    }
    await session.handleRequest(request, response);
  });
  http.listen(0, "127.0.0.1", () => console.log(http.address().port));
}

if (transport === "http") listen();
else made().connect(new StdioServerTransport());
