// A server of the official TypeScript SDK 2.x that tells and asks everything, in both eras:
// `node typescript_2.cjs PACKAGES stdio|http`. Over HTTP the first line is the port, which the system chose.
//
// Its tools ask by incomplete results; for legacy clients the SDK makes requests of them.
"use strict";
const { createRequire } = require("node:module");
const { createServer } = require("node:http");
const everything = require("./everything.cjs");

const [packages, transport] = process.argv.slice(2);
const load = createRequire(`${packages}/package.json`);
const { McpServer, completable, createMcpHandler, inputRequired, isLegacyRequest } = load("@modelcontextprotocol/server");
const { serveStdio } = load("@modelcontextprotocol/server/stdio");
const { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } = load("@modelcontextprotocol/node");
const { z } = load("zod");

const { ADDRESS, CAPABILITIES, FORM, INFO, MEMO, SAMPLE, TOOLS, told } = everything;
const SDK = {
  completable,
  object: (shape) => z.object(shape),
  string: () => z.string(),
  of: ({ mcpReq }) => ({
    token: mcpReq._meta?.progressToken,
    signal: mcpReq.signal,
    notify: mcpReq.notify,
    log: mcpReq.log,
  }),
};

// What asks: once for the request, and again for the answer.
function offerQuestions(server) {
  const asking = (name, request, tell) =>
    server.registerTool(name, {}, async (ctx) => {
      const answer = ctx.mcpReq.inputResponses?.answer;
      return answer ? tell(answer) : inputRequired({ inputRequests: { answer: request } });
    });
  asking("ask_form", inputRequired.elicit({ message: "What is your name?", requestedSchema: FORM }), told.form);
  asking("ask_address", inputRequired.elicitUrl({ message: "Please open it", url: ADDRESS }), told.address);
  asking("ask_sample", inputRequired.createMessage(SAMPLE), told.sample);
  asking("ask_sample_with_tools", inputRequired.createMessage({ ...SAMPLE, ...TOOLS }), told.sampleWithTools);
  asking("ask_roots", inputRequired.listRoots(), told.roots);
}

// `tell` reaches whoever listens in the modern era.
function made(era, tell) {
  const server = new McpServer(INFO, { capabilities: CAPABILITIES });
  offerQuestions(server);
  everything.offerWork(server, SDK);
  everything.offerMemo(server, SDK, () => (era === "modern" ? tell(server) : undefined));
  everything.offerJourney(server, SDK);
  if (era === "legacy") everything.offerSubscriptions(server, "resources/subscribe", "resources/unsubscribe");
  return server;
}

// Both eras at one address: a server for each modern request, one for each legacy session.
function listen() {
  const tell = () => modern.notify.resourceUpdated(MEMO);
  const modern = createMcpHandler(({ era }) => made(era, tell), { legacy: "reject" });
  const answer = toNodeHandler(modern);
  const legacy = everything.bySession(NodeStreamableHTTPServerTransport, (session) => made("legacy", tell).connect(session));
  const http = createServer(async (request, response) => {
    const chunks = await request.toArray();
    const body = chunks.length ? JSON.parse(Buffer.concat(chunks).toString()) : undefined;
    const old = await isLegacyRequest(await toWebRequest(request, body), body);
    await (old ? legacy : answer)(request, response, body);
  });
  everything.serve(http);
}

if (transport === "http") listen();
else serveStdio(({ era }) => made(era, (server) => server.server.sendResourceUpdated({ uri: MEMO })));
