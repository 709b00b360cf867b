// The files that `millrace new` generates: a template that compiles and passes its tests, with its names
// replaced.

import { readdir, readFile } from 'node:fs/promises';
import { camelCase } from '../../contracts/identifier.ts';
import { redisKeys } from '../../contracts/redis-keys.ts';
import { buildCategory, categoryStream } from '../../contracts/stream-name.ts';
import { buildSubscriptionName } from '../../contracts/subscription-name.ts';

export interface TemplateNames {
  readonly bc: string;
  readonly agg: string;
  readonly tenant: string;
}

export interface GeneratedFile {
  readonly name: string;
  readonly text: string;
}

export async function templateFiles(
  kind: 'aggregate' | 'outbox',
  names: TemplateNames,
): Promise<readonly GeneratedFile[]> {
  const template = new URL(`../templates/${kind}/`, import.meta.url);
  const files = await readdir(template);
  return Promise.all(
    files.toSorted().map(async (file) => ({
      name: replaceNames(file, names),
      text: fill(replaceNames(await readFile(new URL(file, template), 'utf8'), names), names),
    })),
  );
}

/** Replaces all spellings in one pass, so that a new name is never mistaken for one of the template. */
function replaceNames(text: string, { bc, agg, tenant }: TemplateNames): string {
  const camel = camelCase(agg);
  const spellings: Readonly<Record<string, string>> = {
    'sample-context': bc,
    'sample-tenant': tenant,
    'sample-item': agg,
    'sample item': agg.replaceAll('-', ' '),
    sampleItem: camel,
    SampleItem: `${camel.slice(0, 1).toUpperCase()}${camel.slice(1)}`,
  };
  return text.replace(
    /sample-(?:context|tenant|item)|sample item|sampleItem|SampleItem/g,
    (found) => spellings[found] ?? found,
  );
}

/** The names in the README come from the builders, too. */
function fill(text: string, { bc, agg, tenant }: TemplateNames): string {
  const id = `${agg}-1`;
  const projection: string = `${agg}-projection`;
  const values: Readonly<Record<string, string>> = {
    stream: `${buildCategory(bc, agg, 1)}-${tenant}-<id>`,
    snapshot: redisKeys.snapshot(tenant, bc, agg, 1, id),
    index: redisKeys.index(tenant, bc, agg, 1, 'name'),
    all: redisKeys.setAll(tenant, bc, agg, 1),
    byUpdated: redisKeys.zsetByUpdated(tenant, bc, agg, 1),
    subscription: buildSubscriptionName(bc, projection, 1),
    category: categoryStream(bc, agg, 1),
    queue: redisKeys.queue(tenant, bc, agg, 1, 'process'),
    jobId: redisKeys.jobId(tenant, bc, agg, 'process', id),
  };
  return text.replace(/\{\{(\w+)\}\}/g, (found, name: string) => values[name] ?? found);
}
