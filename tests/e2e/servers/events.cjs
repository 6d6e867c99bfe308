// A server of the official TypeScript SDK 2.x with events by handlers of its own (SEP-3415), in both eras, over stdio:
// `node events.cjs PACKAGES poll|push`. The tool `order` makes what happens; what happened is kept.
"use strict";
const { createRequire } = require("node:module");
const { setTimeout: wait } = require("node:timers/promises");

const [packages, mode] = process.argv.slice(2);
const load = createRequire(`${packages}/package.json`);
const { McpServer } = load("@modelcontextprotocol/server");
const { serveStdio } = load("@modelcontextprotocol/server/stdio");

const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";
const ANYTHING = { params: { "~standard": { version: 1, vendor: "e2e", validate: (value) => ({ value }) } } };
const TYPE = {
  name: "order.created",
  description: "Fires when somebody orders",
  delivery: [mode],
  inputSchema: { type: "object", properties: { above: { type: "integer" } } },
  payloadSchema: { type: "object", properties: { amount: { type: "integer" } } },
};
const happened = [];

function error(code, message, data) {
  return Object.assign(new Error(message), { code, data });
}

function since({ name, arguments: { above = 0 } = {}, cursor }) {
  if (name !== TYPE.name) throw error(-32023, "NotFound", { kind: "event" });
  const at = cursor ? Number(cursor) : happened.length;
  return happened.slice(at).filter(({ data }) => data.amount > above);
}

async function stream(params, { mcpReq }) {
  const tell = (what, said) =>
    mcpReq.notify({ method: `notifications/events/${what}`, params: { ...said, _meta: { [SUBSCRIPTION]: mcpReq.id } } });
  let cursor = params.cursor ?? String(happened.length);
  since({ ...params, cursor });
  await tell("active", { cursor, truncated: false });
  while (!mcpReq.signal.aborted) {
    for (const event of since({ ...params, cursor })) await tell("event", { ...event, cursor: event.data.at });
    cursor = String(happened.length);
    await wait(20);
  }
  return {};
}

serveStdio(() => {
  const extensions = { "io.modelcontextprotocol/events": { listChanged: false } };
  const server = new McpServer({ name: "events", version: "1" }, { capabilities: { extensions } });
  server.registerTool("order", { description: "Order for 7 and for 3." }, async () => {
    for (const amount of [7, 3]) {
      const at = String(happened.length + 1);
      happened.push({ eventId: `order-${at}`, name: TYPE.name, timestamp: new Date().toISOString(), data: { amount, at } });
    }
    return { content: [] };
  });
  const answer = (method, handler) => server.server.setRequestHandler(method, ANYTHING, handler);
  answer("events/list", async () => ({ events: [TYPE] }));
  if (mode === "push") answer("events/stream", stream);
  else
    answer("events/poll", async (params) => ({
      events: since(params),
      cursor: String(happened.length),
      truncated: false,
      hasMore: false,
      nextPollMs: 1000,
    }));
  return server;
});
