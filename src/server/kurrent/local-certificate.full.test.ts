// Slow: generates RSA keys.

import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { certificateLimits, localCertificate } from './local-certificate.ts';

const hosts = ['localhost', '127.0.0.1'];

test('a certificate is created once, renewed before it expires, and replaced if it is damaged', async () => {
  const parent = await mkdtemp(join(tmpdir(), 'millrace-certificate-'));
  try {
    const folder = join(parent, 'tls');
    // Processes that start at the same time use the same certificate.
    const [first, other] = await Promise.all([
      localCertificate(folder, hosts),
      localCertificate(folder, hosts),
    ]);
    assert.deepEqual(other, first);
    const parsed = new X509Certificate(first.cert);
    assert.deepEqual([parsed.checkHost('localhost'), parsed.ca], ['localhost', false]);
    assert.deepEqual(await localCertificate(folder, hosts), first);
    assert.deepEqual((await readdir(folder)).toSorted(), ['ca.crt', 'server.crt', 'server.key']);
    assert.deepEqual(await readdir(parent), ['tls']);

    const { validDays, renewDays } = certificateLimits;
    const nearEndMs = Date.now() + (validDays - renewDays + 1) * 86_400_000;
    const renewed = await localCertificate(folder, hosts, nearEndMs);
    assert.notEqual(renewed.cert, first.cert);

    await writeFile(join(folder, 'ca.crt'), first.cert);
    const repaired = await localCertificate(folder, [...hosts, '127.0.0.2']);
    assert.equal(new X509Certificate(repaired.cert).checkIP('127.0.0.2'), '127.0.0.2');
  } finally {
    await rm(parent, { recursive: true, force: true });
  }
});
