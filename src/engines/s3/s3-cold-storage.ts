// Cold storage in a bucket, over the S3 protocol: AWS, MinIO, R2 and others. aws4fetch signs the requests.

import { createHash } from 'node:crypto';
import { AwsV4Signer } from 'aws4fetch';
import type { ColdStorage } from '../../bus/cold-storage.ts';
import { systemClock, type Clock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';

export interface S3Keys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

export interface S3Options {
  readonly bucket: string;
  /** The prefix of every name. */
  readonly prefix?: string | undefined;
  /** Default: `us-east-1`. */
  readonly region?: string | undefined;
  /** Default: the AWS endpoint of the region. */
  readonly endpoint?: string | undefined;
  readonly keys: S3Keys;
  /** Time limit of a request. Default: 60 s. */
  readonly timeoutMs?: number | undefined;
  readonly clock?: Clock | undefined;
}

/**
 * Cold storage in a bucket. `ifAbsent` needs a server that supports `If-None-Match` on PUT, as AWS and MinIO do.
 *
 * @example
 * import { s3ColdStorage } from 'millrace/engines/s3';
 *
 * const storage = s3ColdStorage({
 *   bucket: 'archive',
 *   region: 'eu-central-1',
 *   keys: { accessKeyId: 'id', secretAccessKey: 'secret' },
 * });
 */
export function s3ColdStorage(options: S3Options): ColdStorage {
  const { bucket, prefix = '', region = 'us-east-1', keys, timeoutMs = 60_000 } = options;
  const { clock = systemClock } = options;
  const endpoint = options.endpoint ?? `https://s3.${region}.amazonaws.com`;
  const base = `${endpoint.replace(/\/$/, '')}/${encoded(bucket)}`;

  async function send(
    method: string,
    url: string,
    more: { readonly body?: Uint8Array; readonly headers?: Readonly<Record<string, string>> } = {},
  ): Promise<Response> {
    const { accessKeyId, secretAccessKey, sessionToken } = keys;
    const signer = new AwsV4Signer({
      method,
      url,
      headers: {
        ...more.headers,
        // Without this header, aws4fetch would leave the body unsigned.
        'x-amz-content-sha256': createHash('sha256')
          .update(more.body ?? '')
          .digest('hex'),
      },
      accessKeyId,
      secretAccessKey,
      ...(sessionToken === undefined ? {} : { sessionToken }),
      service: 's3',
      region,
      datetime: new Date(clock.now()).toISOString().replaceAll(/[:-]|\.\d{3}/g, ''),
    });
    try {
      const { headers } = await signer.sign();
      return await fetch(signer.url, {
        method,
        headers,
        redirect: 'error',
        signal: AbortSignal.timeout(timeoutMs),
        ...(more.body === undefined ? {} : { body: Buffer.from(more.body) }),
      });
    } catch (cause) {
      throw new MillraceError('STORE_UNAVAILABLE', `cannot reach the bucket '${bucket}'`, {
        cause,
        details: { bucket, endpoint },
      });
    }
  }

  const urlOf = (name: string): string =>
    `${base}/${(prefix + name).split('/').map(encoded).join('/')}`;

  async function rejection(response: Response, operation: string): Promise<MillraceError> {
    const { status } = response;
    const code = /<Code>([^<]{1,100})<\/Code>/.exec(await response.text())?.[1] ?? '';
    return new MillraceError(
      'STORE_UNAVAILABLE',
      `the bucket '${bucket}' rejected the ${operation}: ${status} ${code}`.trim(),
      {
        details: { bucket, status, code },
        retryable: status >= 500 || status === 408 || status === 429,
      },
    );
  }

  async function listPage(below: string, token: string | undefined): Promise<string> {
    const query = new URLSearchParams({
      'list-type': '2',
      prefix: prefix + below,
      ...(token === undefined ? {} : { 'continuation-token': token }),
    });
    const response = await send('GET', `${base}?${query.toString().replaceAll('+', '%20')}`);
    if (!response.ok) throw await rejection(response, 'list');
    return response.text();
  }

  return {
    async put(name, data, { ifAbsent = false } = {}) {
      const headers = ifAbsent ? { 'if-none-match': '*' } : {};
      const response = await send('PUT', urlOf(name), { body: data, headers });
      if (ifAbsent && response.status === 412) {
        await response.body?.cancel();
        return false;
      }
      if (!response.ok) throw await rejection(response, 'write');
      await response.body?.cancel();
      return true;
    },
    async get(name) {
      const response = await send('GET', urlOf(name));
      if (response.status === 404) {
        await response.body?.cancel();
        return undefined;
      }
      if (!response.ok) throw await rejection(response, 'read');
      return new Uint8Array(await response.arrayBuffer());
    },
    async *list(below) {
      let token: string | undefined;
      do {
        const page = await listPage(below, token);
        for (const [, key = ''] of page.matchAll(/<Key>([^<]*)<\/Key>/g)) {
          yield unescaped(key).slice(prefix.length);
        }
        const next = /<NextContinuationToken>([^<]+)<\/NextContinuationToken>/.exec(page)?.[1];
        token = next === undefined ? undefined : unescaped(next);
      } while (token !== undefined);
    },
    async remove(name) {
      const response = await send('DELETE', urlOf(name));
      if (!response.ok && response.status !== 404) throw await rejection(response, 'removal');
      await response.body?.cancel();
    },
  };
}

/** Percent-encodes by RFC 3986, which S3 signatures require: encodeURIComponent leaves some characters. */
function encoded(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

const entities: Readonly<Record<string, string>> = {
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  amp: '&',
};

function unescaped(xml: string): string {
  return xml.replaceAll(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (whole, hex, decimal, name) => {
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(String(hex), 16));
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal));
    return entities[String(name)] ?? whole;
  });
}
