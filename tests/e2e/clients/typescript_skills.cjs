// Skills as the official TypeScript client 2.x reads and verifies them: `node typescript_skills.cjs PACKAGES URL KIND URI`
// prints what it finds of the skill whose `SKILL.md` is at URI.
"use strict";
const { createRequire } = require("node:module");
const { connected, run } = require("./typescript.cjs");

const packages = process.argv[2];
const { SkillsClient } = createRequire(`${packages}/package.json`)("@modelcontextprotocol/client/ext/skills");

async function report(url, kind, uri) {
  const { client, version } = await connected({ packages, url, kind }, {}, () => undefined);
  const skills = new SkillsClient(client);
  const listed = await skills.list();
  const { skill } = await skills.get(uri);
  const root = uri.slice(0, -"/SKILL.md".length);
  const read = [];
  for (const { uri: file } of skill.resources) {
    const { verified, bytes } = await skills.read(skill, file);
    read.push([file.slice(root.length + 1), verified, bytes.length]);
  }
  const { frontmatter, body } = await skills.read(skill);
  const relative = await skills.read(skill, "examples/email.md");
  const { resources } = await skills.readDirectory(root);
  const refused = await skills.get(`${root}-not/SKILL.md`).catch((error) => error.code);
  const supported = [skills.supported, skills.directoryRead];
  await client.close();
  return {
    version,
    supported,
    listed: listed.skills.map((each) => each.uri),
    kept: listed.ttlMs !== undefined && listed.cacheScope !== undefined,
    read,
    name: frontmatter.name,
    body,
    relative: relative.text,
    children: resources.map((each) => each.uri.slice(root.length + 1)).sort(),
    refused,
  };
}

run(report);
