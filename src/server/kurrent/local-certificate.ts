// A certificate for connections on this machine. Official KurrentDB clients send credentials over TLS only, so the first start
// creates an authority and a server certificate.

import {
  createPrivateKey,
  generateKeyPair,
  randomBytes,
  sign as signBytes,
  X509Certificate,
} from 'node:crypto';
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { hasCode, MillraceError } from '../../foundation/error.ts';
import { loadDriver } from '../../foundation/load-driver.ts';

export interface LocalCertificate {
  readonly cert: string;
  readonly key: string;
  /** The file of the authority's certificate: `tlsCAFile` of clients. */
  readonly authorityFile: string;
}

const dayMs = 86_400_000;

export const certificateLimits = {
  validDays: 825,
  /** A start renews a certificate that expires earlier. */
  renewDays: 60,
} as const;

const files = { authority: 'ca.crt', cert: 'server.crt', key: 'server.key' } as const;

/** Returns the certificate of the folder; creates it if there is none for these hosts, or if it expires soon. */
export async function localCertificate(
  folder: string,
  hosts: readonly string[],
  nowMs: number = Date.now(),
): Promise<LocalCertificate> {
  const found = await readCertificate(folder, hosts, nowMs);
  if (found !== undefined) return found;
  try {
    await createCertificate(folder, hosts, nowMs);
  } catch (error) {
    if (hasCode(error, 'DRIVER_MISSING')) throw error;
    throw unusable(folder, error);
  }
  // Not the created one: a process that started at the same time may have been first.
  const created = await readCertificate(folder, hosts, nowMs);
  if (created === undefined) throw unusable(folder, undefined);
  return created;
}

async function readCertificate(
  folder: string,
  hosts: readonly string[],
  nowMs: number,
): Promise<LocalCertificate | undefined> {
  const read = (name: string): Promise<string> => readFile(join(folder, name), 'utf8');
  try {
    const [authority, cert, key] = await Promise.all([
      read(files.authority),
      read(files.cert),
      read(files.key),
    ]);
    const [issuer, own] = [new X509Certificate(authority), new X509Certificate(cert)];
    const isUsable =
      Date.parse(own.validTo) > nowMs + certificateLimits.renewDays * dayMs &&
      own.verify(issuer.publicKey) &&
      own.checkPrivateKey(createPrivateKey(key)) &&
      hosts.every((host) => (isIP(host) === 0 ? own.checkHost(host) : own.checkIP(host)));
    return isUsable ? { cert, key, authorityFile: join(folder, files.authority) } : undefined;
  } catch {
    // Missing or damaged files: new ones replace them.
    return undefined;
  }
}

/** The files appear together, by the rename of their folder. The key of the authority is never stored. */
async function createCertificate(
  folder: string,
  hosts: readonly string[],
  nowMs: number,
): Promise<void> {
  const issued = await issue(hosts, nowMs);
  await mkdir(dirname(folder), { recursive: true, mode: 0o700 });
  const created = await mkdtemp(`${folder}-`);
  try {
    for (const [name, text] of Object.entries(issued)) {
      await writeFile(join(created, name), text, { mode: 0o600 });
    }
    if (await moveTo(created, folder)) return;
    // Another process was first, or the old files are of no use.
    if ((await readCertificate(folder, hosts, nowMs)) !== undefined) return;
    await rm(folder, { recursive: true, force: true });
    await moveTo(created, folder);
  } finally {
    await rm(created, { recursive: true, force: true });
  }
}

/** False: the target exists. */
async function moveTo(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOTEMPTY' || code === 'EEXIST') return false;
    throw error;
  }
}

async function issue(
  hosts: readonly string[],
  nowMs: number,
): Promise<Readonly<Record<string, string>>> {
  const { default: forge } = await loadDriver('node-forge', () => import('node-forge'));
  const { asn1, md, pki } = forge;
  const [authority, own] = await Promise.all([newKeys(), newKeys()]);
  const authorityName = [{ name: 'commonName', value: 'Millrace local authority' }];
  const sign = (publicKey: string, name: string, extensions: readonly object[]): string => {
    const certificate = pki.createCertificate();
    certificate.publicKey = pki.publicKeyFromPem(publicKey);
    // Positive: the first bit of a serial number is its sign.
    certificate.serialNumber = `01${randomBytes(15).toString('hex')}`;
    certificate.validity.notBefore = new Date(nowMs - dayMs);
    certificate.validity.notAfter = new Date(nowMs + certificateLimits.validDays * dayMs);
    certificate.setSubject([{ name: 'commonName', value: name }]);
    certificate.setIssuer(authorityName);
    certificate.setExtensions([...extensions]);
    const signer = pki.privateKeyFromPem(authority.privateKey);
    // By Node: the library's own arithmetic, in JavaScript, takes 120 ms.
    signer.sign = () => {
      const content = Buffer.from(asn1.toDer(certificate.tbsCertificate).getBytes(), 'latin1');
      return signBytes('sha256', content, authority.privateKey).toString('latin1');
    };
    certificate.sign(signer, md.sha256.create());
    return pki.certificateToPem(certificate);
  };
  const altNames = hosts.map((host) =>
    isIP(host) === 0 ? { type: 2, value: host } : { type: 7, ip: host },
  );
  return {
    [files.authority]: sign(authority.publicKey, 'Millrace local authority', [
      { name: 'basicConstraints', cA: true, pathLenConstraint: 0, critical: true },
      { name: 'keyUsage', keyCertSign: true, critical: true },
    ]),
    [files.cert]: sign(own.publicKey, 'localhost', [
      { name: 'basicConstraints', cA: false, critical: true },
      { name: 'keyUsage', digitalSignature: true, keyEncipherment: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true },
      { name: 'subjectAltName', altNames },
    ]),
    [files.key]: own.privateKey,
  };
}

function newKeys(): Promise<{ readonly publicKey: string; readonly privateKey: string }> {
  return promisify(generateKeyPair)('rsa', {
    modulusLength: 2_048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
}

function unusable(folder: string, cause: unknown): MillraceError {
  return new MillraceError(
    'CONFIG_INVALID',
    `cannot create a certificate in '${folder}': pass --tls-cert and --tls-key, or --kurrent-auth none`,
    { cause, details: { field: 'tls-cert', folder } },
  );
}
