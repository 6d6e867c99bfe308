// A full OAuth flow by the official TypeScript clients: `node typescript_oauth.cjs PACKAGES URL KIND LIFE_S` prints a report.
//
// Sign in, call; where LIFE_S is not 0, also wait until the token has expired, call again, have the login taken back, and
// call once more. KIND as in typescript.cjs.
"use strict";
const { createRequire } = require("node:module");
const { run } = require("./typescript.cjs");

const [packages, url, kind, life] = process.argv.slice(2);
const REDIRECT = "http://127.0.0.1:9/callback"; // nobody listens there: where a browser is sent, the script stops

class Browser {
  cookies = new Map();

  async ask(address, options = {}) {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await fetch(address, { ...options, redirect: "manual", headers: { ...options.headers, cookie } });
    for (const line of answer.headers.getSetCookie()) {
      const [, name, value] = line.match(/^([^=]+)=([^;]*)/);
      this.cookies.set(name, value);
    }
    return answer;
  }

  // Does what a person does: says who they are, and says yes.
  async signIn(address) {
    for (let step = 0; step < 20; step += 1) {
      const answer = await this.ask(address);
      if (answer.status >= 300) {
        address = new URL(answer.headers.get("location"), address).href;
      } else {
        const prompt = (await answer.text()).match(/name="prompt" value="(\w+)"/)[1];
        const body = new URLSearchParams({ prompt, login: "ana", password: "x" });
        const said = await this.ask(address, { method: "POST", body });
        address = new URL(said.headers.get("location"), address).href;
      }
      if (address.startsWith(REDIRECT)) return new URL(address).searchParams;
    }
    throw new Error("the login leads on and on");
  }
}

class Kept {
  redirected = [];
  redirectUrl = REDIRECT;
  clientMetadata = {
    client_name: "e2e",
    redirect_uris: [REDIRECT],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
    application_type: "native",
  };
  clientInformation = () => this.information;
  saveClientInformation = (information) => void (this.information = information);
  tokens = () => this.own;
  saveTokens = (tokens) => void (this.own = tokens);
  redirectToAuthorization = (address) => void this.redirected.push(address.href);
  saveCodeVerifier = (verifier) => void (this.verifier = verifier);
  codeVerifier = () => this.verifier;
  state = () => "e2e";
  invalidateCredentials = (which) => void (["all", "tokens"].includes(which) && (this.own = undefined));
  saveDiscoveryState = (state) => void (this.discovered = state);
  discoveryState = () => this.discovered;
}

async function report() {
  const load = createRequire(`${packages}/package.json`);
  const old = kind === "sdk";
  const { Client, StreamableHTTPClientTransport } = old
    ? { ...load("@modelcontextprotocol/sdk/client/index.js"), ...load("@modelcontextprotocol/sdk/client/streamableHttp.js") }
    : load("@modelcontextprotocol/client");
  const kept = new Kept();
  const options = kind === "auto" ? { versionNegotiation: { mode: "auto" } } : {};
  const made = () => new StreamableHTTPClientTransport(new URL(url), { authProvider: kept });
  const first = made();
  const refused = await new Client({ name: "e2e", version: "1" }, options).connect(first).then(
    () => "nothing",
    (error) => error.constructor.name,
  );
  const answer = await new Browser().signIn(kept.redirected[0]);
  await first.finishAuth(old ? answer.get("code") : answer);
  const client = new Client({ name: "e2e", version: "1" }, options);
  await client.connect(made());
  const call = async () => {
    const args = { tool_path: "time:get_current_time", arguments: { timezone: "Europe/Berlin" } };
    return (await client.callTool({ name: "execute_mcp_tool", arguments: args })).content[0].text;
  };
  const found = { refused, asked: kept.redirected[0], called: [await call()] };
  if (Number(life)) {
    const token = kept.own.access_token;
    await new Promise((done) => setTimeout(done, (Number(life) + 0.5) * 1000));
    found.called.push(await call());
    found.renewed = kept.own.access_token !== token;
    const revocation = new URL("/token/revocation", kept.redirected[0]);
    const body = new URLSearchParams({ token: kept.own.refresh_token, client_id: kept.information.client_id });
    found.revocation = (await fetch(revocation, { method: "POST", body })).status;
    await new Promise((done) => setTimeout(done, (Number(life) + 0.5) * 1000));
    found.afterwards = await call().then(
      () => "nothing",
      (error) => error.constructor.name,
    );
  }
  found.redirected = kept.redirected.length;
  return found;
}

run(report, 60_000);
