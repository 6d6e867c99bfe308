// A server of the official TypeScript SDK 2.x with skills, in both eras, over stdio: `node skills.cjs PACKAGES`.
"use strict";
const { createRequire } = require("node:module");

const load = createRequire(`${process.argv[2]}/package.json`);
const { McpServer } = load("@modelcontextprotocol/server");
const { SkillsExtension, memorySkillFiles } = load("@modelcontextprotocol/server/ext/skills");
const { serveStdio } = load("@modelcontextprotocol/server/stdio");

const FILES = {
  "refunds/SKILL.md":
    "---\nname: refunds\ndescription: Refund a customer by the rules.\nallowed-tools: refund void\n---\n\nSee `examples/email.md`.\n",
  "refunds/examples/email.md": "Dear customer, here are 5 €.\n",
  "refunds/logo.png": Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0, 255]),
  "sailing/SKILL.md": "---\nname: sailing\ndescription: Sail against the wind.\n---\n\nTack.\n",
};

SkillsExtension.load(memorySkillFiles(FILES), { prefix: "billing", strict: true }).then((skills) =>
  serveStdio(() => {
    const server = new McpServer({ name: "skills", version: "1" });
    server.registerTool("refund", { description: "Give money back." }, async () => ({ content: [] }));
    skills.attach(server);
    return server;
  }),
);
