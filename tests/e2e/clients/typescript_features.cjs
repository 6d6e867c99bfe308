// Everything that a server may tell and ask, with both official TypeScript clients:
// `node typescript_features.cjs PACKAGES KIND META NAME=ADDRESS...` prints a report as JSON, as `features.py` does.
"use strict";
const { randomUUID } = require("node:crypto");
const { connected, run } = require("./typescript.cjs");

const [packages, kind, meta, ...named] = process.argv.slice(2);
const addresses = Object.fromEntries(named.map((each) => each.split(/=(.*)/s)));
const MEMO = "memo://one";
const LEVEL = "error";
const LOG_LEVEL = "io.modelcontextprotocol/logLevel";
const FEATURE_MS = 15_000;
const CLIENT_MS = 120_000;
const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} };
const CHOSEN = { country: "France" };
const TOWN = { ref: { type: "ref/prompt", name: "journey" }, argument: { name: "town", value: "P" }, context: { arguments: CHOSEN } };

// What the two generations name differently: requests and notifications by schema, or by method.
function handlers(types) {
  return types
    ? {
        elicit: types.ElicitRequestSchema,
        sample: types.CreateMessageRequestSchema,
        roots: types.ListRootsRequestSchema,
        log: types.LoggingMessageNotificationSchema,
        updated: types.ResourceUpdatedNotificationSchema,
      }
    : {
        elicit: "elicitation/create",
        sample: "sampling/createMessage",
        roots: "roots/list",
        log: "notifications/message",
        updated: "notifications/resources/updated",
      };
}

// A text, or the use of the tool that it has. The id says which choice was seen.
function sampled({ tools, toolChoice }) {
  const answer = { role: "assistant", model: "none" };
  if (!tools) return { ...answer, content: { type: "text", text: "Paris" } };
  const use = { type: "tool_use", id: toolChoice.mode, name: tools[0].name, input: CHOSEN };
  return { ...answer, content: [use], stopReason: "toolUse" };
}

class Session {
  constructor() {
    this.levels = [];
    this.opened = [];
    this.updates = [];
    this.waiting = [];
  }

  async open(url) {
    const opened = await connected({ packages, url, kind }, { capabilities: CAPABILITIES }, (made, types) => {
      const names = handlers(types);
      made.setRequestHandler(names.elicit, ({ params }) => this.answer(params));
      made.setRequestHandler(names.sample, ({ params }) => sampled(params));
      made.setRequestHandler(names.roots, () => ({ roots: [{ uri: "file:///home/ada" }] }));
      made.setNotificationHandler(names.log, ({ params }) => void this.levels.push(params.level));
      made.setNotificationHandler(names.updated, ({ params }) => this.update(params.uri));
    });
    Object.assign(this, opened);
    return this;
  }

  answer(params) {
    if (params.mode !== "url") return { action: "accept", content: { name: "Ada" } };
    this.opened.push(params.url);
    return { action: "accept" };
  }

  update(uri) {
    const next = this.waiting.shift();
    if (next) next(uri);
    else this.updates.push(uri);
  }

  async updated() {
    return this.updates.length ? this.updates.shift() : new Promise((done) => this.waiting.push(done));
  }

  async call(name, given = {}, options = {}, more = {}) {
    const params = { name, arguments: given, ...more };
    const result = kind === "sdk" ? await this.client.callTool(params, undefined, options) : await this.client.callTool(params, options);
    if (result.isError) throw new Error(result.content[0].text);
    return result.content[0].text;
  }

  async callFromLevel(name) {
    if (this.version >= "2026") return this.call(name, {}, {}, { _meta: { [LOG_LEVEL]: LEVEL } });
    await this.client.setLoggingLevel(LEVEL);
    return this.call(name);
  }

  async subscribed() {
    if (this.version >= "2026") {
      const subscription = await this.client.listen({ resourceSubscriptions: [MEMO] });
      return () => subscription.close();
    }
    await this.client.subscribeResource({ uri: MEMO });
    return () => this.client.unsubscribeResource({ uri: MEMO });
  }

  async close() {
    if (this.transport.terminateSession && this.transport.sessionId) await this.transport.terminateSession();
    await this.client.close();
  }
}

const FEATURES = {
  form: (session) => session.call("ask_form"),
  address: async (session) => [await session.call("ask_address"), ...session.opened],
  sample: (session) => session.call("ask_sample"),
  "sample with tools": (session) => session.call("ask_sample_with_tools"),
  roots: (session) => session.call("ask_roots"),
  progress: async (session) => {
    const steps = [];
    await session.call("work", {}, { onprogress: ({ progress }) => steps.push(progress) });
    return steps;
  },
  logs: async (session) => {
    await session.call("say");
    const unasked = session.levels.splice(0);
    await session.callFromLevel("say");
    return [unasked, session.levels.splice(0)];
  },
  cancellation: async (session) => {
    const key = randomUUID();
    const taken = new AbortController();
    const options = { signal: taken.signal, onprogress: () => taken.abort() };
    const ended = await session.call("hang", { key }, options).catch((error) => error);
    if (!(ended instanceof Error)) throw new Error(`it was answered: ${ended}`);
    return session.call("was_abandoned", { key });
  },
  subscription: async (session) => {
    const end = await session.subscribed();
    await session.call("write", { text: "first" });
    const told = [await session.updated(), (await session.client.readResource({ uri: MEMO })).contents[0].text];
    await end();
    await session.call("write", { text: "nothing" });
    return told;
  },
  completion: async (session) => (await session.client.complete(TOWN)).completion.values,
};

// What it saw, or why it saw nothing.
async function attempt(feature, session) {
  let timer;
  const late = new Promise((_, fail) => (timer = setTimeout(() => fail(new Error("nothing came")), FEATURE_MS)));
  try {
    return await Promise.race([feature(session), late]);
  } catch (error) {
    return { error: String(error) };
  } finally {
    clearTimeout(timer);
  }
}

// What it saw at one address.
async function toured(address) {
  const session = await new Session().open(address);
  const seen = { version: session.version };
  for (const [name, feature] of Object.entries(FEATURES)) seen[name] = await attempt(feature, session);
  await session.close();
  return seen;
}

async function report() {
  const seen = {};
  const ways = {};
  for (const name of Object.keys(addresses)) (ways[name.replace(/-[^-]*$/, "")] ??= []).push(name);
  const visit = async (names) => {
    for (const name of names) seen[name] = await toured(addresses[name]).catch((error) => ({ error: String(error) }));
  };
  await Promise.all(Object.values(ways).map(visit));
  const session = await new Session().open(meta);
  for (const name of Object.keys(addresses).filter((each) => addresses[each].startsWith(`${meta}/`))) {
    const given = { tool_path: `${name}:ask_form`, arguments: {} };
    seen[name].execute = await attempt((one) => one.call("execute_mcp_tool", given), session);
  }
  await session.close();
  return seen;
}

run(report, CLIENT_MS);
