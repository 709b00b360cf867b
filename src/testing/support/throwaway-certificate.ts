// Creates a certificate for this machine and its authority with openssl.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Certificate extends Disposable {
  readonly cert: string;
  readonly key: string;
  /** The file of the authority certificate. */
  readonly authorityFile: string;
}

const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

export function throwawayCertificate(): Certificate {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-tls-'));
  const openssl = (...args: readonly string[]): void => {
    execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
  };
  // A separate authority, because the bridge of the client does not accept a self-signed server certificate.
  openssl(
    'req',
    '-x509',
    ...newKey,
    '-days',
    '2',
    '-subj',
    '/CN=millrace tests',
    '-keyout',
    'authority.key',
    '-out',
    'authority.pem',
  );
  openssl('req', ...newKey, '-subj', '/CN=localhost', '-keyout', 'key.pem', '-out', 'request.pem');
  writeFileSync(join(folder, 'names'), 'subjectAltName=DNS:localhost,IP:127.0.0.1\n');
  openssl(
    'x509',
    '-req',
    '-in',
    'request.pem',
    '-days',
    '2',
    '-extfile',
    'names',
    '-CA',
    'authority.pem',
    '-CAkey',
    'authority.key',
    '-CAcreateserial',
    '-out',
    'cert.pem',
  );
  return {
    authorityFile: join(folder, 'authority.pem'),
    cert: readFileSync(join(folder, 'cert.pem'), 'utf8'),
    key: readFileSync(join(folder, 'key.pem'), 'utf8'),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}
