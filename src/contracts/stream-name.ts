// Stream names, `<bc>.<agg>.v<version>-<tenant>-<id>`: one stream contains the events of one aggregate.

import type { MillraceError } from '../foundation/error.ts';
import { parseEventType } from './event-type.ts';
import {
  camelCase,
  checkId,
  checkIdentifier,
  checkLength,
  checkVersion,
  kebabCase,
  nameInvalid,
  nameLimits,
  versionPattern,
  type Identifier,
} from './identifier.ts';
import { joinTenant, splitTenant, type TenantLookup } from './tenant.ts';

export interface ParsedStreamName {
  /** The part before the first hyphen, which `$ce-` streams index. */
  readonly category: string;
  readonly bc: string;
  readonly agg: string;
  readonly version: number;
  readonly tenant: string;
  readonly id: string;
}

const camel = '[a-z0-9][a-zA-Z0-9]*';
const streamName = new RegExp(`^((${camel})\\.(${camel})\\.v(${versionPattern}))-(.+)$`);
const categoryPrefix = new RegExp(`^${camel}\\.${camel}\\.v${versionPattern}-`);

/**
 * Builds the category `<bc>.<agg>.v<version>`. Hyphens become camelCase, because a category ends
 * at the first hyphen of the stream's name.
 *
 * @example
 * import { buildCategory } from 'millrace/contracts';
 *
 * console.log(buildCategory('core-template-manager', 'template', 1)); // coreTemplateManager.template.v1
 */
export function buildCategory<const Bc extends string, const Agg extends string>(
  bc: Identifier<Bc>,
  agg: Identifier<Agg>,
  v: number,
): string {
  checkIdentifier('bounded context', bc);
  checkIdentifier('aggregate', agg);
  checkVersion(v);
  return `${camelCase(bc)}.${camelCase(agg)}.v${v}`;
}

/**
 * Builds the name of an aggregate's stream. The name always parses back to the same parts: a tenant
 * with a hyphen must be in `tenants`, and a name that would parse as another tenant's is rejected.
 *
 * @example
 * import { buildStreamName } from 'millrace/contracts';
 *
 * console.log(buildStreamName('banking', 'currency', 1, 'core', 'USD')); // banking.currency.v1-core-USD
 */
export function buildStreamName<const Bc extends string, const Agg extends string>(
  bc: Identifier<Bc>,
  agg: Identifier<Agg>,
  v: number,
  tenant: string,
  id: string,
  tenants?: TenantLookup,
): string {
  checkId('aggregate id', id);
  const stream = `${buildCategory(bc, agg, v)}-${joinTenant(tenant, id, tenants)}`;
  checkLength(stream, nameLimits.streamCharsMax);
  return stream;
}

/**
 * Parses a stream name. The tenant is the longest match in the directory; without a directory or a
 * match, it ends at the first hyphen.
 *
 * @example
 * import { parseStreamName } from 'millrace/contracts';
 *
 * const { tenant, id } = parseStreamName('banking.currency.v1-core-USD'); // core, USD
 */
export function parseStreamName(stream: string, tenants?: TenantLookup): ParsedStreamName {
  const match = stream.length <= nameLimits.streamCharsMax ? streamName.exec(stream) : null;
  if (match === null) throw streamInvalid(stream);
  const [, category = '', bc = '', agg = '', version = '', tail = ''] = match;
  const parts = splitTenant(tail, tenants);
  if (parts === undefined) throw streamInvalid(stream);
  return {
    category,
    bc: kebabCase(bc),
    agg: kebabCase(agg),
    version: Number(version),
    tenant: parts.tenant,
    id: parts.id,
  };
}

/** The tenant of a stream; empty if the name does not follow `<bc>.<agg>.v<version>-<tenant>-<id>`. */
export function tenantOfStream(stream: string, tenants: TenantLookup | undefined): string {
  if (!categoryPrefix.test(stream)) return '';
  return splitTenant(stream.slice(stream.indexOf('-') + 1), tenants)?.tenant ?? '';
}

/** Whether a stream is that of this aggregate; true for a name with other rules. */
export function isStreamOf(
  stream: string,
  tenant: string,
  { bc, type, id }: { readonly bc: string; readonly type: string; readonly id: string },
): boolean {
  if (!categoryPrefix.test(stream)) return true;
  const [streamBc = '', streamType = ''] = stream.split('.', 2);
  const named = [bc, type].map((name) => name.replaceAll('-', '').toLowerCase());
  return (
    named[0] === streamBc.toLowerCase() &&
    named[1] === streamType.toLowerCase() &&
    stream.slice(stream.indexOf('-') + 1) === `${tenant}-${id}`
  );
}

/** The aggregate of a stream of this tenant; of a name with other rules, the whole name is the id. */
export function aggregateOf(
  stream: string,
  tenant: string,
): { readonly bc: string; readonly type: string; readonly id: string } {
  const tenants = { has: (name: string) => name === tenant };
  if (tenant === '' || tenantOfStream(stream, tenants) === '') {
    return { bc: '', type: '', id: stream };
  }
  const { bc, agg: type, id } = parseStreamName(stream, tenants);
  return { bc, type, id };
}

/**
 * The stream that indexes a category, as EventStoreDB names it.
 *
 * @example
 * import { categoryStream } from 'millrace/contracts';
 *
 * console.log(categoryStream('banking', 'currency', 1)); // $ce-banking.currency.v1
 */
export function categoryStream<const Bc extends string, const Agg extends string>(
  bc: Identifier<Bc>,
  agg: Identifier<Agg>,
  v: number,
): string {
  return `$ce-${buildCategory(bc, agg, v)}`;
}

/**
 * The stream that indexes an event type, as EventStoreDB names it.
 *
 * @example
 * import { eventTypeStream } from 'millrace/contracts';
 *
 * console.log(eventTypeStream('payment.completed.v1')); // $et-payment.completed.v1
 */
export function eventTypeStream(type: string): string {
  parseEventType(type);
  return `$et-${type}`;
}

function streamInvalid(stream: string): MillraceError {
  const reason =
    stream.length > nameLimits.streamCharsMax
      ? `has ${stream.length} characters; the limit is ${nameLimits.streamCharsMax}`
      : streamName.test(stream)
        ? 'needs -<tenant>-<id> after its category'
        : 'must be <bc>.<agg>.v<version>-<tenant>-<id>, hyphens in bc and agg written in camelCase';
  return nameInvalid('stream', stream, reason);
}
