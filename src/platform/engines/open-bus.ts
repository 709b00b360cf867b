// The bus and its cold storage, by URL.

import { isAbsolute, resolve } from 'node:path';
import type { Bus } from '../../bus/bus.ts';
import type { ColdStorage } from '../../bus/cold-storage.ts';
import type { BusOptions } from '../../bus/create-bus.ts';
import { fileColdStorage } from '../../bus/file-cold-storage.ts';
import { MillraceError } from '../../foundation/error.ts';
import { engineOf, isEngine } from './store-url.ts';

/**
 * Opens the bus at a URL: `sqlite:<file>`, which may be the store's; `redis://host:6379`, `rediss:`,
 * `redis+cluster://a:6379,b:6379`; `nats://host:4222`, `nats+tls:`.
 *
 * @example
 * import { openBus } from 'millrace/platform';
 *
 * await using bus = await openBus('sqlite:.millrace/events.db');
 * for (const { subject, length } of await bus.streams('gbe.>')) console.log(subject, length);
 */
export async function openBus(url: string, options: BusOptions = {}): Promise<Bus> {
  switch (engineOf('bus', url, ['sqlite', 'redis', 'nats'])) {
    case 'sqlite':
      return (await import('../../engines/sqlite/index.ts')).sqliteBus(url, options);
    case 'redis':
      return (await import('../../engines/redis/index.ts')).redisBus(url, options);
    default:
      return (await import('../../engines/nats/index.ts')).natsBus(url, options);
  }
}

/** Credentials of a bucket; in the environment `AWS_ACCESS_KEY_ID` etc. */
export interface ArchiveKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

/**
 * Opens the cold storage at a URL: `file:<folder>`, or
 * `s3://<bucket>/<prefix>?region=eu-central-1&endpoint=https://minio:9000`.
 *
 * @example
 * import { openColdStorage } from 'millrace/platform';
 *
 * const storage = await openColdStorage('file:.millrace/archive');
 */
export async function openColdStorage(
  url: string,
  options: { readonly cwd?: string; readonly keys?: ArchiveKeys | undefined } = {},
): Promise<ColdStorage> {
  const { cwd = process.cwd(), keys } = options;
  const folder = /^file:(?:\/\/)?(.+)$/i.exec(url)?.[1];
  if (folder !== undefined) {
    return fileColdStorage(isAbsolute(folder) ? folder : resolve(cwd, folder));
  }
  const [, bucket, prefix = '', query = ''] = /^s3:\/\/([^/?]+)\/?([^?]*)\??(.*)$/i.exec(url) ?? [];
  if (bucket === undefined)
    throw invalid('unsupported archive URL; supported: file:<folder>, s3://<bucket>/<prefix>');
  if (keys === undefined) {
    throw invalid('a bucket needs credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY');
  }
  const { s3ColdStorage } = await import('../../engines/s3/index.ts');
  const settings = new URLSearchParams(query);
  return s3ColdStorage({
    bucket,
    // A prefix is a folder, so it ends with a slash.
    prefix: prefix === '' ? '' : prefix.replace(/\/*$/, '/'),
    region: settings.get('region') ?? undefined,
    endpoint: settings.get('endpoint') ?? undefined,
    keys,
  });
}

function invalid(message: string): MillraceError {
  return new MillraceError('CONFIG_INVALID', message, { details: { field: 'archive' } });
}

/** The bucket credentials of the environment. */
export function archiveKeysOf(
  env: Readonly<Record<string, string | undefined>>,
): ArchiveKeys | undefined {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env;
  if (!accessKeyId || !secretAccessKey) return undefined;
  return { accessKeyId, secretAccessKey, sessionToken: env['AWS_SESSION_TOKEN'] || undefined };
}

const busUrlDefault = 'sqlite:.millrace/bus.db';

/** The URL of the bus. Default: the store's file, if the store is a file. */
export function busUrlOf(urls: {
  readonly store: string;
  readonly bus?: string | undefined;
}): string {
  return urls.bus ?? (isEngine('sqlite', urls.store) ? urls.store : busUrlDefault);
}
