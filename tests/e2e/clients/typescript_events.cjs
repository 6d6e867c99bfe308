// Events as the official TypeScript client 2.x gets them (SEP-3415): `node typescript_events.cjs PACKAGES URL KIND NAME CALL`
// prints what it hears of the events of a type. CALL are the params of a call, in JSON, that makes two; one is wanted.
"use strict";
const { connected, run } = require("./typescript.cjs");

const ANYTHING = { "~standard": { version: 1, vendor: "e2e", validate: (value) => ({ value }) } };
const FOR_EVER_MS = 2 ** 31 - 1;

async function report(url, kind, name, call) {
  const packages = process.argv[2];
  const heard = [];
  let heardMore = () => undefined;
  const { client, version } = await connected({ packages, url, kind }, {}, (client) => {
    client.fallbackNotificationHandler = async ({ method, params }) => {
      heard.push([method.replace("notifications/events/", ""), params]);
      heardMore();
    };
  });
  const ask = (method, params, options) => client.request({ method, params }, ANYTHING, options);
  const until = async (what, count) => {
    while (heard.filter(([each]) => each === what).length < count) await new Promise((resolve) => (heardMore = resolve));
  };
  const streamed = async (params, count, during = async () => undefined) => {
    heard.length = 0;
    const ending = new AbortController();
    const stream = ask("events/stream", params, { signal: ending.signal, timeout: FOR_EVER_MS });
    const ended = stream.catch((error) => error.name);
    await until("active", 1);
    await during();
    await until("event", count);
    ending.abort();
    await ended;
    return heard.filter(([what]) => what !== "heartbeat");
  };

  const declared = client.getServerCapabilities().extensions?.["io.modelcontextprotocol/events"] !== undefined;
  const { events: types } = await ask("events/list", {});
  const watched = { name, arguments: { above: 5 } };
  const order = () => client.callTool(JSON.parse(call));
  const live = await streamed({ ...watched, cursor: null }, 1, order);
  const [, { cursor }] = live.at(-1);
  const begun = live[0][1].cursor;
  await order();
  const resumed = await streamed({ ...watched, cursor }, 1);
  const polled = await ask("events/poll", { ...watched, cursor: begun, maxEvents: 1 });
  const rest = await ask("events/poll", { ...watched, cursor: polled.cursor });
  const refused = await ask("events/poll", { name: `${name}-not`, arguments: {} }).catch((error) => error.code);
  await client.close();
  const amounts = (each) => each.map((event) => [event.name, event.data.amount]);
  return {
    version,
    declared,
    types: types.map((each) => each.name).filter((each) => each.includes(":")), // those of servers
    live: live.map(([what, params]) => [what, params.data?.amount]),
    resumed: resumed.map(([what, params]) => [what, params.truncated ?? params.data.amount]),
    polled: [amounts(polled.events), polled.truncated, polled.hasMore],
    rest: [amounts(rest.events), rest.truncated, rest.hasMore],
    refused,
  };
}

run(report);
