// A real authorization server, oidc-provider: `node authorization_server.cjs PACKAGES FORMAT LIFE_S` prints its address.
//
// FORMAT is that of its access tokens, "jwt" or "opaque"; LIFE_S is how long each lasts. Whoever comes may register, and
// sign in under any name. `/counts` tells what it was asked for.
"use strict";
const { createServer } = require("node:http");
const { join } = require("node:path");
const { pathToFileURL } = require("node:url");

const [packages, format, life] = process.argv.slice(2);
const SCOPE = "mcp:read mcp:tools:execute";
const counts = { registered: 0, authorization_code: 0, refresh_token: 0, revoked: 0, introspected: 0 };

function configuration() {
  return {
    clients: [
      {
        client_id: "mcpvisor",
        client_secret: "the secret of the daemon",
        redirect_uris: [],
        response_types: [],
        grant_types: [],
      },
    ],
    scopes: ["openid", "offline_access", ...SCOPE.split(" ")],
    cookies: { keys: ["only for tests"] },
    issueRefreshToken: async () => true,
    // Clients may renew twice at once, on two connections.
    rotateRefreshToken: false,
    features: {
      devInteractions: { enabled: true },
      registration: { enabled: true },
      revocation: { enabled: true },
      introspection: { enabled: true, allowedPolicy: async (_, client) => client.clientId === "mcpvisor" },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: async () => true,
        getResourceServerInfo: async (_, resource) => ({
          scope: SCOPE,
          audience: resource,
          accessTokenFormat: format,
          accessTokenTTL: Number(life),
          jwt: { sign: { alg: "RS256" } },
        }),
      },
    },
  };
}

async function start() {
  const { Provider } = await import(pathToFileURL(join(packages, "node_modules/oidc-provider/lib/index.js")));
  let answer;
  const server = createServer((request, response) => {
    if (request.url !== "/counts") return answer(request, response);
    response.setHeader("content-type", "application/json");
    return response.end(JSON.stringify(counts));
  });
  server.listen(0, "127.0.0.1", () => {
    const address = `http://127.0.0.1:${server.address().port}`;
    const provider = new Provider(address, configuration());
    provider.on("registration_create.success", () => (counts.registered += 1));
    provider.on("grant.success", ({ oidc }) => (counts[oidc.params.grant_type] += 1));
    provider.on("grant.revoked", () => (counts.revoked += 1));
    provider.use(async (context, next) => {
      await next();
      if (context.oidc?.route === "introspection") counts.introspected += 1;
    });
    answer = provider.callback();
    console.log(address);
  });
}

start();
