// What the servers of both TypeScript SDKs tell and offer in the same way; each asks, and listens, in its own.
"use strict";
const { randomUUID } = require("node:crypto");

const INFO = { name: "everything", version: "1" };
const CAPABILITIES = { logging: {}, resources: { subscribe: true } };
const MEMO = "memo://one";
const ADDRESS = "https://example.com/open";
const PATIENCE_MS = 10_000;
const FORM = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
const QUESTION = { role: "user", content: { type: "text", text: "Capital of France?" } };
const SAMPLE = { messages: [QUESTION], maxTokens: 10 };
const COUNTRY = { type: "object", properties: { country: { type: "string" } }, required: ["country"] };
const TOOLS = { tools: [{ name: "capital_of", inputSchema: COUNTRY }], toolChoice: { mode: "required" } };
const TOWNS = { France: ["Lyon", "Paris"], Poland: ["Poznan"] };

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

// What is told of the answers to questions; of a sample with tools which one, on what, by which choice.
const told = {
  form: ({ action, content }) => text(action === "accept" ? `accept ${content.name}` : action),
  address: ({ action }) => text(action),
  sample: ({ content }) => text(content.text),
  sampleWithTools: ({ content: [use] }) => text(`${use.type} ${use.id} ${use.name} ${use.input.country}`),
  roots: ({ roots }) => text(roots.map(({ uri }) => uri).join(" ")),
};

// `of(context)` names what both SDKs give to a tool: `token`, `signal`, `notify` and `log`. `schema` is of its arguments.
function offerWork(server, { object, string, of }) {
  const tell = ({ token, notify }, progress) =>
    token === undefined ? undefined : notify({ method: "notifications/progress", params: { progressToken: token, progress } });
  server.registerTool("work", {}, async (context) => {
    for (const step of [1, 2, 3]) await tell(of(context), step);
    return text("worked");
  });
  server.registerTool("say", {}, async (context) => {
    for (const level of ["debug", "info", "warning", "error"]) await of(context).log(level, `said as ${level}`);
    return text("said");
  });
  const inputSchema = object({ key: string() });
  server.registerTool("hang", { inputSchema }, async ({ key }, context) => {
    of(context).signal.addEventListener("abort", () => whenAbandoned(key).set("yes"));
    await tell(of(context), 1);
    return new Promise(() => {});
  });
  server.registerTool("was_abandoned", { inputSchema }, async ({ key }) => {
    const late = new Promise((done) => setTimeout(done, PATIENCE_MS, "no"));
    return text(await Promise.race([whenAbandoned(key).promise, late]));
  });
}

// `tell()` tells those who listen in the modern era.
function offerMemo(server, { object, string }, tell) {
  server.registerResource("memo", MEMO, {}, async () => ({ contents: [{ uri: MEMO, text: memos.at(-1) }] }));
  server.registerTool("write", { inputSchema: object({ text: string() }) }, async ({ text: said }) => {
    memos.push(said);
    await tell();
    for (const subscriber of subscribers) await subscriber.sendResourceUpdated({ uri: MEMO });
    return text(said);
  });
}

// Subscriptions of the legacy era, which both SDKs leave to the server; the names are those of the two requests.
function offerSubscriptions(server, subscribe, unsubscribe) {
  server.server.setRequestHandler(subscribe, () => {
    subscribers.add(server.server);
    return {};
  });
  server.server.setRequestHandler(unsubscribe, () => {
    subscribers.delete(server.server);
    return {};
  });
}

function offerJourney(server, { object, string, completable }) {
  const towns = (begun, { arguments: chosen }) => TOWNS[chosen.country].filter((town) => town.startsWith(begun));
  const argsSchema = object({ country: string(), town: completable(string(), towns) });
  server.registerPrompt("journey", { argsSchema }, ({ country, town }) => {
    return { messages: [{ role: "user", content: { type: "text", text: `Plan a journey to ${town} in ${country}.` } }] };
  });
}

// Returns what answers requests of legacy sessions: one server and one transport for each, as the SDKs have it.
function bySession(Transport, connect) {
  const sessions = new Map();
  return async (request, response, body) => {
    let session = sessions.get(request.headers["mcp-session-id"]);
    if (!session) {
      session = new Transport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => void sessions.set(id, session),
      });
      await connect(session);
    }
    await session.handleRequest(request, response, body);
  };
}

function serve(http) {
  http.listen(0, "127.0.0.1", () => console.log(http.address().port));
}

module.exports = {
  ADDRESS,
  CAPABILITIES,
  FORM,
  INFO,
  MEMO,
  SAMPLE,
  TOOLS,
  bySession,
  offerJourney,
  offerMemo,
  offerSubscriptions,
  offerWork,
  serve,
  told,
};
