// A server of the official TypeScript SDK 2.x that tells and asks everything, in both eras:
// `node typescript_2.cjs PACKAGES stdio|http`. Over HTTP the first line is the port, which the system chose.
//
// Its tools ask by incomplete results; for legacy clients the SDK makes requests of them.
"use strict";
const { createRequire } = require("node:module");
const { createServer } = require("node:http");
const { randomUUID } = require("node:crypto");

const [packages, transport] = process.argv.slice(2);
const load = createRequire(`${packages}/package.json`);
const { McpServer, createMcpHandler, inputRequired, isLegacyRequest } = load("@modelcontextprotocol/server");
const { serveStdio } = load("@modelcontextprotocol/server/stdio");
const { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } = load("@modelcontextprotocol/node");
const { z } = load("zod");

const MEMO = "memo://one";
const ADDRESS = "https://example.com/open";
const PATIENCE_MS = 10_000;

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

// What asks: once for the request, and again for the answer.
function offerQuestions(server) {
  const asking = (name, request, told) =>
    server.registerTool(name, {}, async (ctx) => {
      const answer = ctx.mcpReq.inputResponses?.answer;
      return answer ? text(told(answer)) : inputRequired({ inputRequests: { answer: request } });
    });
  const form = inputRequired.elicit({
    message: "What is your name?",
    requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
  });
  asking("ask_form", form, ({ action, content }) => (action === "accept" ? `accept ${content.name}` : action));
  const address = inputRequired.elicitUrl({ message: "Please open it", url: ADDRESS });
  asking("ask_address", address, ({ action }) => action);
  const said = { role: "user", content: { type: "text", text: "Capital of France?" } };
  asking("ask_sample", inputRequired.createMessage({ messages: [said], maxTokens: 10 }), ({ content }) => content.text);
  asking("ask_roots", inputRequired.listRoots(), ({ roots }) => roots.map(({ uri }) => uri).join(" "));
}

function offerWork(server) {
  const tell = (ctx, progress) => {
    const params = { progressToken: ctx.mcpReq._meta?.progressToken, progress };
    return params.progressToken === undefined ? undefined : ctx.mcpReq.notify({ method: "notifications/progress", params });
  };
  server.registerTool("work", {}, async (ctx) => {
    for (const step of [1, 2, 3]) await tell(ctx, step);
    return text("worked");
  });
  server.registerTool("say", {}, async (ctx) => {
    for (const level of ["debug", "info", "warning", "error"]) await ctx.mcpReq.log(level, `said as ${level}`);
    return text("said");
  });
  server.registerTool("hang", { inputSchema: z.object({ key: z.string() }) }, async ({ key }, ctx) => {
    ctx.mcpReq.signal.addEventListener("abort", () => whenAbandoned(key).set("yes"));
    await tell(ctx, 1);
    return new Promise(() => {});
  });
  server.registerTool("was_abandoned", { inputSchema: z.object({ key: z.string() }) }, async ({ key }) => {
    const late = new Promise((done) => setTimeout(done, PATIENCE_MS, "no"));
    return text(await Promise.race([whenAbandoned(key).promise, late]));
  });
}

// `tell` reaches whoever listens in the modern era; in the legacy one the SDK leaves subscriptions to the server.
function offerMemo(server, era, tell) {
  server.registerResource("memo", MEMO, {}, async () => ({ contents: [{ uri: MEMO, text: memos.at(-1) }] }));
  server.registerTool("write", { inputSchema: z.object({ text: z.string() }) }, async ({ text: said }) => {
    memos.push(said);
    if (era === "modern") await tell(server);
    for (const subscriber of subscribers) await subscriber.sendResourceUpdated({ uri: MEMO });
    return text(said);
  });
  if (era === "modern") return;
  server.server.setRequestHandler("resources/subscribe", () => {
    subscribers.add(server.server);
    return {};
  });
  server.server.setRequestHandler("resources/unsubscribe", () => {
    subscribers.delete(server.server);
    return {};
  });
}

function made(era, tell) {
  const capabilities = { logging: {}, resources: { subscribe: true } };
  const server = new McpServer({ name: "everything", version: "1" }, { capabilities });
  offerQuestions(server);
  offerWork(server);
  offerMemo(server, era, tell);
  return server;
}

// Both eras at one address: a server for each modern request, one for each legacy session.
function listen() {
  const tell = () => modern.notify.resourceUpdated(MEMO);
  const modern = createMcpHandler(({ era }) => made(era, tell), { legacy: "reject" });
  const answer = toNodeHandler(modern);
  const sessions = new Map();
  const legacy = async (request, response, body) => {
    let session = sessions.get(request.headers["mcp-session-id"]);
    if (!session) {
      session = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => void sessions.set(id, session),
      });
      await made("legacy", tell).connect(session);
    }
    await session.handleRequest(request, response, body);
  };
  const http = createServer(async (request, response) => {
    const chunks = await request.toArray();
    const body = chunks.length ? JSON.parse(Buffer.concat(chunks).toString()) : undefined;
    const old = await isLegacyRequest(await toWebRequest(request, body), body);
    await (old ? legacy : answer)(request, response, body);
  });
  http.listen(0, "127.0.0.1", () => console.log(http.address().port));
}

if (transport === "http") listen();
else serveStdio(({ era }) => made(era, (server) => server.server.sendResourceUpdated({ uri: MEMO })));
