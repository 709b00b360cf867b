// Benchmark of the contracts layer: names, envelopes, payloads and ids.

import { randomUUID, randomUUIDv7 } from 'node:crypto';
import {
  buildEventType,
  buildStreamName,
  createTenantDirectory,
  encodePayload,
  isEnvelope,
  parseStreamName,
  redisKeys,
} from '../src/contracts/index.ts';
import { createIds } from '../src/foundation/index.ts';
import { ours, type Benchmark, type Case, type Goal, type Subject } from './benchmark.ts';
import * as document from './contracts/document.ts';
import { createEnvelopes, createInvalidEnvelopes, createPayload } from './contracts/envelopes.ts';
import { createHyphenatedTenants, createNameParts } from './contracts/names.ts';
import { ajvValidator, checkVerdicts, zodValidator } from './contracts/validators.ts';
import { each } from './loops.ts';
import { createRandom } from './random.ts';

export const benchmark: Benchmark = {
  name: 'contracts',
  peers: ['ajv', 'ajv-formats', 'zod'],
  url: import.meta.url,
  cases: async () => [
    ...nameCases(),
    ...(await envelopeCases()),
    payloadCase(),
    redisKeyCase(),
    idCase(),
  ],
};

function nameCases(): Case[] {
  const random = createRandom(1);
  const parts = createNameParts(random, { count: 1_000 });
  const streams = parts.map(({ bc, agg, v, tenant, id }) =>
    buildStreamName(bc, agg, v, tenant, id),
  );
  const hyphenated = createHyphenatedTenants(random, 1_000);
  const tenants = createTenantDirectory(hyphenated);
  const tenantStreams = createNameParts(random, { count: 5_000, tenants: hyphenated }).map(
    ({ bc, agg, v, tenant, id }) => buildStreamName(bc, agg, v, tenant, id, tenants),
  );
  return [
    throughput('build stream name', [
      over(ours, parts, ({ bc, agg, v, tenant, id }) => buildStreamName(bc, agg, v, tenant, id)),
      over('document', parts, ({ bc, agg, v, tenant, id }) =>
        document.buildStreamName(bc, agg, v, tenant, id),
      ),
    ]),
    throughput('parse stream name', [
      over(ours, streams, (stream) => parseStreamName(stream)),
      over('document', streams, (stream) => document.parseStreamName(stream)),
    ]),
    throughput('parse stream name, 1k hyphenated tenants', [
      over(ours, tenantStreams, (stream) => parseStreamName(stream, tenants)),
      over('document', tenantStreams, (stream) => document.parseStreamName(stream)),
    ]),
    throughput('build event type', [
      over(ours, parts, ({ agg, action, v }) => buildEventType(agg, action, v)),
      over('document', parts, ({ agg, action, v }) => document.buildEventType(agg, action, v)),
    ]),
  ];
}

async function envelopeCases(): Promise<Case[]> {
  const random = createRandom(2);
  const valid = createEnvelopes(random, 200);
  // A fifth of the documents.
  const invalid = createInvalidEnvelopes(random, 50);
  const [ajv, zod] = [await ajvValidator(), await zodValidator()];
  checkVerdicts(valid, true, { isEnvelope, ajv, zod });
  checkVerdicts(invalid, false, { isEnvelope, ajv, zod });
  return [
    { name: 'validate envelope', documents: random.shuffle([...valid, ...invalid]) },
    { name: 'validate envelope, valid only', documents: valid },
  ].map(({ name, documents }) =>
    throughput(
      name,
      [over(ours, documents, isEnvelope), over('ajv', documents, ajv), over('zod', documents, zod)],
      { vs: 'ajv', ratioMin: 1 },
    ),
  );
}

function payloadCase(): Case {
  const random = createRandom(3);
  const payloads = Array.from({ length: 200 }, () => createPayload(random));
  return throughput('encode payload', [
    over(ours, payloads, (payload) => encodePayload(payload)),
    over('JSON.stringify', payloads, (payload) => {
      const json = JSON.stringify(payload);
      return { json, bytes: Buffer.byteLength(json, 'utf8') };
    }),
  ]);
}

function redisKeyCase(): Case {
  const parts = createNameParts(createRandom(4), { count: 1_000 });
  return throughput('redis key', [
    over(ours, parts, ({ tenant, bc, agg, v, id }) => redisKeys.snapshot(tenant, bc, agg, v, id)),
    over('document', parts, ({ tenant, bc, agg, v, id }) =>
      document.snapshotKey(tenant, bc, agg, v, id),
    ),
  ]);
}

function idCase(): Case {
  const ids = createIds();
  return throughput('new id', [
    over(ours, [0], () => ids.next()),
    over('crypto.randomUUID', [0], () => randomUUID()),
    over('crypto.randomUUIDv7', [0], () => randomUUIDv7()),
  ]);
}

function throughput(name: string, subjects: readonly Subject[], ...goals: Goal[]): Case {
  return { name, measure: 'throughput', subjects, goals };
}

function over<Item>(
  name: string,
  items: readonly Item[],
  operation: (item: Item) => unknown,
): Subject {
  return { name, setup: () => ({ run: each(items, operation) }) };
}
