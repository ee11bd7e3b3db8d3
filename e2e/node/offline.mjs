// Loaded before a published server, so that testing it sends nothing anywhere:
// every name but this machine's own fails to resolve, at once.
import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';

const local = new Set(['localhost', '127.0.0.1', '::1', '0.0.0.0', '::']);
const { lookup } = dns;

dns.lookup = function (name, options, callback) {
  const done = typeof options === 'function' ? options : callback;
  if (local.has(name)) return lookup.call(dns, name, options, callback);
  const error = Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND', hostname: name });
  process.nextTick(done, error);
};
syncBuiltinESMExports();
