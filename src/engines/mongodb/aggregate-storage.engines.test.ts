// Snapshots and key claims on servers that speak MongoDB's protocol.

import { test } from 'node:test';
import { keyClaimsConformance } from '../../testing/conformance/aggregates/key-claims.ts';
import { snapshotStoreConformance } from '../../testing/conformance/aggregates/snapshot-store.ts';
import { ownedRole } from '../../testing/owned-role.ts';
import {
  onFerretdb,
  onGivenMongodb,
  type MongodbTarget,
} from '../../testing/support/mongodb/mongodb-targets.ts';
import { openMongo } from './index.ts';

function aggregateCases(target: MongodbTarget, skipped: Readonly<Record<string, string>>): void {
  const open = () => openMongo(target.url(), { database: target.newDatabase() });
  const snapshots = snapshotStoreConformance(async () => ownedRole(await open(), 'snapshots'));
  for (const { name, run } of snapshots) {
    test(`snapshots: ${name}`, { skip: skipped[name] ?? false }, run);
  }
  const claims = keyClaimsConformance(async () => ownedRole(await open(), 'keyClaims'));
  for (const { name, run } of claims) test(`key claims: ${name}`, run);
}

onFerretdb('aggregates', (target) =>
  aggregateCases(target, {
    'of concurrent writers the highest revision stays':
      'updates of FerretDB are not atomic: a slower writer may leave an older snapshot, which costs time only',
  }),
);

onGivenMongodb('aggregates', (target) => aggregateCases(target, {}));
