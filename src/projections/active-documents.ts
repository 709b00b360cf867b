// Queries of a read model whose version may change while the program runs: each query uses the active
// version.

import { systemClock, type Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { documentsOf, type DocumentQueries, type Page } from './documents.ts';
import type { ReadModelRoles } from './read-model-store.ts';
import { familyOf, type ReadModelVersion } from './read-model-versions.ts';
import { checkRoles } from './start-projection.ts';
import type { ReadModel } from './read-model.ts';

export interface ActiveDocumentsOptions {
  readonly clock?: Clock | undefined;
  /** How long the active version is cached. Default: 0, read it for each query. */
  readonly refreshMs?: number | undefined;
}

const versioned = /^v([1-9][0-9]{0,8})\.(.*)$/s;

/**
 * Opens all given versions of a read model and queries the active one.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { activeDocuments, readModel } from 'millrace/projections';
 *
 * const db = openMemory();
 * const [one, two] = [1, 2].map((version) =>
 *   readModel<{ readonly name: string }>({ bc: 'banking', aggregate: 'account', version }),
 * );
 * if (one && two) {
 *   const accounts = activeDocuments(db, [one, two]);
 *   console.log(await accounts.get('core', 'a-1'));
 * }
 */
export function activeDocuments<Document extends object>(
  roles: ReadModelRoles,
  models: readonly ReadModel<Document>[],
  options: ActiveDocumentsOptions = {},
): DocumentQueries<Document> {
  const { clock = systemClock, refreshMs = 0 } = options;
  const { readModels, readModelVersions: versions } = checkRoles(roles);
  const [first] = models;
  if (first === undefined) {
    throw new MillraceError('READ_MODEL_INVALID', 'active documents need at least one read model');
  }
  const family = familyOf(first);
  if (models.some((each) => familyOf(each) !== family)) {
    throw new MillraceError('READ_MODEL_INVALID', `all models must be versions of ${family}`, {
      details: { family },
    });
  }
  const known = new Map(models.map((model) => [model.version, documentsOf(readModels, model)]));
  /** The engine of the versions had some: if it has none now, it lost them. */
  let hasVersions = false;
  let cached: { readonly list: readonly ReadModelVersion[]; readonly untilMs: number } | undefined;

  async function current(): Promise<readonly ReadModelVersion[]> {
    if (cached !== undefined && clock.now() < cached.untilMs) return cached.list;
    const list = await versions.list(family);
    if (hasVersions && list.length === 0) throw rebuilding();
    hasVersions = list.length > 0;
    cached = { list, untilMs: clock.now() + refreshMs };
    return cached.list;
  }

  async function active(): Promise<{ version: number; documents: DocumentQueries<Document> }> {
    const { version, status } = (await current()).find((each) => each.active) ?? {};
    if (status === 'rebuilding') throw rebuilding();
    // Before the first start all versions are empty.
    return {
      version: version ?? first?.version ?? 1,
      documents: of(version ?? first?.version ?? 1),
    };
  }

  function rebuilding(): MillraceError {
    return new MillraceError(
      'READ_MODEL_REBUILDING',
      `the documents of ${family} were lost and are being rebuilt from the events`,
      { details: { family } },
    );
  }

  function of(version: number): DocumentQueries<Document> {
    const documents = known.get(version);
    if (documents !== undefined) return documents;
    throw new MillraceError(
      'PROJECTION_UNKNOWN',
      `version ${version} of ${family} is active, but this program does not define it`,
      { details: { family, version } },
    );
  }

  /** All pages of one query come from one version, even after a switch. */
  async function page(
    cursor: string | undefined,
    read: (
      documents: DocumentQueries<Document>,
      cursor: string | undefined,
    ) => Promise<Page<Document>>,
  ): Promise<Page<Document>> {
    const resumed = cursor === undefined ? undefined : await resumeFrom(cursor);
    const { version, documents } = resumed ?? (await active());
    const found = await read(documents, resumed?.cursor);
    return {
      ...found,
      cursor: found.cursor === undefined ? undefined : `v${version}.${found.cursor}`,
    };
  }

  async function resumeFrom(cursor: string) {
    const [, number = '', rest = ''] = versioned.exec(cursor) ?? [];
    const version = Number(number);
    const found = (await current()).find((each) => each.version === version);
    if (found?.status === 'rebuilding') throw rebuilding();
    const isKept = found !== undefined && found.status !== 'retired' && found.status !== 'retiring';
    if (isKept && known.has(version)) return { version, documents: of(version), cursor: rest };
    throw new MillraceError(
      'CURSOR_INVALID',
      'the version of this cursor no longer exists: start again without a cursor',
      {
        details: { family, cursor: cursor.slice(0, 60) },
      },
    );
  }

  return {
    get: async (...args) => (await active()).documents.get(...args),
    byIndex: async (...args) => (await active()).documents.byIndex(...args),
    bySet: (tenant, set, query = {}) =>
      page(query.cursor, (documents, cursor) => documents.bySet(tenant, set, { ...query, cursor })),
    byRange: (tenant, range, query = {}) =>
      page(query.cursor, (documents, cursor) =>
        documents.byRange(tenant, range, { ...query, cursor }),
      ),
    count: async (...args) => (await active()).documents.count(...args),
    list: async (...args) => (await active()).documents.list(...args),
  };
}
