// The bus, and the cold storage behind it, by URL.

import { isAbsolute, resolve } from 'node:path';
import type { Bus } from '../bus/bus.ts';
import type { ColdStorage } from '../bus/cold-storage.ts';
import type { BusOptions } from '../bus/create-bus.ts';
import { fileColdStorage } from '../bus/file-cold-storage.ts';
import { MillraceError } from '../foundation/error.ts';

/**
 * Opens the bus that a URL names: `sqlite:<file>`, which may be the store's.
 *
 * @example
 * import { openBus } from 'millrace/platform';
 *
 * await using bus = await openBus('sqlite:.millrace/events.db');
 * for (const { subject, length } of await bus.streams('gbe.>')) console.log(subject, length);
 */
export async function openBus(url: string, options: BusOptions = {}): Promise<Bus> {
  if (/^sqlite:/i.test(url)) {
    const { sqliteBus } = await import('../adapters/sqlite/index.ts');
    return sqliteBus(url, options);
  }
  throw new MillraceError('CONFIG_INVALID', 'a bus is in sqlite:<file>', {
    details: { field: 'bus' },
  });
}

/**
 * Opens the cold storage that a URL names: `file:<folder>`.
 *
 * @example
 * import { openColdStorage } from 'millrace/platform';
 *
 * const storage = openColdStorage('file:.millrace/archive');
 */
export function openColdStorage(url: string, cwd: string = process.cwd()): ColdStorage {
  const folder = /^file:(?:\/\/)?(.+)$/i.exec(url)?.[1];
  if (folder !== undefined)
    return fileColdStorage(isAbsolute(folder) ? folder : resolve(cwd, folder));
  throw new MillraceError('CONFIG_INVALID', 'an archive is in file:<folder>', {
    details: { field: 'archive' },
  });
}

const besideDefault = 'sqlite:.millrace/bus.db';

/** Where the bus is when nobody says: beside the events, where those are in a file. */
export function busUrlOf(urls: {
  readonly store: string;
  readonly bus?: string | undefined;
}): string {
  return urls.bus ?? (/^sqlite:/i.test(urls.store) ? urls.store : besideDefault);
}
