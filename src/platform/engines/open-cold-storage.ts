// The cold storage of bus archives, by URL.

import { isAbsolute, resolve } from 'node:path';
import type { ColdStorage } from '../../bus/cold-storage.ts';
import { fileColdStorage } from '../../bus/file-cold-storage.ts';
import { MillraceError } from '../../foundation/error.ts';

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

export function archiveKeysOf(
  env: Readonly<Record<string, string | undefined>>,
): ArchiveKeys | undefined {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env;
  if (!accessKeyId || !secretAccessKey) return undefined;
  return { accessKeyId, secretAccessKey, sessionToken: env['AWS_SESSION_TOKEN'] || undefined };
}
