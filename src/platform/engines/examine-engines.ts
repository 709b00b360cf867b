// The checks of `millrace doctor`: each configured engine, by its adapter.

import { systemClock } from '../../foundation/clock.ts';
import { examine, isBroken, type Examination, type Finding } from '../../foundation/finding.ts';
import { eventStoreSchema, outboxSchema } from './engine-schemas.ts';
import { completeUrls, type EngineUrls } from './platform-engines.ts';
import { isEngine, parseStoreUrl, redactStoreUrl, type StoreUrl } from './store-url.ts';

export type EngineRole = keyof EngineUrls;

export interface EngineReport {
  /** Several if one engine has several roles. */
  readonly roles: readonly EngineRole[];
  /** The URL of the engine without its password. */
  readonly url: string;
  readonly findings: readonly Finding[];
}

export interface ExamineEnginesOptions {
  /** How long a single check may take. Default: 5 s. */
  readonly timeoutMs?: number | undefined;
  /** As in the platform: `off` leaves the schema to `millrace migrate`. */
  readonly migrate?: 'auto' | 'off' | undefined;
}

const timeoutMsDefault = 5_000;
const outboxSchemaName = 'core_outbox';

/**
 * Checks the engines of a deployment without changing them: reachability, versions, permissions, settings, schemas,
 * latency and clocks. A failed check is a finding, not a rejection.
 *
 * @example
 * import { examineEngines, loadConfig } from 'millrace/platform';
 *
 * const { engines } = await loadConfig({ cwd: process.cwd(), env: process.env });
 * for (const { roles, findings } of await examineEngines(engines ?? {})) {
 *   for (const { check, level, detail } of findings) console.log(roles, check, level, detail);
 * }
 */
export async function examineEngines(
  engines: EngineUrls,
  { timeoutMs = timeoutMsDefault, migrate = 'auto' }: ExamineEnginesOptions = {},
): Promise<readonly EngineReport[]> {
  const urls = completeUrls(engines);
  const byUrl = new Map<string, EngineRole[]>();
  for (const [role, url] of Object.entries(urls) as [EngineRole, string | undefined][]) {
    if (url !== undefined) byUrl.set(url, [...(byUrl.get(url) ?? []), role]);
  }
  const options = { timeoutMs, nowMs: () => systemClock.now(), migrate };
  return Promise.all(
    [...byUrl].map(async ([url, roles]) => {
      const found = await examine('engine', () => examineEngine(url, roles, options), {
        // Each check has a time limit; this one covers the rest.
        timeoutMs: timeoutMs * 20,
      });
      return { roles, url: redactStoreUrl(url), findings: found.map((each) => hidden(url, each)) };
    }),
  );
}

type EngineExamination = Examination & { readonly migrate: 'auto' | 'off' };

async function examineEngine(
  url: string,
  roles: readonly EngineRole[],
  options: EngineExamination,
): Promise<readonly Finding[]> {
  if (isEngine('redis', url)) {
    const { examineRedis } = await import('../../engines/redis/doctor.ts');
    const stores = roles.includes('bus') || roles.includes('tasks') ? 'messages' : 'documents';
    return examineRedis(url, { ...options, stores });
  }
  if (isEngine('nats', url)) {
    const { examineNats } = await import('../../engines/nats/doctor.ts');
    return examineNats(url, options);
  }
  const target = parseStoreUrl(url);
  const found = await examineStore(url, target, roles, options);
  if (isBroken(found) || (target.engine !== 'postgres' && target.engine !== 'sqlite')) return found;
  return [...found, ...(await examineSchemas(url, target, roles, options))];
}

async function examineStore(
  url: string,
  target: StoreUrl,
  roles: readonly EngineRole[],
  options: EngineExamination,
): Promise<readonly Finding[]> {
  if (target.engine === 'sqlite') {
    const { examineSqlite } = await import('../../engines/sqlite/doctor.ts');
    return examineSqlite(url, options);
  }
  if (target.engine === 'postgres') {
    const { examinePostgres } = await import('../../engines/postgres/doctor.ts');
    const schemas = [target.schema, ...(roles.includes('outbox') ? [outboxSchemaName] : [])];
    return examinePostgres(target.connection, { ...options, schemas });
  }
  if (target.engine === 'mongodb') {
    const { examineMongodb } = await import('../../engines/mongodb/doctor.ts');
    return examineMongodb(target.connection, options);
  }
  if (target.engine === 'kurrentdb') {
    const { examineKurrentdb } = await import('../../engines/kurrentdb/doctor.ts');
    return examineKurrentdb(target.connection, options);
  }
  const remedy = 'Use sqlite:<file> for data that must be kept.';
  const detail = 'all data is lost when the process exits';
  return [{ check: 'settings', level: 'warning', detail, remedy }];
}

async function examineSchemas(
  url: string,
  target: StoreUrl,
  roles: readonly EngineRole[],
  { timeoutMs, migrate }: EngineExamination,
): Promise<readonly Finding[]> {
  const hasOwnOutbox = target.engine === 'postgres' && roles.includes('outbox');
  const schemas = [
    { check: 'schema', open: eventStoreSchema, command: 'millrace migrate' },
    ...(hasOwnOutbox
      ? [{ check: 'outbox schema', open: outboxSchema, command: 'millrace migrate --outbox' }]
      : []),
  ];
  const found: Finding[] = [];
  for (const { check, open, command } of schemas) {
    const work = async (): Promise<readonly Finding[]> => {
      const schema = await open(url);
      const [left, all] = [(await schema.pending()).length, schema.steps.length];
      if (left === 0) return [{ check, level: 'ok', detail: `up to date (step ${all})` }];
      const detail = left === all ? 'does not exist yet' : `${left} of ${all} steps are missing`;
      return migrate === 'auto'
        ? [{ check, level: 'ok', detail: `${detail}: the next start runs its steps` }]
        : [{ check, level: 'broken', detail, remedy: `Run ${command}.` }];
    };
    found.push(...(await examine(check, work, { timeoutMs })));
  }
  return found;
}

/** Drivers may quote the URL. */
function hidden(url: string, finding: Finding): Finding {
  const secret = /^[^:]+:\/\/(?:[^:@]*:)?([^@]*)@/s.exec(url)?.[1];
  if (secret === undefined || secret === '') return finding;
  let detail = finding.detail.replaceAll(secret, '***');
  try {
    detail = detail.replaceAll(decodeURIComponent(secret), '***');
  } catch {
    // The password is not percent-encoded, so it has only one spelling.
  }
  return { ...finding, detail };
}
