// The checks of `millrace doctor`: each configured engine, by its adapter.

import { urlParts } from '../../contracts/engine-url.ts';
import { systemClock } from '../../foundation/clock.ts';
import { examine, isBroken, type Examination, type Finding } from '../../foundation/finding.ts';
import { eventStoreSchema, outboxSchema } from './engine-schemas.ts';
import { urlFields, type UrlField } from './engine-table.ts';
import { redactUrl, type EngineUrl } from './engine-url.ts';
import { hasRole, shareTargets, storeUrlDefault, type EngineUrls } from './resolve-roles.ts';

export interface EngineReport {
  /** Several if one engine has several roles. */
  readonly roles: readonly UrlField[];
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
  const urls: EngineUrls = { store: storeUrlDefault, ...engines };
  const targets = shareTargets(urls);
  const byTarget = new Map<EngineUrl, { target: EngineUrl; url: string; roles: UrlField[] }>();
  for (const field of urlFields) {
    const [target, url] = [targets[field], urls[field]];
    if (target === undefined || url === undefined) continue;
    const known = byTarget.get(target);
    if (known === undefined) byTarget.set(target, { target, url, roles: [field] });
    else known.roles.push(field);
  }
  const all = [...byTarget.values()];
  // Without a separate URL, the outbox is in the database of the store, if that has one.
  const [store] = all;
  if (urls.outbox === undefined && store !== undefined && hasRole(store.target.engine, 'outbox')) {
    store.roles.push('outbox');
  }
  const checkpoints = all.find(
    ({ target, roles }) =>
      roles.some((role) => ['store', 'outbox', 'keys'].includes(role)) &&
      hasRole(target.engine, 'subscriptions'),
  )?.target;
  const options = { timeoutMs, nowMs: () => systemClock.now(), migrate, checkpoints };
  return Promise.all(
    all.map(async ({ target, url, roles }) => {
      const found = await examine('engine', () => examineEngine(target, url, roles, options), {
        // Each check has a time limit; this one covers the rest.
        timeoutMs: timeoutMs * 20,
      });
      return { roles, url: redactUrl(url), findings: found.map((each) => hidden(url, each)) };
    }),
  );
}

type EngineExamination = Examination & {
  readonly migrate: 'auto' | 'off';
  readonly checkpoints: EngineUrl | undefined;
};

async function examineEngine(
  target: EngineUrl,
  url: string,
  roles: readonly UrlField[],
  options: EngineExamination,
): Promise<readonly Finding[]> {
  const { connection, schema = 'millrace' } = target;
  switch (target.engine) {
    case 'redis': {
      const { examineRedis } = await import('../../engines/redis/doctor.ts');
      const messages = roles.includes('bus') || roles.includes('tasks') ? 'messages' : 'documents';
      const stores = options.checkpoints === target ? 'checkpoints' : messages;
      return examineRedis(connection, { ...options, stores });
    }
    case 'nats':
      return (await import('../../engines/nats/doctor.ts')).examineNats(connection, options);
    case 'mongodb':
      return (await import('../../engines/mongodb/doctor.ts')).examineMongodb(connection, options);
    case 'kurrentdb': {
      const { examineKurrentdb } = await import('../../engines/kurrentdb/doctor.ts');
      return examineKurrentdb(connection, options);
    }
    case 'sqlite': {
      const { examineSqlite } = await import('../../engines/sqlite/doctor.ts');
      return withSchemas(await examineSqlite(connection, options));
    }
    case 'postgres': {
      const { examinePostgres } = await import('../../engines/postgres/doctor.ts');
      const schemas = [schema, ...(roles.includes('outbox') ? [outboxSchemaName] : [])];
      return withSchemas(await examinePostgres(connection, { ...options, schemas }));
    }
    default: {
      const remedy = 'Use sqlite:<file> for data that must be kept.';
      const detail = 'all data is lost when the process exits';
      return [{ check: 'settings', level: 'warning', detail, remedy }];
    }
  }

  async function withSchemas(found: readonly Finding[]): Promise<readonly Finding[]> {
    if (isBroken(found)) return found;
    return [...found, ...(await examineSchemas(url, target, roles, options))];
  }
}

async function examineSchemas(
  url: string,
  target: EngineUrl,
  roles: readonly UrlField[],
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

/** Drivers may quote the URL, with the password as it is written or decoded. */
function hidden(url: string, finding: Finding): Finding {
  const { userinfo = '', user = '', password = user } = urlParts(url, 'url');
  const written = userinfo.slice(userinfo.indexOf(':') + 1);
  const detail = [written, password]
    .filter((secret) => secret !== '')
    .reduce((text, secret) => text.replaceAll(secret, '***'), finding.detail);
  return { ...finding, detail };
}
