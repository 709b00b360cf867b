import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Test } from '@nestjs/testing';
import { DataSource } from 'typeorm';
import { hasCode } from '../../foundation/error.ts';
import { OutboxRepository } from '../outbox-repository.ts';
import { TYPEORM_OUTBOX_OPTIONS, TypeormOutboxRepository } from './outbox-repository.ts';

const dataSource = new DataSource({ type: 'postgres', url: 'postgres://127.0.0.1:1/none' });

test('Nest creates the repository by its class, with or without options', async () => {
  const options = { provide: TYPEORM_OUTBOX_OPTIONS, useValue: { schema: 'other' } };
  for (const more of [[], [options]]) {
    const app = await Test.createTestingModule({
      providers: [
        { provide: DataSource, useValue: dataSource },
        { provide: OutboxRepository, useClass: TypeormOutboxRepository },
        ...more,
      ],
    }).compile();
    const outbox = app.get(OutboxRepository);
    assert.ok(outbox instanceof TypeormOutboxRepository);
    // The ledger opens with the first call, and this DataSource is not initialised.
    await assert.rejects(outbox.paused(), (error) => hasCode(error, 'STORE_CLOSED'));
  }
});

test('a DataSource of another database is rejected', () => {
  const other = { options: { type: 'mysql' } } as DataSource;
  assert.throws(
    () => new TypeormOutboxRepository(other),
    (error) => hasCode(error, 'NOT_SUPPORTED'),
  );
});
