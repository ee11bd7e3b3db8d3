// Loaded before the conformance suite, which has no option for a header: adds
// the caller's token to every request that goes to the gateway's address, by
// each of the three ways in which the suite sends: the global fetch, the copy of
// undici that it brings, and node:http.
import http from 'node:http';
import { createRequire } from 'node:module';

const origin = new URL(process.env.GATEHOUSE_URL).origin;
const authorization = `Bearer ${process.env.GATEHOUSE_TOKEN}`;
const send = globalThis.fetch;

globalThis.fetch = function (input, init = {}) {
  const url = input instanceof Request ? input.url : String(input);
  if (new URL(url).origin !== origin) return send(input, init);
  const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : undefined));
  if (!headers.has('authorization')) headers.set('authorization', authorization);
  return send(input, { ...init, headers });
};

const suite = createRequire(import.meta.resolve('@modelcontextprotocol/conformance/package.json'));
const undici = suite('undici');
const request = undici.request;
undici.request = function (url, options = {}, ...rest) {
  if (new URL(String(url)).origin !== origin) return request(url, options, ...rest);
  return request(url, { ...options, headers: { authorization, ...options.headers } }, ...rest);
};

const plain = http.request;
http.request = function (options, ...rest) {
  const { hostname, host, port } = options; // the suite gives options, never a url
  if (`http://${hostname ?? host}:${port}` !== origin) return plain(options, ...rest);
  return plain({ ...options, headers: { authorization, ...options.headers } }, ...rest);
};
