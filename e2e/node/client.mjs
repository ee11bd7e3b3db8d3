// A client of the TypeScript SDK, driven by lines of JSON on stdin and answering
// each with one line on stdout. It speaks the 2025 era: it initializes, keeps a
// session, and is asked by elicitation/create.
//
//   node client.mjs '{"url":"http://…/mcp","token":"…","answer":"accept"}'
//   node client.mjs '{"command":["gatehouse","stdio","--caller","alice"],"answer":"none"}'
//
// answer is what the person in front of this client does when asked: accept,
// deny, decline, cancel, late (accepts after lateMs), silent, or none, which
// leaves the elicitation capability undeclared.
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const options = JSON.parse(process.argv[2]);
const questions = [];
const raw = new Map(); // placeholder -> arguments to put in its place, byte for byte
let wire = [];

// JSON.stringify would turn a large integer into a double, so the request that
// carries arguments is patched on its way out and the replies are kept as text.
async function fetchAsIs(url, init = {}) {
  let { body } = init;
  if (typeof body === 'string') {
    for (const [placeholder, text] of raw) body = body.replace(placeholder, () => text);
  }
  const response = await fetch(url, { ...init, body });
  if (!response.body) return response;
  const [mine, theirs] = response.body.tee();
  const text = new Response(mine).text().catch(() => '');
  wire.push(text);
  return new Response(theirs, response);
}

function transport() {
  if (options.command) {
    const [command, ...args] = options.command;
    return new StdioClientTransport({ command, args, stderr: 'inherit', env: process.env });
  }
  return new StreamableHTTPClientTransport(new URL(options.url), {
    fetch: fetchAsIs,
    requestInit: { headers: options.token ? { Authorization: `Bearer ${options.token}` } : {} },
  });
}

async function answerQuestion(request) {
  questions.push(request.params);
  switch (options.answer) {
    case 'late':
      await sleep(options.lateMs);
    // falls through
    case 'accept':
      return { action: 'accept', content: { decision: 'approve' } };
    case 'deny':
      return { action: 'accept', content: { decision: 'deny' } };
    case 'silent':
      return new Promise(() => {});
    default:
      return { action: options.answer };
  }
}

const capabilities = options.answer === 'none' ? {} : { elicitation: {} };
const client = new Client({ name: 'e2e-typescript', version: '1.0.0' }, { capabilities });
if (options.answer !== 'none') client.setRequestHandler(ElicitRequestSchema, answerQuestion);

async function call({ name, arguments: text, progress, cancelAfterMs }) {
  const placeholder = `{"$raw":${raw.size}}`;
  let args = JSON.parse(text);
  if (!options.command) {
    raw.set(placeholder, text);
    args = JSON.parse(placeholder);
  }
  wire = [];
  const asked = questions.length;
  const seen = [];
  const requestOptions = { timeout: options.timeoutMs ?? 60_000 };
  if (progress) requestOptions.onprogress = (p) => seen.push(p);
  if (cancelAfterMs) requestOptions.signal = AbortSignal.timeout(cancelAfterMs);
  const reply = {};
  try {
    reply.result = await client.callTool({ name, arguments: args }, undefined, requestOptions);
  } catch (e) {
    reply.error = { code: e.code ?? 0, message: String(e.message ?? e), data: e.data };
  }
  // A stream that outlives its answer (the standalone GET) must not hold us up.
  const settled = wire.map((t) => Promise.race([t, sleep(300, '')]));
  return { ...reply, wire: await Promise.all(settled), questions: questions.slice(asked), progress: seen };
}

async function list() {
  const tools = [];
  let cursor;
  do {
    const page = await client.listTools(cursor ? { cursor } : {});
    tools.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor);
  return { tools };
}

const operations = { list, call, info: async () => ({ server: client.getServerVersion(), instructions: client.getInstructions() }) };

function say(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

try {
  await client.connect(transport());
  say({ connected: true });
} catch (e) {
  say({ connected: false, error: { code: e.code ?? 0, message: String(e.message ?? e) } });
  process.exit(1);
}
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  if (request.op === 'close') break;
  try {
    say(await operations[request.op](request));
  } catch (e) {
    say({ error: { code: e.code ?? 0, message: String(e.message ?? e) } });
  }
}
await client.transport?.terminateSession?.().catch(() => {});
await client.close();
process.exit(0);
