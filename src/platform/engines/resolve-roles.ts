// Which engine has which role of a process, decided from the configured URLs alone. The banner, `millrace doctor`,
// `GET /admin/system` and the documentation show the result.

import { urlForms, type EngineName } from '../../contracts/engine-url.ts';
import { MillraceError } from '../../foundation/error.ts';
import { engineTable, roleTable, urlFields, type RoleName, type UrlField } from './engine-table.ts';
import { isSameDatabase, parseEngineUrl, type EngineUrl } from './engine-url.ts';

/** A URL for each role; the defaults follow from the store. */
export type EngineUrls = { readonly [Field in UrlField]?: string | undefined };

export type Need = 'required' | 'optional' | 'unused';

export interface ResolveOptions {
  readonly urls: EngineUrls;
  readonly needs: Readonly<Partial<Record<RoleName, Need>>>;
  /** Refuses local files that were not configured, next to a store on a server. */
  readonly isProduction?: boolean | undefined;
  /** The file of roles without an engine. Default: `sqlite:.millrace/local.db`. */
  readonly localUrl?: string | undefined;
}

export interface ResolvedRole {
  readonly role: RoleName;
  /** Undefined: no configured engine has this optional role, so it is off. */
  readonly target: EngineUrl | undefined;
  /** The role landed in a local file that was not configured, although the store is on a server. */
  readonly warning?: string | undefined;
}

export const storeUrlDefault = 'sqlite:.millrace/events.db';
export const localUrlDefault = 'sqlite:.millrace/local.db';

/**
 * A role is filled by the engine of its setting, else of the store, the outbox or the keys, in this order, each if it
 * has the role (checkpoints and snapshots of a MongoDB store: the outbox first); else by an embedded file if the store is embedded too. A required role without an engine lands in a
 * local file with a warning, or is an error in production.
 */
export function resolveRoles(options: ResolveOptions): readonly ResolvedRole[] {
  const { urls, needs, isProduction = false, localUrl = localUrlDefault } = options;
  const given = shareTargets(urls);
  const store = given.store ?? parseEngineUrl(urls.store ?? storeUrlDefault, 'store');
  const isEmbedded = engineTable[store.engine].isEmbedded;
  const local = parseEngineUrl(localUrl, 'localUrl');

  const resolved = (Object.keys(roleTable) as RoleName[]).map((role): ResolvedRole => {
    const need = needs[role] ?? 'unused';
    const target = ownTarget(role) ?? firstWith(role, enginesFor(role));
    if (target !== undefined) return { role, target };
    if (role === 'leases') return { role, target: undefined };
    if (isEmbedded && need !== 'unused') return { role, target: local };
    if (need !== 'required') return { role, target: undefined };
    const warning = localWarning(role, store.engine, isProduction);
    if (isProduction) {
      const field = roleTable[role].fields[0];
      throw new MillraceError('CONFIG_INVALID', warning, { details: { field, role } });
    }
    return { role, target: local, warning };
  });
  // Without Redis or NATS, leases are stored with the checkpoints.
  const checkpoints = resolved.find(({ role }) => role === 'subscriptions')?.target;
  return resolved.map((each) =>
    each.role === 'leases' ? { ...each, target: each.target ?? checkpoints } : each,
  );

  /** Checkpoints in the database of the outbox commit together with its messages: MongoDB has no outbox. */
  function enginesFor(role: RoleName): readonly (EngineUrl | undefined)[] {
    const isWithOutbox = role === 'subscriptions' || role === 'snapshots';
    return isWithOutbox && store.engine === 'mongodb'
      ? [given.outbox, store, given.keys]
      : [store, given.outbox, given.keys];
  }

  /** The engine that a URL of this role names; it must have the role. */
  function ownTarget(role: RoleName): EngineUrl | undefined {
    const { fields, isOptionalIn = [] } = roleTable[role];
    for (const field of fields) {
      const target = field === 'store' ? store : given[field];
      if (target === undefined) continue;
      if (hasRole(target.engine, role)) return target;
      // A shared setting, such as `keys`, names an engine for the roles that it has.
      if (isOptionalIn.includes(field)) continue;
      throw lacksRole(field, target.engine, role);
    }
    return undefined;
  }
}

/** Parses the URLs; URLs of one database get the same target, so that it is opened once. */
export function shareTargets(urls: EngineUrls): { readonly [Field in UrlField]?: EngineUrl } {
  const targets: { [Field in UrlField]?: EngineUrl } = {};
  for (const field of urlFields) {
    const url = urls[field];
    if (url === undefined) continue;
    const parsed = parseEngineUrl(url, field);
    const same = Object.values(targets).find((each) => isSameDatabase(each, parsed));
    targets[field] = same ?? parsed;
  }
  return targets;
}

function firstWith(
  role: RoleName,
  targets: readonly (EngineUrl | undefined)[],
): EngineUrl | undefined {
  return targets.find((each) => each !== undefined && hasRole(each.engine, role));
}

export function hasRole(engine: EngineName, role: RoleName): boolean {
  return engineTable[engine].roles.includes(role);
}

/** The engines that have a role and are valid for a setting, as examples of URLs. */
function examplesFor(role: RoleName, field?: UrlField): string {
  return (Object.keys(engineTable) as EngineName[])
    .filter((engine) => hasRole(engine, role) && engine !== 'memory')
    .filter((engine) => field !== 'outbox' || hasRole(engine, 'outbox'))
    .map((engine) => urlForms[engine].example)
    .join(' or ');
}

/** Which variable to set. A role without a setting is in the engine of the outbox or of the keys. */
function remedyFor(role: RoleName): string {
  const [field] = roleTable[role].fields;
  if (field !== undefined) {
    return `set MILLRACE_${field.toUpperCase()}, for example to ${examplesFor(role)}`;
  }
  const { example } = urlForms.redis;
  const orKeys = hasRole('redis', role) ? `, or MILLRACE_KEYS, for example to ${example}` : '';
  return `set MILLRACE_OUTBOX, for example to ${examplesFor(role, 'outbox')}${orKeys}`;
}

/** The error of a role that is off. */
export function missingRole(role: RoleName): MillraceError {
  const { title, fields } = roleTable[role];
  const [field = 'outbox'] = fields;
  return new MillraceError(
    'NOT_SUPPORTED',
    `no configured engine has a role for ${title}: ${remedyFor(role)}`,
    { details: { field, role } },
  );
}

/** The error of a setting whose engine lacks the role. */
export function lacksRole(field: string, engine: EngineName, role: RoleName): MillraceError {
  return new MillraceError(
    'CONFIG_INVALID',
    `${field}: ${engineTable[engine].title} has no ${roleTable[role].title}; use ${examplesFor(role)} (MILLRACE_${(roleTable[role].fields[0] ?? 'outbox').toUpperCase()})`,
    { details: { field, engine, role } },
  );
}

function localWarning(role: RoleName, store: EngineName, isProduction: boolean): string {
  const { title } = roleTable[role];
  const instead = isProduction
    ? 'A local file, which other processes would not see, is not used in production unless it is configured'
    : 'A local file, which other processes do not see, is used instead';
  return `${engineTable[store].title} has no ${title}. ${instead}: ${remedyFor(role)}`;
}
