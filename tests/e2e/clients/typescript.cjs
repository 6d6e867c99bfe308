// What the scripts of the official TypeScript clients have in common: a client that is connected, and a report as JSON.
//
// KIND is "sdk" (@modelcontextprotocol/sdk 1.x), or what @modelcontextprotocol/client 2.x is to negotiate: "default",
// "auto", or a pinned revision.
"use strict";
const { createRequire } = require("node:module");
const { join } = require("node:path");

const DEADLINE_MS = 30_000;
const INFO = { name: "e2e", version: "1" };

// An address that begins with this is reached by the bridge, which is started as the environment says.
const PIPED = "stdio+";

function pipes(load, old, url) {
  const { StdioClientTransport } = old
    ? load("@modelcontextprotocol/sdk/client/stdio.js")
    : load("@modelcontextprotocol/client/stdio");
  const [command, ...args] = JSON.parse(process.env.BRIDGE);
  const cwd = join(__dirname, "../../..");
  const transport = new StdioClientTransport({ command, args: [...args, url.slice(PIPED.length)], cwd });
  transport.setProtocolVersion = (version) => void (transport.protocolVersion = version); // as over HTTP
  return transport;
}

// `prepare(client, types)` adds handlers before the client connects; `types` are the schemas of 1.x, undefined for 2.x.
async function connected({ packages, url, kind }, options, prepare) {
  const load = createRequire(`${packages}/package.json`);
  const old = kind === "sdk";
  const { Client, StreamableHTTPClientTransport } = old
    ? { ...load("@modelcontextprotocol/sdk/client/index.js"), ...load("@modelcontextprotocol/sdk/client/streamableHttp.js") }
    : load("@modelcontextprotocol/client");
  if (kind === "auto") options.versionNegotiation = { mode: "auto" };
  else if (!old && kind !== "default") options.versionNegotiation = { mode: { pin: kind } };
  const client = new Client(INFO, options);
  prepare(client, old ? load("@modelcontextprotocol/sdk/types.js") : undefined);
  const transport = url.startsWith(PIPED) ? pipes(load, old, url) : new StreamableHTTPClientTransport(new URL(url));
  await client.connect(transport);
  return { client, transport, version: old ? transport.protocolVersion : client.getNegotiatedProtocolVersion() };
}

// Prints what `report` finds as a line of JSON, and ends the process. It is given the arguments behind PACKAGES; `--`
// begins those of another report. Each has the deadline for itself.
async function run(report, deadlineMs = DEADLINE_MS) {
  const ways = [[]];
  for (const each of process.argv.slice(3)) each === "--" ? ways.push([]) : ways.at(-1).push(each);
  try {
    for (const way of ways.filter((each) => each.length)) {
      const deadline = setTimeout(() => {
        console.error("the client's deadline passed");
        process.exit(1);
      }, deadlineMs);
      console.log(JSON.stringify(await report(...way)));
      clearTimeout(deadline);
    }
    process.exit(0);
  } catch (error) {
    console.error(error);
    process.exit(1);
  }
}

module.exports = { connected, run };
