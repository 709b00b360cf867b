// Lease servers that require a password or TLS.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { test } from 'node:test';
import { hasCode } from '../../src/foundation/error.ts';
import { openRole } from '../../src/platform/engines/open-engines.ts';
import { reservePort } from '../../src/testing/servers/reserve-port.ts';
import { startNats } from '../../src/testing/servers/nats-server.ts';
import { startRedis } from '../../src/testing/servers/redis-server.ts';
import { throwawayCertificate } from '../../src/testing/support/throwaway-certificate.ts';
import { createWorkspace } from '../store/rig.ts';
import { commandRedis } from './command-redis.ts';

const subscription = 'sub:rig:access:v1';

for (const [name, start] of Object.entries({
  async Redis() {
    const server = await startRedis();
    await commandRedis(server.port, 'CONFIG SET requirepass se/cr:et');
    return Object.assign(server, { user: 'default' });
  },
  async NATS() {
    const authorization = '{ user: ada, password: "se/cr:et" }';
    return Object.assign(await startNats({ settings: { authorization } }), { user: 'ada' });
  },
})) {
  test(`${name}: a wrong password is reported as not retryable`, async () => {
    await using server = await start();
    const url = (password: string): string =>
      server.url.replace('//', `//${server.user}:${encodeURIComponent(password)}@`);
    for (const wrong of [server.url, url('wr/on:g')]) {
      await assert.rejects(
        () => openRole(wrong, 'leases'),
        (error) =>
          hasCode(error, 'STORE_UNAVAILABLE') &&
          !error.retryable &&
          !error.message.includes('wr/on:g'),
      );
    }
    await using leases = await openRole(url('se/cr:et'), 'leases');
    assert.deepEqual(await leases.list(subscription), []);
  });
}

test('reports a server that is not a cluster', async () => {
  await using server = await startRedis();
  await assert.rejects(
    () => openRole(server.url.replace('redis:', 'redis+cluster:'), 'leases'),
    (error) =>
      hasCode(error, 'STORE_UNAVAILABLE') && /cluster support disabled/.test(error.message),
  );
});

test('accepts TLS only if the certificate authority is trusted', async () => {
  await using workspace = await createWorkspace();
  using certificate = throwawayCertificate();
  const [cert, key] = ['cert.pem', 'key.pem'].map((name) => join(workspace.folder, name));
  assert.ok(cert !== undefined && key !== undefined);
  await writeFile(cert, certificate.cert);
  await writeFile(key, certificate.key);
  await using tls = await reservePort();
  await using redis = await startRedis({
    settings: {
      'tls-port': String(tls.port),
      'tls-cert-file': cert,
      'tls-key-file': key,
      'tls-ca-cert-file': certificate.authorityFile,
      'tls-auth-clients': 'no',
    },
  });
  await using nats = await startNats({
    settings: { tls: `{ cert_file: "${cert}", key_file: "${key}" }` },
  });
  for (const url of [
    `rediss://${redis.host}:${tls.port}`,
    nats.url.replace('nats:', 'nats+tls:'),
  ]) {
    await assert.rejects(
      () => openRole(url, 'leases'),
      (error) => hasCode(error, 'STORE_UNAVAILABLE') && /certificate/.test(error.message),
      url,
    );
    const main = fileURLToPath(new URL('./leases-main.ts', import.meta.url));
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: certificate.authorityFile };
    const { stdout } = await promisify(execFile)(process.execPath, [main, url], { env });
    assert.equal(stdout.trim(), 'acquired', url);
  }
});
